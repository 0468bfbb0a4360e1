//! Remembers what probes found out, by the hash of the plugin and the contract of the host.
//!
//! The cache lies in `$XDG_CACHE_HOME/oarlock/probe`, is the user's alone, and is only ever a way to save time: an entry
//! that is missing, damaged or not the user's is as good as none. Only what the bytes of a plugin decide is kept for
//! good: who it is, and how it breaks the contract. That it crashed or ran out of time is kept for a while, so that it
//! does not hold up every start. What the system decides, such as a missing driver, is not kept. An entry holds only
//! for the options the plugin was given, of which it has the hash, since they may be secret.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::probe::{Examined, Options, ProbeCommand, Probed, examine, name_by_file};
use crate::{Digest, HOST_CONTRACT, Identity, Reason};

/// The most bytes of an entry.
const LARGEST: u64 = 1 << 20;
/// How long a plugin that crashed or did not answer in time is not asked again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// What another layout of entries would be called.
const LAYOUT: &str = "v3";

/// Where answers are kept.
#[derive(Clone, Debug)]
pub(crate) struct ProbeCache {
    directory: Option<PathBuf>,
    identity: Identity,
}

/// What is kept of one probe.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    probed: Probed,
    /// The name of the plugin, which is the key of its options; without it the plugin saw those of its file at most.
    name: Option<String>,
    /// The hash of the options it saw.
    options: Digest,
    /// How long the plugin was given.
    timeout: Duration,
}

/// How long a verdict holds.
#[derive(PartialEq, Eq)]
enum Holds {
    ForGood,
    AWhile,
    Not,
}

impl Holds {
    fn of(probed: &Probed) -> Self {
        match probed.verdict.as_ref().map_err(|refusal| refusal.reason) {
            Ok(_) => Self::ForGood,
            Err(
                Reason::ContractBroken
                | Reason::SlotMissing
                | Reason::BadName
                | Reason::ContractVersion
                | Reason::SanitizerMismatch
                | Reason::EntryMissing,
            ) => Self::ForGood,
            Err(Reason::ProbeCrashed | Reason::ProbeTimedOut) => Self::AWhile,
            Err(_) => Self::Not,
        }
    }
}

impl Entry {
    fn new(examined: Examined, path: &Path, options: &Options, timeout: Duration) -> Self {
        let Examined { probed, name } = examined;
        Self { options: digest_of(options, path, name.as_deref()), probed, name, timeout }
    }

    /// Whether a probe today would be the same.
    fn is_about(&self, path: &Path, options: &Options, timeout: Duration) -> bool {
        let timed_out =
            self.probed.verdict.as_ref().is_err_and(|refusal| refusal.reason == Reason::ProbeTimedOut);
        let options = digest_of(options, path, self.name.as_deref());
        self.options == options && !(timed_out && self.timeout < timeout)
    }
}

/// The hash of what the plugin in a file sees, which says that it is called `name`.
fn digest_of(options: &Options, path: &Path, name: Option<&str>) -> Digest {
    let own = [name_by_file(path, options), name].into_iter().flatten().filter_map(|name| options.get(name));
    // A length before each text keeps different options from looking alike.
    let text: String =
        own.flatten().map(|(key, value)| format!("{} {key}{} {value}", key.len(), value.len())).collect();
    Digest::of(text.as_bytes())
}

impl ProbeCache {
    /// A cache below a user's cache directory; without one nothing is kept.
    pub(crate) fn new(cache_home: Option<&Path>, identity: Identity) -> Self {
        Self { directory: cache_home.map(|home| home.join("oarlock/probe")), identity }
    }

    /// What is known of a plugin, or else what a probe finds out. An entry names no file, so `path` is put into it.
    pub(crate) fn probe(
        &self,
        command: &ProbeCommand,
        path: &Path,
        digest: Digest,
        options: &Options,
        timeout: Duration,
    ) -> Probed {
        let file = self.directory.as_ref().map(|directory| directory.join(file_name(digest)));
        let known = file.as_ref().and_then(|file| self.read(file));
        if let Some(Entry { probed: mut known, .. }) =
            known.filter(|entry| entry.is_about(path, options, timeout))
        {
            if let Err(refusal) = &mut known.verdict {
                refusal.file = path.to_path_buf();
            }
            return known;
        }
        let entry = Entry::new(examine(command, path, options, timeout), path, options, timeout);
        if let Some(file) = file.filter(|_| Holds::of(&entry.probed) != Holds::Not) {
            // A cache that cannot be written costs time and nothing else.
            _ = self.write(&file, &entry);
        }
        entry.probed
    }

    fn read(&self, file: &Path) -> Option<Entry> {
        self.is_own(file.parent()?).then_some(())?;
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nofollow).open(file).ok()?;
        let metadata = file.metadata().ok()?;
        if metadata.uid() != self.identity.user || metadata.mode() & 0o022 != 0 {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let mut entry: Entry = serde_json::from_slice(&bytes).ok()?;
        if Holds::of(&entry.probed) == Holds::AWhile {
            let age = metadata.modified().ok()?.elapsed().ok().filter(|age| *age <= PATIENCE)?;
            let minutes = age.as_secs() / 60;
            let note = format!("not asked again for an hour; it was last asked {minutes} minutes ago");
            entry.probed.notes.push(note);
        }
        Some(entry)
    }

