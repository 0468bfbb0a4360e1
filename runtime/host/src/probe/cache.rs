//! Caches probe results, keyed by the hash of the plugin and the contract of the host.
//!
//! The cache is in `$XDG_CACHE_HOME/oarlock/probe`, is private to the user, and only saves time: an entry that is missing,
//! damaged or owned by another user counts as absent. An entry is valid only while nothing changes that the plugin depends on
//! besides its own bytes: the options that it was given, of which the entry stores the hash, since they may be secret; its libraries
//! and the variables in [`ProbeDependencies`]. As long as all of that stays the same, a plugin's identity and its violations
//! of the contract stay the same too. A crash or a timeout may have other causes, so it is cached for a few minutes only, in which it
//! does not delay every start. Results that depend on the system, such as a missing driver, are not cached.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::probe::dependencies::ProbeDependencies;
use crate::probe::{NamedProbeResult, PluginOptions, ProbeCommand, ProbeResult, name_by_file, run_probe};
use crate::{Digest, HOST_CONTRACT, ProcessIdentity, RefusalReason};

/// Limit on the size of an entry.
const MAX_ENTRY_BYTES: u64 = 1 << 20;
/// The time for which a plugin that crashed or timed out is not probed again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(300);
/// How a user has a plugin probed that the cache refuses.
const HOW_TO_ASK_AGAIN: &str = "ask it again with `oarlock plugins --ask-again`";
/// The version of the format of entries; it is part of their names.
const CACHE_VERSION: &str = "v4";

/// A directory of entries.
#[derive(Clone, Debug)]
pub(crate) struct ProbeCache {
    directory: Option<PathBuf>,
    identity: ProcessIdentity,
}

/// A plugin to be probed.
pub(crate) struct ProbeSubject<'a> {
    /// Its file, with all links resolved.
    pub(crate) path: &'a Path,
    pub(crate) digest: Digest,
    /// The libraries that the linker finds for it.
    pub(crate) linked: Vec<PathBuf>,
    /// The time that it has for each step.
    pub(crate) timeout: Duration,
}

/// An entry: the result of one probe and the conditions under which it is valid.
#[derive(Debug, Serialize, Deserialize)]
struct ProbeCacheEntry {
    probed: ProbeResult,
    /// The name of the plugin, which is the key of its options. Without it, the plugin saw at most the options that its file
    /// name implies.
    name: Option<String>,
    /// The hash of the options that the plugin saw.
    options: Digest,
    /// The time limit of the probe.
    timeout: Duration,
    dependencies: ProbeDependencies,
}

/// The time for which a result is valid.
#[derive(PartialEq, Eq)]
enum VerdictLifetime {
    ForGood,
    AWhile,
    Not,
}

impl VerdictLifetime {
    fn of_result(probed: &ProbeResult) -> Self {
        probed.verdict.as_ref().map_or_else(|refusal| Self::of_reason(refusal.reason), |_| Self::ForGood)
    }

    fn of_reason(reason: RefusalReason) -> Self {
        match reason {
            RefusalReason::ContractBroken
            | RefusalReason::SlotMissing
            | RefusalReason::BadName
            | RefusalReason::ContractVersion
            | RefusalReason::SanitizerMismatch
            | RefusalReason::EntryMissing => Self::ForGood,
            RefusalReason::ProbeCrashed | RefusalReason::ProbeTimedOut => Self::AWhile,
            _ => Self::Not,
        }
    }
}

impl ProbeCacheEntry {
    /// Probes the plugin.
    fn from_probe(command: &ProbeCommand, subject: &ProbeSubject<'_>, options: &PluginOptions) -> Self {
        // Taken before, so that a library that is replaced meanwhile makes the entry invalid.
        let dependencies = ProbeDependencies::of_linked(&subject.linked);
        let result = run_probe(command, subject.path, options, subject.timeout);
        Self::new(result, dependencies, subject, options)
    }

