//! Remembers what probes found out, by the hash of the plugin and the contract of the host.
//!
//! The cache lies in `$XDG_CACHE_HOME/oarlock/probe`, is the user's alone, and is only ever a way to save time: an entry
//! that is missing, damaged or not the user's is as good as none. What may change without the plugin is not kept: that a
//! probe could not be started, or that a library was missing. That one ran out of time is kept for a while, so that a
//! plugin that hangs does not hold up every start.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::probe::{ProbeCommand, Probed, probe};
use crate::{Digest, HOST_CONTRACT, Identity, Reason};

/// The most bytes of an entry.
const LARGEST: u64 = 1 << 20;
/// How long a plugin that did not answer in time is not asked again.
const PATIENCE: Duration = Duration::from_secs(3600);
/// What another layout of entries would be called.
const LAYOUT: &str = "v1";

/// Where answers are kept.
#[derive(Clone, Debug)]
pub(crate) struct ProbeCache {
    directory: Option<PathBuf>,
    identity: Identity,
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
        timeout: Duration,
    ) -> Probed {
        let entry = self.directory.as_ref().map(|directory| directory.join(file_name(digest)));
        if let Some(mut known) = entry.as_ref().and_then(|entry| self.read(entry)) {
            if let Err(refusal) = &mut known.verdict {
                refusal.file = path.to_path_buf();
            }
            return known;
        }
        let probed = probe(command, path, timeout);
        let passes = probed.verdict.as_ref().err().map(|refusal| refusal.reason);
        let is_kept = !matches!(passes, Some(Reason::ProbeFailed | Reason::LoadFailed));
        if let Some(entry) = entry.filter(|_| is_kept) {
            // A cache that cannot be written costs time and nothing else.
            _ = self.write(&entry, &probed);
        }
        probed
    }

    fn read(&self, entry: &Path) -> Option<Probed> {
        self.is_own(entry.parent()?).then_some(())?;
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(nofollow).open(entry).ok()?;
        let metadata = file.metadata().ok()?;
        if metadata.uid() != self.identity.user || metadata.mode() & 0o022 != 0 {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LARGEST).read_to_end(&mut bytes).ok()?;
        let mut known: Probed = serde_json::from_slice(&bytes).ok()?;
        if known.verdict.as_ref().is_err_and(|refusal| refusal.reason == Reason::ProbeTimedOut) {
            let age = metadata.modified().ok()?.elapsed().unwrap_or_default();
            if age > PATIENCE {
                return None;
            }
            let minutes = age.as_secs() / 60;
            known.notes.push(format!("not asked again for an hour; it was last asked {minutes} minutes ago"));
        }
        Some(known)
    }

    /// Writes an entry whole or not at all, since several programs may do so at once.
    fn write(&self, entry: &Path, probed: &Probed) -> io::Result<()> {
        let Some(directory) = entry.parent() else { return Ok(()) };
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        if !self.is_own(directory) {
            return Ok(());
        }
        let thread = format!("{:?}", std::thread::current().id());
        let number: String = thread.chars().filter(char::is_ascii_digit).collect();
        let unfinished = entry.with_extension(format!("{}-{number}", std::process::id()));
        let written = create(&unfinished).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(probed)?)?;
            std::fs::rename(&unfinished, entry)
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
    format!("{digest}-{LAYOUT}-{}-{}.json", env!("CARGO_PKG_VERSION"), HOST_CONTRACT)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Refusal;

    fn refused() -> Probed {
        let refusal =
            Refusal::new(Reason::ProbeCrashed, "/p/x.so", "an answer", "a crash", "tell its vendor");
        Probed { verdict: Err(refusal), notes: vec!["it printed".to_owned()] }
    }

    /// A command that makes every real probe fail, which is never kept.
    fn no_command() -> ProbeCommand {
        ProbeCommand { program: "/nonexistent".into(), arguments: Vec::new() }
    }

    #[test]
    fn a_plugin_that_hung_is_asked_again_after_a_while() {
        let home = tempfile::tempdir().unwrap();
        let cache = ProbeCache::new(Some(home.path()), Identity::of_process());
        let entry = home.path().join("oarlock/probe").join(file_name(Digest::of(b"x")));
        let mut hung = refused();
        hung.verdict.as_mut().unwrap_err().reason = Reason::ProbeTimedOut;
        cache.write(&entry, &hung).unwrap();
        assert_eq!(ask(&cache), Reason::ProbeTimedOut);
        let long_ago = std::time::SystemTime::now() - PATIENCE - Duration::from_secs(1);
        File::options().write(true).open(&entry).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(ask(&cache), Reason::ProbeFailed);
    }

    fn ask(cache: &ProbeCache) -> Reason {
        let probed = cache.probe(&no_command(), Path::new("/q/y.so"), Digest::of(b"x"), Duration::ZERO);
        let refusal = probed.verdict.unwrap_err();
        assert_eq!(refusal.file, Path::new("/q/y.so"));
        refusal.reason
    }

    #[test]
    fn an_entry_is_found_again_under_another_path_unless_it_is_damaged_or_open_to_others() {
        let home = tempfile::tempdir().unwrap();
        let cache = ProbeCache::new(Some(home.path()), Identity::of_process());
        let entry = home.path().join("oarlock/probe").join(file_name(Digest::of(b"x")));
        assert_eq!(ask(&cache), Reason::ProbeFailed);
        assert!(!entry.exists());

        cache.write(&entry, &refused()).unwrap();
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