    /// Writes an entry whole or not at all, since several programs may do so at once.
    fn write(&self, file: &Path, entry: &Entry) -> io::Result<()> {
        let Some(directory) = file.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !self.is_own(directory) {
            return Ok(());
        }
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let unfinished = file.with_extension(format!("{}-{number}", std::process::id()));
        let written = create(&unfinished).and_then(|mut created| {
            created.write_all(&serde_json::to_vec(entry)?)?;
            std::fs::rename(&unfinished, file)
        });
        if written.is_err() {
            _ = std::fs::remove_file(&unfinished);
        }
        written
    }

    /// Whether nobody else could have put entries into the directory.
    fn is_own(&self, directory: &Path) -> bool {
        directory.symlink_metadata().is_ok_and(|metadata| {
            metadata.is_dir() && metadata.uid() == self.identity.user && metadata.mode() & 0o022 == 0
        })
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn file_name(digest: Digest) -> String {
    // A host with a sanitizer refuses what another one takes.
    let sanitizer = oarlock_abi::SANITIZER.0;
    format!("{digest}-{LAYOUT}-{}-{HOST_CONTRACT}-{sanitizer}.json", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Refusal;

    const SHORT: Duration = Duration::from_millis(1);

    fn refused(reason: Reason) -> Entry {
        let refusal = Refusal::new(reason, "/p/x.so", "an answer", "a crash", "tell its vendor");
        let probed = Probed { verdict: Err(refusal), notes: vec!["it printed".to_owned()] };
        let name = Some("x".to_owned());
        Entry::new(Examined { probed, name }, Path::new("/p/x.so"), &Options::new(), SHORT)
    }

    /// A command that makes every real probe fail, which is never kept.
    fn no_command() -> ProbeCommand {
        ProbeCommand { program: "/nonexistent".into(), arguments: Vec::new() }
    }

    fn place(home: &tempfile::TempDir) -> (ProbeCache, PathBuf) {
        let cache = ProbeCache::new(Some(home.path()), Identity::of_process());
        (cache, home.path().join("oarlock/probe").join(file_name(Digest::of(b"x"))))
    }

    fn ask_with(cache: &ProbeCache, options: &Options, timeout: Duration) -> Reason {
        let probed = cache.probe(&no_command(), Path::new("/q/y.so"), Digest::of(b"x"), options, timeout);
        let refusal = probed.verdict.unwrap_err();
        assert_eq!(refusal.file, Path::new("/q/y.so"));
        refusal.reason
    }

    fn ask(cache: &ProbeCache) -> Reason {
        ask_with(cache, &Options::new(), SHORT)
    }

    #[test]
    fn a_plugin_that_hung_or_crashed_is_asked_again_after_a_while_and_a_breach_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = place(&home);
        for (reason, later) in [
            (Reason::ProbeTimedOut, Reason::ProbeFailed),
            (Reason::ProbeCrashed, Reason::ProbeFailed),
            (Reason::ContractBroken, Reason::ContractBroken),
        ] {
            cache.write(&entry, &refused(reason)).unwrap();
            assert_eq!(ask(&cache), reason);
            let long_ago = std::time::SystemTime::now() - PATIENCE - Duration::from_secs(1);
            File::options().write(true).open(&entry).unwrap().set_modified(long_ago).unwrap();
            assert_eq!(ask(&cache), later);
        }
    }

    #[test]
    fn a_plugin_that_may_take_longer_now_is_asked_again() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = place(&home);
        for (reason, later) in
            [(Reason::ProbeTimedOut, Reason::ProbeFailed), (Reason::ProbeCrashed, Reason::ProbeCrashed)]
        {
            cache.write(&entry, &refused(reason)).unwrap();
            assert_eq!(ask_with(&cache, &Options::new(), Duration::ZERO), reason);
            assert_eq!(ask_with(&cache, &Options::new(), 2 * SHORT), later);
        }
    }

    #[test]
    fn a_plugin_whose_own_options_change_is_asked_again() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = place(&home);
        cache.write(&entry, &refused(Reason::ContractBroken)).unwrap();
        let options = |name: &str| -> Options {
            [(name.to_owned(), [("key".to_owned(), "value".to_owned())].into())].into()
        };
        assert_eq!(ask_with(&cache, &options("another"), SHORT), Reason::ContractBroken);
        assert_eq!(ask_with(&cache, &options("x"), SHORT), Reason::ProbeFailed);
        // The plugin is called `x`, and its file `y.so`.
        assert_eq!(ask_with(&cache, &options("y"), SHORT), Reason::ProbeFailed);
    }

    #[test]
    fn an_entry_is_found_again_under_another_path_unless_it_is_damaged_or_open_to_others() {
        let home = tempfile::tempdir().unwrap();
        let (cache, entry) = place(&home);
        assert_eq!(ask(&cache), Reason::ProbeFailed);
        assert!(!entry.exists());

        cache.write(&entry, &refused(Reason::ProbeCrashed)).unwrap();
        assert_eq!(ask(&cache), Reason::ProbeCrashed);
        fs::set_permissions(&entry, fs::Permissions::from_mode(0o622)).unwrap();
        assert_eq!(ask(&cache), Reason::ProbeFailed);

        fs::set_permissions(&entry, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(entry.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(ask(&cache), Reason::ProbeFailed);

        fs::set_permissions(entry.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&entry, "{").unwrap();
        assert_eq!(ask(&cache), Reason::ProbeFailed);
    }

    #[test]
    fn without_a_directory_nothing_is_kept() {
        assert_eq!(ask(&ProbeCache::new(None, Identity::of_process())), Reason::ProbeFailed);
    }
}
