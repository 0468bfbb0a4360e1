//! Disk cache of compiled programs, to speed up the next process.
//!
//! Only the user may write to the directory, because its contents are executed. Each file carries a hash of its contents, so
//! damage is noticed. Any failure here costs no more than a recompile.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::setuid::is_setuid;

/// Magic bytes at the start of every file.
const PROGRAM_FILE_MAGIC: &[u8] = b"oarlock-program-1\n";
const HASH_SIZE: usize = 32;

/// Cache key: a hash of everything that the binary depends on.
#[derive(Debug)]
pub(crate) struct ProgramKey([u8; HASH_SIZE]);

impl ProgramKey {
    pub(crate) fn new(source: &str, identity: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [source, identity] {
            // The length keeps `ab` and `c` apart from `a` and `bc`.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    fn file_name(&self) -> String {
        self.0.iter().fold(String::new(), |mut name, byte| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        })
    }

    /// Hash stored in a file. It covers the key, so a file under the wrong name is noticed too.
    fn seal_hash(&self, binary: &[u8]) -> [u8; HASH_SIZE] {
        Sha256::new().chain_update(self.0).chain_update(binary).finalize().into()
    }
}

/// Size limit of the cache in bytes. Beyond it the oldest files are deleted until half is left.
const MAX_STORED_BYTES: u64 = 256 << 20;

/// A directory of binaries, or a disabled cache.
#[derive(Debug)]
pub struct ProgramStore {
    directory: Option<PathBuf>,
    most_bytes: u64,
}

impl ProgramStore {
    /// The user's cache: `oarlock/programs` in `$XDG_CACHE_HOME` or `~/.cache`. Disabled if neither is set, or if the program
    /// runs with elevated privileges.
    pub fn for_user() -> Self {
        if is_setuid() {
            return Self::without_directory();
        }
        let absolute = |variable: &str| {
            let value: Option<OsString> = std::env::var_os(variable);
            // A relative path would lead into the working directory, where others may have put programs.
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        cache.map_or(Self::without_directory(), |cache| {
            Self::in_directory(cache.join("oarlock").join("programs"))
        })
    }

    /// A cache in a directory, which is created with the first binary.
    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory: Some(directory), most_bytes: MAX_STORED_BYTES }
    }

    /// A disabled cache.
    pub fn without_directory() -> Self {
        Self { directory: None, most_bytes: MAX_STORED_BYTES }
    }

    /// Returns the binary of a key, if its file exists and is intact.
    pub(crate) fn read_binary(&self, key: &ProgramKey) -> Option<Vec<u8>> {
        // Checked before each read, since permissions may change while the process runs.
        let directory = self.directory.as_deref().filter(|directory| is_private_directory(directory))?;
        let content = fs::read(directory.join(key.file_name())).ok()?;
        let (seal, binary) = content.strip_prefix(PROGRAM_FILE_MAGIC)?.split_at_checked(HASH_SIZE)?;
        (seal == key.seal_hash(binary)).then(|| binary.to_vec())
    }

    /// Stores a binary. A full or read-only disk is no error: the program is compiled again next time.
    pub(crate) fn write_binary(&self, key: &ProgramKey, binary: &[u8]) {
        // A binary that was not stored is compiled again.
        let _ = self.try_write_binary(key, binary);
    }

    fn try_write_binary(&self, key: &ProgramKey, binary: &[u8]) -> Option<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.directory.as_deref()?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
        if !is_private_directory(directory) {
            return None;
        }
        // Process id and counter give every writer a file of its own.
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{}-{number}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            // Neither follows a link nor opens a file that exists.
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|file| write_file(file, key, binary))
            // Renaming is atomic: a reader finds the whole file or none. Nothing is synced to disk first, because the hash detects a file
            // that a power failure cut.
            .and_then(|()| fs::rename(&temporary, directory.join(key.file_name())));
        if written.is_err() {
            // The temporary file may not even exist.
            let _ = fs::remove_file(&temporary);
        }
        self.evict_oldest(directory);
        written.ok()
    }

    /// Deletes the oldest binaries once the cache is too large. Leaves foreign files alone.
    fn evict_oldest(&self, directory: &Path) {
        // Temporary files have other names, so those of running writers are left alone too.
        let is_binary =
            |name: &str| name.len() == 2 * HASH_SIZE && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_binary))
            .filter_map(|entry| {
                let found = entry.metadata().ok()?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            })
            .collect();
        let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
        if size <= self.most_bytes {
            return;
        }
        // By time. A read does not change it, so the oldest go first, even if they are in use.
        files.sort();
        for (_, bytes, path) in files {
            // Half, so that the next writes need not delete anything.
            if size <= self.most_bytes / 2 {
                break;
            }
            // Another process may have deleted it first.
            let _ = fs::remove_file(path);
            size -= bytes;
        }
    }
}

