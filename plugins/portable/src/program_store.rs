//! Compiled programs on disk, so that the next process starts faster.
//!
//! The directory belongs to the user alone: what lies in it is run. Every file says what it holds by hash, so a damaged one
//! is noticed, and nothing that goes wrong here costs more than compiling again.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::privileges::has_elevated_privileges;

/// What every file starts with.
const PROGRAM_FILE_MAGIC: &[u8] = b"oarlock-program-1\n";
const HASH_SIZE: usize = 32;

/// What a binary is found by: a hash of everything it depends on.
#[derive(Debug)]
pub(crate) struct ProgramKey([u8; HASH_SIZE]);

impl ProgramKey {
    pub(crate) fn new(source: &str, identity: &str) -> Self {
        let mut hash = Sha256::new();
        for part in [source, identity] {
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

    /// The hash a file carries. The key is a part of it, so that a file under another's name is noticed.
    fn seal_hash(&self, binary: &[u8]) -> [u8; HASH_SIZE] {
        Sha256::new().chain_update(self.0).chain_update(binary).finalize().into()
    }
}

/// How many bytes of binaries are kept. Beyond that the oldest are dropped until half is left.
const MAX_STORED_BYTES: u64 = 256 << 20;

/// A directory of binaries, or none.
#[derive(Debug)]
pub struct ProgramStore {
    directory: Option<PathBuf>,
    most_bytes: u64,
}

impl ProgramStore {
    /// The user's store: `oarlock/programs` in `$XDG_CACHE_HOME` or in `~/.cache`. Without either, and
    /// with rights that the user does not have, nothing is kept.
    pub fn for_user() -> Self {
        if has_elevated_privileges() {
            return Self::without_directory();
        }
        let absolute = |variable: &str| {
            let value: Option<OsString> = std::env::var_os(variable);
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        cache.map_or(Self::without_directory(), |cache| {
            Self::in_directory(cache.join("oarlock").join("programs"))
        })
    }

    /// A store in a directory, which is made when something is kept.
    pub fn in_directory(directory: PathBuf) -> Self {
        Self { directory: Some(directory), most_bytes: MAX_STORED_BYTES }
    }

    /// A store that keeps nothing.
    pub fn without_directory() -> Self {
        Self { directory: None, most_bytes: MAX_STORED_BYTES }
    }

    /// The binary of a key, if it is there and whole.
    pub(crate) fn read_binary(&self, key: &ProgramKey) -> Option<Vec<u8>> {
        let directory = self.directory.as_deref().filter(|directory| is_private_directory(directory))?;
        let content = fs::read(directory.join(key.file_name())).ok()?;
        let (seal, binary) = content.strip_prefix(PROGRAM_FILE_MAGIC)?.split_at_checked(HASH_SIZE)?;
        (seal == key.seal_hash(binary)).then(|| binary.to_vec())
    }

    /// Keeps a binary. A full or read-only disk is no failure: the program is compiled again next time.
    pub(crate) fn write_binary(&self, key: &ProgramKey, binary: &[u8]) {
        // What is not kept is compiled again.
        let _ = self.try_write_binary(key, binary);
    }

    fn try_write_binary(&self, key: &ProgramKey, binary: &[u8]) -> Option<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.directory.as_deref()?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
        if !is_private_directory(directory) {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{}-{number}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|file| write_file(file, key, binary))
            .and_then(|()| fs::rename(&temporary, directory.join(key.file_name())));
        if written.is_err() {
            // It may not even be there.
            let _ = fs::remove_file(&temporary);
        }
        self.evict_oldest(directory);
        written.ok()
    }

    /// Drops the oldest binaries when there are too many. Files of other names are left alone.
    fn evict_oldest(&self, directory: &Path) {
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
        files.sort();
        for (_, bytes, path) in files {
            if size <= self.most_bytes / 2 {
                break;
            }
            // Another process may have dropped it first.
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

/// Whether a directory is this user's and nobody else can put anything into it.
fn is_private_directory(directory: &Path) -> bool {
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
