//! Judges files without running any of their code, and sorts the variants of each plugin.
//!
//! The checks run from the cheapest to the most expensive, so that a directory full of plugins for other machines costs little
//! more than reading their manifests: permissions, configuration, manifest (architecture, contract, instruction sets), and only
//! then the bytes of the file: ELF headers, hash, allow-list, signature, symbols, sanitizers, libraries. A library that comes with the
//! plugin is judged like the plugin.

pub(crate) mod adapter;
pub(crate) mod coverage;
pub(crate) mod elf;
pub(crate) mod features;
pub(crate) mod isa;
pub(crate) mod ld_cache;
pub(crate) mod manifest;
pub(crate) mod manifest_claims;
pub(crate) mod memory_demands;
pub(crate) mod sanitizers;
pub(crate) mod search_path;
pub(crate) mod shipped_files;
pub(crate) mod sonames;
pub(crate) mod symbols;
pub(crate) mod variants;
pub(crate) mod version;

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};

use crate::files::permissions::unreadable_refusal;
use crate::files::regular_file::open_regular;
use crate::judge::elf::architecture_remedy;
use crate::judge::manifest_claims::check_file_claims;
use crate::judge::memory_demands::check_memory_demands;
use crate::judge::sanitizers::check_sanitizers;
use crate::judge::shipped_files::{ShippedClaims, ShippedFiles, find_owner};
use crate::text::wildcard::matches_pattern;
use crate::{
    AllowList, ConfigError, ContractRange, Digest, ENTRY_SYMBOL, HostConfig, HostEnvironment, IsaFeatures,
    LibrarySearch, PluginAdapter, PluginCandidate, PluginManifest, ProcessIdentity, Refusal, RefusalReason,
    SharedObject, TrustFinding, TrustedKeys, check_symbols,
};

/// Limit on the size of a shared object in bytes: relative addresses in code reach at most 2 GiB.
pub(crate) const MAX_PLUGIN_BYTES: u64 = 2 << 30;

/// The policy and the properties of this machine that files are judged against.
#[derive(Debug)]
pub struct JudgeContext {
    /// The user and group that the program runs as.
    pub identity: ProcessIdentity,
    /// Plugins to leave out, by plugin or file name; `*` matches any characters.
    pub disable: Vec<String>,
    /// The hashes of the only files that may be loaded, unless the list is empty.
    pub allow: AllowList,
    /// The keys that signatures are verified with, and the revoked ones.
    pub trusted_keys: TrustedKeys,
    /// True if a plugin without a signature is refused.
    pub require_signature: bool,
    /// The instruction sets of this machine.
    pub features: IsaFeatures,
    /// The search path of the dynamic linker.
    pub libraries: LibrarySearch,
    /// The versions of the contract that the host understands.
    pub contract: ContractRange,
    /// What makes plugins for other programs usable.
    pub adapters: Vec<PluginAdapter>,
    /// The sanitizers that the host is built with, such as `address`.
    pub sanitizers: Vec<String>,
}

/// A file that passed all checks.
#[derive(Clone, Debug)]
pub struct JudgedPlugin {
    /// The path at which it was found, and the source of the request.
    pub candidate: PluginCandidate,
    /// The path with all symbolic links resolved. Load this one: a link may change meanwhile.
    pub real_path: PathBuf,
    /// The hash of its bytes.
    pub digest: Digest,
    /// The manifest beside it, if there is one.
    pub manifest: Option<PluginManifest>,
    /// Its symbols and libraries.
    pub elf: SharedObject,
    /// The fit to this machine: higher is better, 0 means it needs nothing in particular.
    pub isa_rank: u32,
    /// The file of the key that verified its signature.
    pub signed_by: Option<PathBuf>,
    /// Remarks for the user that do not keep the plugin from working.
    pub notes: Vec<String>,
}

