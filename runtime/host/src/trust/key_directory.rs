//! The directory `keys` beside a configuration file: public keys that are trusted, and revocations.
//!
//! A key is trusted because its file is there, so users, administrators and packages add and remove keys without editing a file
//! that others edit too.

use std::path::{Path, PathBuf};

use crate::ProcessIdentity;
use crate::trust::key::TrustFileError;

/// The name of the directory.
const DIRECTORY_NAME: &str = "keys";
/// The extension of a public key.
pub const KEY_EXTENSION: &str = "pem";
/// The extension of a revocation.
pub const REVOCATION_EXTENSION: &str = "revoked";

/// The files in one or more directories of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyFiles {
    /// The public keys that signatures are verified with.
    pub trusted: Vec<PathBuf>,
    /// The statements that revoke keys.
    pub revocations: Vec<PathBuf>,
}

impl KeyFiles {
    /// The directory of keys that belongs to a configuration file.
    pub fn directory_beside(config: &Path) -> PathBuf {
        config.with_file_name(DIRECTORY_NAME)
    }

    /// Lists a directory, in the order of the names. Nobody else may be able to add a file. Without the directory, there are no
    /// keys.
    pub fn list_directory(directory: &Path, identity: ProcessIdentity) -> Result<Self, TrustFileError> {
        let mut files = Self::default();
        let unreadable = |error: std::io::Error| {
            let problem = format!("expected a directory of keys, found: {error}");
            TrustFileError::new(directory, problem, "make it a directory that you can read")
        };
        // A dangling link is an error to report, not a missing directory.
        if directory.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Ok(files);
        }
        identity.check_directory(directory).map_err(|refusal| {
            let problem = format!("expected {}, found {}", refusal.expected, refusal.found);
            TrustFileError::new(directory, problem, refusal.remedy)
        })?;
        for entry in directory.read_dir().map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some(KEY_EXTENSION) => files.trusted.push(path),
                Some(REVOCATION_EXTENSION) => files.revocations.push(path),
                _ => {}
            }
        }
        files.trusted.sort();
        files.revocations.sort();
        Ok(files)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn keys_and_revocations_are_listed_and_other_files_are_not() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = KeyFiles::directory_beside(&root.path().join("config.toml"));
        let list = || KeyFiles::list_directory(&directory, ProcessIdentity::of_process());
        assert_eq!(list(), Ok(KeyFiles::default()));
        fs::create_dir(&directory).expect("a directory");
        for name in ["b.pem", "a.pem", "c.revoked", "README", "a.pem~"] {
            fs::write(directory.join(name), "").expect("a file");
        }
        let files = list().expect("files");
        assert_eq!(files.trusted, [directory.join("a.pem"), directory.join("b.pem")]);
        assert_eq!(files.revocations, [directory.join("c.revoked")]);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("a mode");
        assert!(list().expect_err("an error").problem.contains("everybody can write to"));
        fs::remove_dir_all(&directory).expect("no directory");
        std::os::unix::fs::symlink("nowhere", &directory).expect("a link");
        assert!(list().is_err());
    }
}
