//! What an answer of a plugin depends on besides its own bytes: the libraries that it loads, and variables of the environment.
//!
//! The libraries that it is linked to are known from its file, even if it crashes. Those that it opened while it started are known
//! from the child that ran it. A library is known by its inode, size and times, since hashing a driver at each start takes too long.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Digest;

/// It changes when a library is installed, which the plugin may open by its name.
const LINKER_CACHE: &str = "/etc/ld.so.cache";

/// The state of a file; no two versions of a library share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    /// When its bytes and its metadata changed last, in seconds and nanoseconds.
    times: [i64; 4],
}

impl FileStamp {
    fn of_file(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            times: [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()],
        })
    }
}

/// Files by their paths; `None` for one that is missing.
type StampedFiles = BTreeMap<PathBuf, Option<FileStamp>>;

fn stamp_files<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> StampedFiles {
    paths.into_iter().map(|path| (path.clone(), FileStamp::of_file(path))).collect()
}

/// The libraries and variables with which a plugin gave an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProbeDependencies {
    /// The libraries that the linker finds for the plugin, and its cache.
    linked: StampedFiles,
    /// The libraries that were in the process that asked the plugin.
    loaded: StampedFiles,
    /// The variable with which users choose devices of the plugin.
    own_variable: Option<String>,
    /// The hash of the variables, whose values may be secret.
    variables: Digest,
}

impl ProbeDependencies {
    /// The present state of the files that the plugin is `linked` to.
    pub(crate) fn of_linked(linked: &[PathBuf]) -> Self {
        let linker_cache = PathBuf::from(LINKER_CACHE);
        let variables = variables_digest(std::env::vars_os(), None);
        let linked = stamp_files(linked.iter().chain([&linker_cache]));
        Self { linked, loaded: StampedFiles::new(), own_variable: None, variables }
    }

    /// Adds what the plugin turned out to use.
    pub(crate) fn with_answer(self, loaded: &[PathBuf], own_variable: Option<&str>) -> Self {
        Self {
            linked: self.linked,
            loaded: stamp_files(loaded),
            own_variable: own_variable.map(str::to_owned),
            variables: variables_digest(std::env::vars_os(), own_variable),
        }
    }

    /// True if a plugin that is `linked` to these files now would find everything as it was.
    pub(crate) fn are_unchanged(&self, linked: &[PathBuf]) -> bool {
        let now = Self::of_linked(linked).with_answer(&[], self.own_variable.as_deref());
        self.linked == now.linked
            && self.variables == now.variables
            && self.loaded.iter().all(|(path, stamp)| *stamp == FileStamp::of_file(path))
    }
}

/// The hash of the variables that decide what a driver loads, or which devices there are.
fn variables_digest(variables: impl Iterator<Item = (OsString, OsString)>, own: Option<&str>) -> Digest {
    let decides = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("LD_") || name.ends_with("_VISIBLE_DEVICES") || own == Some(&*name)
    };
    let sorted: BTreeMap<OsString, OsString> = variables.filter(|(name, _)| decides(name)).collect();
    let mut bytes = Vec::new();
    for text in sorted.iter().flat_map(|(name, value)| [name, value]) {
        // Each text is preceded by its length, so different variables never hash the same bytes.
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Digest::hash_bytes(&bytes)
}

/// The files whose code is in this process, apart from the program and the plugin itself.
pub(crate) fn libraries_in_process(plugin: &Path) -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_default();
    let code = maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.contains('x')));
    let mut files: Vec<PathBuf> =
        code.filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..]))).collect();
    files.retain(|file| *file != program && file != plugin);
    files.sort();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_library_that_is_replaced_rewritten_or_removed_changes_what_an_answer_depends_on() {
        let place = tempfile::tempdir().unwrap();
        let (linked, loaded) = (place.path().join("liblinked.so"), place.path().join("libloaded.so"));
        for changed in [&linked, &loaded] {
            for file in [&linked, &loaded] {
                fs::write(file, "old").unwrap();
            }
            let linked = [linked.clone()];
            let depends =
                || ProbeDependencies::of_linked(&linked).with_answer(std::slice::from_ref(&loaded), None);
            let before = depends();
            assert!(before.are_unchanged(&linked));
            fs::write(changed, "newer").unwrap();
            assert!(!before.are_unchanged(&linked));
            // The same size, and the time of the old one: its inode differs.
            let before = depends();
            let replacement = place.path().join("replacement");
            fs::write(&replacement, "other").unwrap();
            let time = fs::metadata(changed).unwrap().modified().unwrap();
            fs::File::options().write(true).open(&replacement).unwrap().set_modified(time).unwrap();
            fs::rename(&replacement, changed).unwrap();
            assert!(!before.are_unchanged(&linked));
            let before = depends();
            fs::remove_file(changed).unwrap();
            assert!(!before.are_unchanged(&linked));
        }
    }

    #[test]
    fn a_library_that_is_found_elsewhere_changes_what_an_answer_depends_on() {
        let here = [PathBuf::from("/nonexistent/a/lib.so")];
        let depends = ProbeDependencies::of_linked(&here);
        assert!(depends.are_unchanged(&here));
        assert!(!depends.are_unchanged(&[PathBuf::from("/nonexistent/b/lib.so")]));
        assert!(!depends.are_unchanged(&[]));
    }

    #[test]
    fn only_variables_of_the_linker_and_of_visible_devices_count() {
        let digest = |variables: &[(&str, &str)], own: Option<&str>| {
            let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
            variables_digest(variables, own)
        };
        let none = digest(&[], Some("ACME_ONLY"));
        assert_eq!(digest(&[("PWD", "/x"), ("LANG", "C")], Some("ACME_ONLY")), none);
        for counted in ["LD_LIBRARY_PATH", "ACME_ONLY", "CUDA_VISIBLE_DEVICES"] {
            assert_ne!(digest(&[(counted, "1")], Some("ACME_ONLY")), none);
        }
        assert_ne!(digest(&[("LD_A", "bLD_C")], None), digest(&[("LD_A", "b"), ("LD_C", "")], None));
    }

    #[test]
    fn the_libraries_of_this_process_are_listed_without_the_program() {
        let files = libraries_in_process(Path::new("/nonexistent"));
        let is_libc = |file: &PathBuf| file.file_name().is_some_and(|name| name == "libc.so.6");
        let libc = files.iter().find(|file| is_libc(file)).expect("the C library");
        assert!(!libraries_in_process(libc).contains(libc));
        assert!(!files.contains(&std::env::current_exe().unwrap()));
    }
}
