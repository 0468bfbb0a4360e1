//! Reasons why a plugin is not used, as data.
//!
//! A refusal is never fatal: the host adds it to the load report and continues with the next plugin.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The kind of a refusal. In `--json` output its name is in kebab case and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RefusalReason {
    /// The file or directory cannot be read.
    Unreadable,
    /// The path goes through a loop of symbolic links.
    SymlinkLoop,
    /// A user other than the current one or root could replace the file.
    WritableByOthers,
    /// The file has no bytes.
    Empty,
    /// The file is shorter than its headers state.
    Truncated,
    /// The file is not an ELF shared object.
    NotASharedObject,
    /// The file is built for another processor or operating system.
    WrongArchitecture,
    /// The manifest cannot be parsed or breaks a rule of its format.
    ManifestInvalid,
    /// The manifest makes a false claim about the plugin.
    ManifestLies,
    /// The hash of the file differs from the hash in the manifest.
    HashMismatch,
    /// The configuration disables this plugin.
    Disabled,
    /// There is an allow-list and this file is not on it.
    NotAllowed,
    /// A signature is required, but the plugin has none.
    SignatureMissing,
    /// No trusted key verifies the signature.
    SignatureInvalid,
    /// Only a key that is revoked signed the plugin.
    KeyRevoked,
    /// The signed manifest does not list a library that lies beside the plugin and would be loaded with it.
    FileNotSigned,
    /// The processor or the operating system lacks an instruction set that the plugin needs.
    IsaUnsupported,
    /// Another variant of the same plugin suits this processor better.
    BetterVariant,
    /// The program provides a plugin of this name itself.
    PartOfProgram,
    /// The file is a library of a plugin beside it.
    PartOfPlugin,
    /// A library that the plugin needs is not installed, or is too old.
    SonameMissing,
    /// The plugin looks for libraries in a directory that depends on where the program was started.
    UnsafeSearchPath,
    /// The plugin needs a stack whose contents can be run as code.
    ExecutableStack,
    /// The plugin needs code that can be changed while it is loaded.
    TextRelocations,
    /// The plugin exports a symbol other than `oarlock_plugin_query`.
    SymbolLeak,
    /// The plugin expects the host program to provide a symbol.
    HostSymbolImported,
    /// The plugin does not export `oarlock_plugin_query`.
    EntryMissing,
    /// The plugin crashed or aborted when it was probed in a child process.
    ProbeCrashed,
    /// The plugin did not answer in time when it was probed in a child process.
    ProbeTimedOut,
    /// The plugin crashed or ended the process at an earlier start of the same program.
    CrashedAtStart,
    /// The plugin did not return in time at an earlier start of the same program.
    HungAtStart,
    /// The probe itself failed, for example because the child process could not be started.
    ProbeFailed,
    /// The plugin should run in a process of its own, but cannot.
    CannotIsolate,
    /// The dynamic linker refused the file.
    LoadFailed,
    /// The plugin and the host support no common version of the contract.
    ContractVersion,
    /// The plugin and the host were built with different sanitizers.
    SanitizerMismatch,
    /// The plugin returned an error.
    PluginError,
    /// A struct or table of the plugin violates a rule of the contract.
    ContractBroken,
    /// A slot that a profile requires is empty.
    SlotMissing,
    /// A name is empty, too long, or not UTF-8.
    BadName,
    /// Another plugin already provides this device type or name.
    Duplicate,
}

/// A plugin that is not used: the file, what was expected, what was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of refusal, for programs.
    pub reason: RefusalReason,
    /// The file or directory at fault.
    #[serde(serialize_with = "crate::text::paths::serialize_path")]
    pub file: PathBuf,
    /// The expectation of the host, as part of a sentence.
    pub expected: String,
    /// The actual state that was found, as part of a sentence.
    pub found: String,
    /// The advice to the user; it completes "to use this plugin, …".
    pub remedy: String,
}

impl Refusal {
    /// Builds a refusal; `remedy` completes "to use this plugin, …".
    pub fn new(
        reason: RefusalReason,
        file: impl AsRef<Path>,
        expected: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            file: file.as_ref().to_path_buf(),
            expected: expected.into(),
            found: found.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, expected, found, remedy, .. } = self;
        write!(f, "`{}`: expected {expected}, found {found}; {remedy}", file.display())
    }
}

impl std::error::Error for Refusal {}
