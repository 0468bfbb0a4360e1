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

use crate::rights::has_raised_rights;

/// What every file starts with.
const MAGIC: &[u8] = b"oarlock-program-1\n";
const HASH_SIZE: usize = 32;

/// What a binary is found by: a hash of everything it depends on.
#[derive(Debug)]
pub(crate) struct Key([u8; HASH_SIZE]);

impl Key {
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
    fn seal(&self, binary: &[u8]) -> [u8; HASH_SIZE] {
        Sha256::new().chain_update(self.0).chain_update(binary).finalize().into()
    }
}

/// How many bytes of binaries are kept. Beyond that the oldest are dropped until half is left.
const MOST_BYTES: u64 = 256 << 20;

/// A directory of binaries, or none.
#[derive(Debug)]
pub struct Store {
    directory: Option<PathBuf>,
    most_bytes: u64,
}

impl Store {
    /// The user's store: `oarlock/programs` in `$XDG_CACHE_HOME` or in `~/.cache`. Without either, and
    /// with rights that the user does not have, nothing is kept.
    pub fn of_the_user() -> Self {
        if has_raised_rights() {
            return Self::nowhere();
        }
        let absolute = |variable: &str| {
            let value: Option<OsString> = std::env::var_os(variable);
            value.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        cache.map_or(Self::nowhere(), |cache| Self::at(cache.join("oarlock").join("programs")))
    }

    /// A store in a directory, which is made when something is kept.
    pub fn at(directory: PathBuf) -> Self {
        Self { directory: Some(directory), most_bytes: MOST_BYTES }
    }

    /// A store that keeps nothing.
    pub fn nowhere() -> Self {
        Self { directory: None, most_bytes: MOST_BYTES }
    }

    /// The binary of a key, if it is there and whole.
    pub(crate) fn read(&self, key: &Key) -> Option<Vec<u8>> {
        let directory = self.directory.as_deref().filter(|directory| is_private(directory))?;
        let content = fs::read(directory.join(key.file_name())).ok()?;
        let (seal, binary) = content.strip_prefix(MAGIC)?.split_at_checked(HASH_SIZE)?;
        (seal == key.seal(binary)).then(|| binary.to_vec())
    }

    /// Keeps a binary. A full or read-only disk is no failure: the program is compiled again next time.
    pub(crate) fn write(&self, key: &Key, binary: &[u8]) {
        // What is not kept is compiled again.
        let _ = self.try_write(key, binary);
    }

    fn try_write(&self, key: &Key, binary: &[u8]) -> Option<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let directory = self.directory.as_deref()?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory).ok()?;
        if !is_private(directory) {
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{}-{number}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|file| fill(file, key, binary))
            .and_then(|()| fs::rename(&temporary, directory.join(key.file_name())));
        if written.is_err() {
            // It may not even be there.
            let _ = fs::remove_file(&temporary);
        }
        self.make_room(directory);
        written.ok()
    }

    /// Drops the oldest binaries when there are too many. Files of other names are left alone.
    fn make_room(&self, directory: &Path) {
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

fn fill(mut file: File, key: &Key, binary: &[u8]) -> std::io::Result<()> {
    file.write_all(MAGIC)?;
    file.write_all(&key.seal(binary))?;
    file.write_all(binary)
}

/// Whether a directory is this user's and nobody else can put anything into it.
fn is_private(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn store() -> (tempfile::TempDir, Store, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("programs");
        (home, Store::at(directory.clone()), directory)
    }

    #[test]
    fn what_is_kept_is_found_by_its_source_and_driver_alone() {
        let (_home, store, directory) = store();
        let key = Key::new("source", "driver 1");
        assert_eq!(store.read(&key), None);
        store.write(&key, b"binary");
        assert_eq!(store.read(&key).unwrap(), b"binary");
        assert_eq!(store.read(&Key::new("source", "driver 2")), None);
        assert_eq!(store.read(&Key::new("sourced", "river 1")), None);
        assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_damaged_a_renamed_and_a_cut_file_are_not_used() {
        let (_home, store, directory) = store();
        let (key, other) = (Key::new("a", ""), Key::new("b", ""));
        store.write(&key, b"binary");
        let path = directory.join(key.file_name());
        fs::copy(&path, directory.join(other.file_name())).unwrap();
        assert_eq!(store.read(&other), None);
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..10], b"foreign", b""] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(store.read(&key), None);
        }
        store.write(&key, b"binary");
        assert_eq!(store.read(&key).unwrap(), b"binary");
    }

    #[test]
    fn a_directory_others_may_write_to_is_not_used() {
        let (_home, store, directory) = store();
        let key = Key::new("a", "");
        store.write(&key, b"binary");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(store.read(&key), None);
        store.write(&Key::new("b", ""), b"binary");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_full_store_drops_binaries_and_nothing_else() {
        let (_home, store, directory) = store();
        let store = Store { most_bytes: 10_000, ..store };
        store.write(&Key::new("first", ""), &[0; 1000]);
        fs::write(directory.join("notes"), [0; 20_000]).unwrap();
        for number in 0..30 {
            store.write(&Key::new(&number.to_string(), ""), &[0; 1000]);
        }
        let kept = (0..30).filter(|number| store.read(&Key::new(&number.to_string(), "")).is_some()).count();
        assert!((1..10).contains(&kept), "{kept} binaries are kept");
        assert!(directory.join("notes").exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_costs_nothing_but_time() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let key = Key::new("a", "");
        for store in [Store::at(home.path().join("file").join("programs")), Store::nowhere()] {
            store.write(&key, b"binary");
            assert_eq!(store.read(&key), None);
        }
    }
}