    fn new(
        result: NamedProbeResult,
        dependencies: ProbeDependencies,
        subject: &ProbeSubject<'_>,
        options: &PluginOptions,
    ) -> Self {
        let NamedProbeResult { probed, name, libraries } = result;
        let own_variable =
            probed.verdict.as_ref().ok().and_then(|info| info.visible_devices_variable.as_deref());
        let dependencies = dependencies.with_answer(&libraries, own_variable);
        let options = options_digest(options, subject.path, name.as_deref());
        Self { options, probed, name, timeout: subject.timeout, dependencies }
    }

    /// True if a probe now would have the same result.
    fn is_valid_for(&self, subject: &ProbeSubject<'_>, options: &PluginOptions) -> bool {
        let timed_out =
            self.probed.verdict.as_ref().is_err_and(|refusal| refusal.reason == RefusalReason::ProbeTimedOut);
        let options = options_digest(options, subject.path, self.name.as_deref());
        self.options == options
            && !(timed_out && self.timeout < subject.timeout)
            && self.dependencies.are_unchanged(&subject.linked)
    }
}

/// The hash of the options that a plugin with this file and this name sees.
fn options_digest(options: &PluginOptions, path: &Path, name: Option<&str>) -> Digest {
    let own = [name_by_file(path, options), name].into_iter().flatten().filter_map(|name| options.get(name));
    // Each text is preceded by its length, so different options never hash the same bytes.
    let text: String =
        own.flatten().map(|(key, value)| format!("{} {key}{} {value}", key.len(), value.len())).collect();
    Digest::hash_bytes(text.as_bytes())
}

impl ProbeCache {
    /// A cache in the user's cache directory. Without one, nothing is cached.
    pub(crate) fn new(cache_home: Option<&Path>, identity: ProcessIdentity) -> Self {
        Self { directory: cache_home.map(|home| home.join("oarlock/probe")), identity }
    }

    /// Returns the cached result, or probes. An entry contains no path, so the path is filled into the result.
    pub(crate) fn probe_cached(
        &self,
        command: &ProbeCommand,
        subject: &ProbeSubject<'_>,
        options: &PluginOptions,
    ) -> ProbeResult {
        let known = self.entry_file(subject).and_then(|file| self.read_entry(&file));
        match known.filter(|entry| entry.is_valid_for(subject, options)) {
            Some(ProbeCacheEntry { probed: mut known, .. }) => {
                if let Err(refusal) = &mut known.verdict {
                    refusal.file = subject.path.to_path_buf();
                }
                known
            }
            None => self.probe_afresh(command, subject, options),
        }
    }

    /// Probes, and replaces the cached result.
    pub(crate) fn probe_afresh(
        &self,
        command: &ProbeCommand,
        subject: &ProbeSubject<'_>,
        options: &PluginOptions,
    ) -> ProbeResult {
        let entry = ProbeCacheEntry::from_probe(command, subject, options);
        if let Some(file) = self.entry_file(subject) {
            // A cache that cannot be written only costs time.
            _ = if VerdictLifetime::of_result(&entry.probed) == VerdictLifetime::Not {
                self.remove_entry(&file)
            } else {
                self.write_entry(&file, &entry)
            };
        }
        entry.probed
    }

    fn entry_file(&self, subject: &ProbeSubject<'_>) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(entry_file_name(subject.digest)))
    }

    /// Removes an entry that is not true any more.
    fn remove_entry(&self, file: &Path) -> io::Result<()> {
        match file.parent().is_some_and(|directory| self.is_private(directory)) {
            true => std::fs::remove_file(file),
            false => Ok(()),
        }
    }

