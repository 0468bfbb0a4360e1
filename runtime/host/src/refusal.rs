//! Reasons why a plugin is not used, as data.
//!
//! A refusal is never fatal: the host keeps it in the load report and goes on with the next plugin.

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
    /// Somebody other than the user or root could replace the file.
    WritableByOthers,
    /// The file has no bytes.
    Empty,
    /// The file ends before its own headers say it should.
    Truncated,
    /// The file is not an ELF shared object.
    NotASharedObject,
    /// The file is built for another processor or operating system.
    WrongArchitecture,
    /// The manifest cannot be parsed or breaks a rule of its format.
    ManifestInvalid,
    /// The manifest makes a claim about the plugin that is not true.
    ManifestLies,
    /// The bytes of the file are not the bytes the manifest describes.
    HashMismatch,
    /// The configuration names this plugin as disabled.
    Disabled,
    /// An allow-list is in force and this file is not on it.
    NotAllowed,
    /// A signature is required and there is none.
    SignatureMissing,
    /// The signature does not verify against any trusted key.
    SignatureInvalid,
    /// The processor or the operating system lacks an instruction set the plugin needs.
    IsaUnsupported,
    /// Another variant of the same plugin suits this processor better.
    BetterVariant,
    /// The program provides a plugin of this name itself.
    PartOfProgram,
    /// A library the plugin needs is not installed, or is too old.
    SonameMissing,
    /// The plugin exports a symbol beside `oarlock_plugin_query`.
    SymbolLeak,
    /// The plugin expects the host program to provide a symbol.
    HostSymbolImported,
    /// The plugin does not export `oarlock_plugin_query`.
    EntryMissing,
    /// The plugin crashed or aborted while it was probed in a child process.
    ProbeCrashed,
    /// The plugin did not answer in time while it was probed in a child process.
    ProbeTimedOut,
    /// The child process that probes plugins could not be used.
    ProbeFailed,
    /// The dynamic linker refused the file.
    LoadFailed,
    /// The plugin and the host speak versions of the contract that do not overlap.
    ContractVersion,
    /// The plugin was built with a sanitizer the host was not built with, or the reverse.
    SanitizerMismatch,
    /// The plugin answered with an error of its own.
    PluginError,
    /// A struct or table the plugin filled breaks a rule of the contract.
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
    /// The actual state, as part of a sentence.
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