fn write_file(mut file: File, key: &ProgramKey, binary: &[u8]) -> std::io::Result<()> {
    file.write_all(PROGRAM_FILE_MAGIC)?;
    file.write_all(&key.seal_hash(binary))?;
    file.write_all(binary)
}

/// True if the directory belongs to this user and no one else can write to it.
fn is_private_directory(directory: &Path) -> bool {
    // Not `metadata`: a link could be turned to another directory after the check.
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn test_store() -> (tempfile::TempDir, ProgramStore, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("programs");
        (home, ProgramStore::in_directory(directory.clone()), directory)
    }

    #[test]
    fn what_is_kept_is_found_by_its_source_and_driver_alone() {
        let (_home, store, directory) = test_store();
        let key = ProgramKey::new("source", "driver 1");
        assert_eq!(store.read_binary(&key), None);
        store.write_binary(&key, b"binary");
        assert_eq!(store.read_binary(&key).unwrap(), b"binary");
        assert_eq!(store.read_binary(&ProgramKey::new("source", "driver 2")), None);
        assert_eq!(store.read_binary(&ProgramKey::new("sourced", "river 1")), None);
        assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_damaged_a_renamed_and_a_cut_file_are_not_used() {
        let (_home, store, directory) = test_store();
        let (key, other) = (ProgramKey::new("a", ""), ProgramKey::new("b", ""));
        store.write_binary(&key, b"binary");
        let path = directory.join(key.file_name());
        fs::copy(&path, directory.join(other.file_name())).unwrap();
        assert_eq!(store.read_binary(&other), None);
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..10], b"foreign", b""] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(store.read_binary(&key), None);
        }
        store.write_binary(&key, b"binary");
        assert_eq!(store.read_binary(&key).unwrap(), b"binary");
    }

    #[test]
    fn a_directory_others_may_write_to_is_not_used() {
        let (_home, store, directory) = test_store();
        let key = ProgramKey::new("a", "");
        store.write_binary(&key, b"binary");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(store.read_binary(&key), None);
        store.write_binary(&ProgramKey::new("b", ""), b"binary");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_full_store_drops_binaries_and_nothing_else() {
        let (_home, store, directory) = test_store();
        let store = ProgramStore { most_bytes: 10_000, ..store };
        store.write_binary(&ProgramKey::new("first", ""), &[0; 1000]);
        fs::write(directory.join("notes"), [0; 20_000]).unwrap();
        for number in 0..30 {
            store.write_binary(&ProgramKey::new(&number.to_string(), ""), &[0; 1000]);
        }
        let kept = (0..30)
            .filter(|number| store.read_binary(&ProgramKey::new(&number.to_string(), "")).is_some())
            .count();
        assert!((1..10).contains(&kept), "{kept} binaries are kept");
        assert!(directory.join("notes").exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_costs_nothing_but_time() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let key = ProgramKey::new("a", "");
        for store in [
            ProgramStore::in_directory(home.path().join("file").join("programs")),
            ProgramStore::without_directory(),
        ] {
            store.write_binary(&key, b"binary");
            assert_eq!(store.read_binary(&key), None);
        }
    }
}