impl JudgeContext {
    /// Collects the policy from the configuration and the environment, and the properties of this machine.
    pub fn new(
        config: &HostConfig,
        environment: &HostEnvironment,
        contract: ContractRange,
    ) -> Result<Self, ConfigError> {
        let features = IsaFeatures::detect_features();
        let features = match &environment.isa_mask {
            Some(mask) => features
                .with_mask(mask)
                .map_err(|problem| ConfigError::new("OARLOCK_ISA_MASK".as_ref(), problem))?,
            None => features,
        };
        let plugins = &config.plugins;
        Ok(Self {
            identity: environment.identity,
            disable: plugins.disable.clone(),
            allow: plugins.allow.iter().copied().collect(),
            trusted_keys: TrustedKeys::load_keys(&config.keys, environment.identity)?,
            require_signature: plugins.require_signature,
            features,
            libraries: LibrarySearch::of_system(environment),
            contract,
            adapters: Vec::new(),
            sanitizers: Vec::new(),
        })
    }

    /// Refuses a plugin that the configuration disables by name. [`judge_candidate`] checks the names of the file and in the
    /// manifest; without a manifest, the plugin's own name is checked once it is known.
    pub fn check_enabled(&self, path: &Path, name: &str) -> Result<(), Refusal> {
        match self.disable.iter().find(|pattern| matches_pattern(pattern, name)) {
            None => Ok(()),
            Some(pattern) => Err(Refusal::new(
                RefusalReason::Disabled,
                path,
                "a plugin that is not disabled",
                format!("`{name}`, which the entry `{pattern}` disables"),
                "remove the entry from `disable` under `[plugins]` in the configuration to use it",
            )),
        }
    }

    /// Checks what the manifest alone decides; returns the rank of its instruction sets.
    fn check_manifest(&self, path: &Path, manifest: &PluginManifest) -> Result<u32, Refusal> {
        self.check_enabled(path, &manifest.name)?;
        let here = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
        if manifest.architecture != here {
            return Err(Refusal::new(
                RefusalReason::WrongArchitecture,
                path,
                format!("a plugin for `{here}`"),
                format!("one for `{}`, by its manifest", manifest.architecture),
                architecture_remedy(manifest.package.as_deref()),
            ));
        }
        if !manifest.contract.overlaps(&self.contract) {
            let (host, plugin) = (self.contract, manifest.contract);
            let package = manifest.package.as_ref().unwrap_or(&manifest.name);
            let plugin_is_older = (plugin.major, plugin.max_minor) < (host.major, host.min_minor);
            return Err(Refusal::new(
                RefusalReason::ContractVersion,
                path,
                format!("a plugin that speaks contract {host}"),
                format!("one that speaks {plugin}, by its manifest"),
                format!("update `{}`", if plugin_is_older { package } else { "oarlock" }),
            ));
        }
        let Some(predicate) = &manifest.isa else { return Ok(0) };
        predicate.rank(&self.features).ok_or_else(|| {
            Refusal::new(
                RefusalReason::IsaUnsupported,
                path,
                format!("a processor with `{predicate}`"),
                self.features.to_string(),
                "install a variant of this plugin that needs less",
            )
        })
    }
}