    fn read_entry(&self, file: &Path) -> Option<ProbeCacheEntry> {
        self.is_private(file.parent()?).then_some(())?;
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nofollow).open(file).ok()?;
        let metadata = file.metadata().ok()?;
        if metadata.uid() != self.identity.user || metadata.mode() & 0o022 != 0 {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MAX_ENTRY_BYTES).read_to_end(&mut bytes).ok()?;
        let mut entry: ProbeCacheEntry = serde_json::from_slice(&bytes).ok()?;
        if VerdictLifetime::of_result(&entry.probed) == VerdictLifetime::AWhile {
            let age = metadata.modified().ok()?.elapsed().ok().filter(|age| *age <= FAILURE_LIFETIME)?;
            if let Err(refusal) = &mut entry.probed.verdict {
                refusal.found = format!("{}, when it was last asked {}", refusal.found, age_text(age));
                refusal.remedy = format!("{}; once that is done, {HOW_TO_ASK_AGAIN}", refusal.remedy);
            }
        }
        Some(entry)
    }

    /// Writes an entry atomically, since several programs may do so at once.
    fn write_entry(&self, file: &Path, entry: &ProbeCacheEntry) -> io::Result<()> {
        let Some(directory) = file.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !self.is_private(directory) {
            return Ok(());
        }
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let unfinished = file.with_extension(format!("{}-{number}", std::process::id()));
        let written = create_private(&unfinished).and_then(|mut created| {
            created.write_all(&serde_json::to_vec(entry)?)?;
            std::fs::rename(&unfinished, file)
        });
        if written.is_err() {
            _ = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// True if nobody else could have put entries into the directory.
    fn is_private(&self, directory: &Path) -> bool {
        directory.symlink_metadata().is_ok_and(|metadata| {
            metadata.is_dir() && metadata.uid() == self.identity.user && metadata.mode() & 0o022 == 0
        })
    }
}

fn age_text(age: Duration) -> String {
    match (age.as_secs() / 60, age.as_secs()) {
        (0, seconds) => format!("{seconds} s ago"),
        (minutes, _) => format!("{minutes} min ago"),
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn entry_file_name(digest: Digest) -> String {
    // A host with a sanitizer refuses plugins that other hosts accept.
    let sanitizer = oarlock_abi::SANITIZER.0;
    format!("{digest}-{CACHE_VERSION}-{}-{HOST_CONTRACT}-{sanitizer}.json", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Refusal;

    const SHORT_TIMEOUT: Duration = Duration::from_millis(1);

    fn refused_entry(reason: RefusalReason) -> ProbeCacheEntry {
        let refusal = Refusal::new(reason, "/p/x.so", "an answer", "a crash", "tell its vendor");
        let probed = ProbeResult { verdict: Err(refusal), notes: vec!["it printed".to_owned()] };
        let name = Some("x".to_owned());
        let linked = ProbeDependencies::of_linked(&[]);
        let result = NamedProbeResult { probed, name, libraries: Vec::new() };
        ProbeCacheEntry::new(result, linked, &subject_at("/p/x.so", SHORT_TIMEOUT), &PluginOptions::new())
    }

    fn subject_at(path: &str, timeout: Duration) -> ProbeSubject<'_> {
        ProbeSubject { path: Path::new(path), digest: Digest::hash_bytes(b"x"), linked: Vec::new(), timeout }
    }

    /// A command that makes every real probe fail; this result is never cached.
    fn failing_command() -> ProbeCommand {
        ProbeCommand { program: "/nonexistent".into(), arguments: Vec::new() }
    }

    fn make_cache(home: &tempfile::TempDir) -> (ProbeCache, PathBuf) {
        let cache = ProbeCache::new(Some(home.path()), ProcessIdentity::of_process());
        (cache, home.path().join("oarlock/probe").join(entry_file_name(Digest::hash_bytes(b"x"))))
    }

    fn probe_reason_with(cache: &ProbeCache, options: &PluginOptions, timeout: Duration) -> RefusalReason {
        let probed = cache.probe_cached(&failing_command(), &subject_at("/q/y.so", timeout), options);
        let refusal = probed.verdict.unwrap_err();
        assert_eq!(refusal.file, Path::new("/q/y.so"));
        let is_from_cache = refusal.to_string().contains("--ask-again");
        assert!(is_from_cache || VerdictLifetime::of_reason(refusal.reason) != VerdictLifetime::AWhile);
        refusal.reason
    }

    fn probe_reason(cache: &ProbeCache) -> RefusalReason {
        probe_reason_with(cache, &PluginOptions::new(), SHORT_TIMEOUT)
    }

    #[test]
    fn a_plugin_that_hung_or_crashed_is_asked_again_after_a_while_and_a_breach_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = make_cache(&home);
        for (reason, later) in [
            (RefusalReason::ProbeTimedOut, RefusalReason::ProbeFailed),
            (RefusalReason::ProbeCrashed, RefusalReason::ProbeFailed),
            (RefusalReason::ContractBroken, RefusalReason::ContractBroken),
        ] {
            cache.write_entry(&entry, &refused_entry(reason)).unwrap();
            assert_eq!(probe_reason(&cache), reason);
            let long_ago = std::time::SystemTime::now() - FAILURE_LIFETIME - Duration::from_secs(1);
            File::options().write(true).open(&entry).unwrap().set_modified(long_ago).unwrap();
            assert_eq!(probe_reason(&cache), later);
        }
    }

    #[test]
    fn a_plugin_that_may_take_longer_now_is_asked_again() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = make_cache(&home);
        for (reason, later) in [
            (RefusalReason::ProbeTimedOut, RefusalReason::ProbeFailed),
            (RefusalReason::ProbeCrashed, RefusalReason::ProbeCrashed),
        ] {
            cache.write_entry(&entry, &refused_entry(reason)).unwrap();
            assert_eq!(probe_reason_with(&cache, &PluginOptions::new(), Duration::ZERO), reason);
            assert_eq!(probe_reason_with(&cache, &PluginOptions::new(), 2 * SHORT_TIMEOUT), later);
        }
    }

    #[test]
    fn a_plugin_whose_own_options_change_is_asked_again() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = make_cache(&home);
        cache.write_entry(&entry, &refused_entry(RefusalReason::ContractBroken)).unwrap();
        let options = |name: &str| -> PluginOptions {
            [(name.to_owned(), [("key".to_owned(), "value".to_owned())].into())].into()
        };
        assert_eq!(
            probe_reason_with(&cache, &options("another"), SHORT_TIMEOUT),
            RefusalReason::ContractBroken
        );
        assert_eq!(probe_reason_with(&cache, &options("x"), SHORT_TIMEOUT), RefusalReason::ProbeFailed);
        // The plugin calls itself `x`; its file is `y.so`.
        assert_eq!(probe_reason_with(&cache, &options("y"), SHORT_TIMEOUT), RefusalReason::ProbeFailed);
    }

    #[test]
    fn damaged_and_world_writable_probe_cache_entries_are_ignored() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = make_cache(&home);
        assert_eq!(probe_reason(&cache), RefusalReason::ProbeFailed);
        assert!(!entry.exists());

        cache.write_entry(&entry, &refused_entry(RefusalReason::ProbeCrashed)).unwrap();
        assert_eq!(probe_reason(&cache), RefusalReason::ProbeCrashed);
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(probe_reason(&cache), RefusalReason::ProbeFailed);

        cache.write_entry(&entry, &refused_entry(RefusalReason::ProbeCrashed)).unwrap();
        fs::set_permissions(entry.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(probe_reason(&cache), RefusalReason::ProbeFailed);

        fs::set_permissions(entry.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&entry, "{").unwrap();
        assert_eq!(probe_reason(&cache), RefusalReason::ProbeFailed);
    }

    #[test]
    fn a_fresh_probe_replaces_what_is_cached() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = make_cache(&home);
        cache.write_entry(&entry, &refused_entry(RefusalReason::ContractBroken)).unwrap();
        let subject = subject_at("/p/x.so", SHORT_TIMEOUT);
        let fresh = cache.probe_afresh(&failing_command(), &subject, &PluginOptions::new());
        assert_eq!(fresh.verdict.unwrap_err().reason, RefusalReason::ProbeFailed);
        assert!(!entry.exists(), "the old result is not true any more");
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        assert_eq!(
            probe_reason(&ProbeCache::new(None, ProcessIdentity::of_process())),
            RefusalReason::ProbeFailed
        );
    }
}