/// Judges the file of `candidate` as far as possible without running any of its code.
pub fn judge_candidate(candidate: PluginCandidate, context: &JudgeContext) -> Result<JudgedPlugin, Refusal> {
    let path = candidate.path.as_path();
    let real_path = context.identity.check_file(path)?;
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    context.check_enabled(path, &file_name)?;
    let manifest_bytes = read_manifest(path, context)?;
    let manifest = manifest_bytes
        .as_ref()
        .map(|bytes| PluginManifest::parse_manifest(&PluginManifest::path_beside(path), bytes))
        .transpose()?;
    let isa_rank = manifest.as_ref().map_or(Ok(0), |manifest| context.check_manifest(path, manifest))?;

    let unreadable = |error| unreadable_refusal(path, &error);
    let (mut file, length) = open_regular(&real_path).map_err(unreadable)?;
    check_length(path, length)?;
    let elf =
        if length == 0 { SharedObject::parse_bytes(path, &[]) } else { SharedObject::read_file(path, &file) };
    let package = manifest.as_ref().and_then(|manifest| manifest.package.as_deref());
    let elf = elf.map_err(|refusal| match refusal.reason {
        RefusalReason::WrongArchitecture => Refusal { remedy: architecture_remedy(package), ..refusal },
        _ => refusal,
    })?;
    if !elf.exports_symbol(ENTRY_SYMBOL)
        && let Some(owner) = find_owner(path)
    {
        return Err(part_of_plugin(path, &owner));
    }
    file.rewind().map_err(unreadable)?;
    let digest = Digest::hash_reader((&file).take(MAX_PLUGIN_BYTES)).map_err(unreadable)?;
    context.allow.check_digest(path, digest)?;
    let trust =
        context.trusted_keys.judge_manifest(path, manifest_bytes.as_deref(), context.require_signature)?;
    let TrustFinding { signed_by, mut notes } = trust;
    if let Some(manifest) = &manifest {
        if signed_by.is_some() && manifest.sha256.is_none() {
            return Err(unsigned_plugin(path));
        }
        check_file_claims(path, manifest, digest, &elf)?;
    }
    if !context.adapters.iter().any(|adapter| adapter.recognizes_file(&elf)) {
        check_symbols(path, &elf)?;
    }
    check_memory_demands(path, path, elf.memory)?;
    check_sanitizers(path, &elf, &context.libraries, &context.sanitizers)?;
    let requires = manifest.as_ref().map_or(&[][..], |manifest| &manifest.requires);
    let libraries = context.libraries.find_libraries(path, &elf.links, requires)?;
    let none = BTreeMap::new();
    let listed = manifest.as_ref().map_or(&none, |manifest| &manifest.files);
    ShippedFiles { plugin: path, real_path: &real_path }.check_files(
        &libraries.of_plugin,
        context.identity,
        &ShippedClaims { listed, allow: &context.allow, is_signed: signed_by.is_some() },
    )?;
    if let Some(missing) = libraries.missing {
        return Err(missing);
    }
    notes.extend(libraries.notes);
    Ok(JudgedPlugin { real_path, digest, manifest, elf, isa_rank, signed_by, notes, candidate })
}

/// The refusal of a plugin with a signed manifest that could belong to any plugin.
fn unsigned_plugin(path: &Path) -> Refusal {
    Refusal::new(
        RefusalReason::FileNotSigned,
        path,
        "a signature that covers the plugin",
        "a signed manifest without `sha256`",
        "ask its vendor to write the manifest with `oarlock plugin manifest --write` and to sign again",
    )
}

/// The refusal of a library that comes with a plugin, and is loaded with it.
fn part_of_plugin(path: &Path, owner: &Path) -> Refusal {
    let found = format!("a library that the manifest `{}` lists", owner.display());
    Refusal::new(RefusalReason::PartOfPlugin, path, "a plugin", found, "nothing needs to be done")
}

fn check_length(path: &Path, length: u64) -> Result<(), Refusal> {
    if length <= MAX_PLUGIN_BYTES {
        return Ok(());
    }
    let expected = format!("a shared object of at most {MAX_PLUGIN_BYTES} bytes");
    let remedy = "strip it, or move what is not code into files of its own";
    Err(Refusal::new(RefusalReason::NotASharedObject, path, expected, format!("{length} bytes"), remedy))
}

/// The bytes of the manifest, read once: what is signed is what is used.
fn read_manifest(library: &Path, context: &JudgeContext) -> Result<Option<Vec<u8>>, Refusal> {
    let path = PluginManifest::path_beside(library);
    // A dangling link is an error to report, not a plugin without a manifest.
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    context.identity.check_file(&path)?;
    PluginManifest::read_bytes(&path)
}
