//! Finds a library without opening it.
//!
//! The search order is that of the dynamic linker: `LD_LIBRARY_PATH`, its cache and its default directories; after them the
//! directories where package managers put the library beside the plugin, and those of the vendor's installer. Relative
//! directories are skipped, so that a file in the working directory is never run by accident. In a program with elevated
//! privileges the variable is ignored, as the linker itself does.
//!
//! The option `library` takes precedence over all of them.

#![expect(unsafe_code, reason = "whether a program has raised rights is asked of the C library")]

use std::path::{Path, PathBuf};

use oarlock_sdk::{PluginError, Result, ensure, plugin_directory};

const DEFAULT_DIRECTORIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Where to search for a library, and what to tell users who lack it.
#[derive(Clone, Copy, Debug)]
pub struct BlasRequirement {
    /// Name of the library in messages.
    pub name: &'static str,
    /// File names, in order of preference.
    pub files: &'static [&'static str],
    /// Directories to search besides those of the dynamic linker.
    pub directories: &'static [&'static str],
    /// Where package managers put it, relative to the plugin's directory.
    pub beside: &'static [&'static str],
    /// How to install it, as a command in backticks.
    pub remedy: &'static str,
}

/// Search path of this process's dynamic linker.
pub(crate) struct LibrarySearchPath {
    directories: Vec<PathBuf>,
    /// Contents of the linker's cache, `ld.so.cache`, which lists installed libraries.
    cache: Vec<u8>,
    /// The plugin's directory.
    plugin: Option<PathBuf>,
}

impl LibrarySearchPath {
    pub(crate) fn from_process() -> Self {
        // SAFETY: the function takes a number, reads what the kernel gave the process at its start, and touches nothing else.
        let is_setuid = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
        let variable = std::env::var_os("LD_LIBRARY_PATH").filter(|_| !is_setuid).unwrap_or_default();
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        // Where Debian installs libraries, and where its linker looks by default.
        let multiarch = ["/lib", "/usr/lib"].map(|directory| Path::new(directory).join(&triplet));
        let directories = std::env::split_paths(&variable)
            .filter(|directory| directory.is_absolute())
            .chain(multiarch)
            .chain(DEFAULT_DIRECTORIES.map(PathBuf::from))
            .collect();
        Self {
            directories,
            // Without a cache the directories alone are searched.
            cache: std::fs::read("/etc/ld.so.cache").unwrap_or_default(),
            plugin: plugin_directory(),
        }
    }

    /// The file to open: the one the user named, or the first of the `wanted` files that exists.
    pub(crate) fn find_library(&self, wanted: &BlasRequirement, named: Option<&str>) -> Result<PathBuf> {
        if let Some(named) = named {
            let path = PathBuf::from(named);
            ensure!(
                // `dlopen` would search for a bare name, and take a relative path from the working directory.
                path.is_absolute() && path.is_file(),
                not_found,
                "expected the absolute path of a file with {} in the option `library`, found `{named}`",
                wanted.name
            );
            return Ok(path);
        }
        wanted
            .files
            .iter()
            // By name first and by place second: the preferred name wins wherever its file lies.
            .find_map(|file| self.locate_file(wanted, file))
            .ok_or_else(|| library_not_found(wanted))
    }

    fn locate_file(&self, wanted: &BlasRequirement, file: &str) -> Option<PathBuf> {
        // `canonicalize` fails for a directory that is not there, and leaves no `..` to show in messages.
        let beside = |way: &&str| self.plugin.as_ref()?.join(way).canonicalize().ok();
        let vendor = || wanted.directories.iter().map(PathBuf::from);
        let within = |directory: &Path| Some(directory.join(file)).filter(|path| path.is_file());
        self.directories
            .iter()
            .find_map(|directory| within(directory))
            // The bare name, so that the linker picks the variant for this processor.
            .or_else(|| self.is_cached(file).then(|| PathBuf::from(file)))
            .or_else(|| wanted.beside.iter().filter_map(beside).chain(vendor()).find_map(|it| within(&it)))
    }

    /// True if the cache lists a library, so that the linker finds it by its bare name. In the cache a name is a string of its
    /// own or the end of a path, and a zero terminates it.
    fn is_cached(&self, file: &str) -> bool {
        // Searched as plain bytes: the format is private to the linker and has changed before.
        let ended = [file.as_bytes(), &[0]].concat();
        let before = |at: usize| at.checked_sub(1).map(|at| self.cache[at]);
        let mut windows = self.cache.windows(ended.len()).enumerate();
        windows.any(|(at, window)| window == ended && matches!(before(at), Some(0 | b'/')))
    }
}

fn library_not_found(wanted: &BlasRequirement) -> PluginError {
    let quoted: Vec<_> = wanted.files.iter().map(|file| format!("`{file}`")).collect();
    let files = match quoted.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        all => all.concat(),
    };
    let further: String =
        wanted.directories.iter().map(|directory| format!(" or in `{directory}`")).collect();
    PluginError::not_found(format!(
        "expected {files} where the dynamic linker looks{further}, found none; install {} with {}, and where the linker \
         does not look there, put its directory into `LD_LIBRARY_PATH` or its file into the option `library`",
        wanted.name, wanted.remedy
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_REQUIREMENT: BlasRequirement = BlasRequirement {
        name: "Wanted",
        files: &["libwanted.so.1", "libwanted.so"],
        directories: &["/nowhere/wanted"],
        beside: &["../../lib"],
        remedy: "`get wanted`",
    };

    fn search_path(directories: &[&Path], cache: &[u8]) -> LibrarySearchPath {
        LibrarySearchPath {
            directories: directories.iter().map(|path| path.to_path_buf()).collect(),
            cache: cache.to_vec(),
            plugin: None,
        }
    }

    #[test]
    fn the_first_wanted_name_wins_wherever_it_lies() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("libwanted.so"), "").unwrap();
        let here = [directory.path()];
        let second = directory.path().join("libwanted.so");
        assert_eq!(search_path(&here, b"").find_library(&TEST_REQUIREMENT, None).unwrap(), second);
        let cached = search_path(&here, b"magic\0libwanted.so.1\0/lib/libwanted.so.1\0");
        assert_eq!(cached.find_library(&TEST_REQUIREMENT, None).unwrap(), Path::new("libwanted.so.1"));
    }

    #[test]
    fn what_a_package_manager_put_beside_the_plugin_comes_after_the_places_of_the_linker() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let [linker, lib, plugin] = ["linker", "lib", "packages/plugin"].map(|name| root.join(name));
        for directory in [&linker, &lib, &plugin] {
            std::fs::create_dir_all(directory).unwrap();
        }
        std::fs::write(lib.join("libwanted.so.1"), "").unwrap();
        let places = LibrarySearchPath { plugin: Some(plugin), ..search_path(&[&linker], b"") };
        assert_eq!(places.find_library(&TEST_REQUIREMENT, None).unwrap(), lib.join("libwanted.so.1"));
        std::fs::write(linker.join("libwanted.so.1"), "").unwrap();
        assert_eq!(places.find_library(&TEST_REQUIREMENT, None).unwrap(), linker.join("libwanted.so.1"));
    }

    #[test]
    fn only_a_whole_name_in_the_cache_counts() {
        for cache in [&b"\0libwanted.so.12\0"[..], b"\0otherlibwanted.so.1\0", b"libwanted.so.1\0", b""] {
            assert!(
                search_path(&[], cache).find_library(&TEST_REQUIREMENT, None).is_err(),
                "{}",
                cache.escape_ascii()
            );
        }
        assert!(search_path(&[], b"/lib/libwanted.so.1\0").find_library(&TEST_REQUIREMENT, None).is_ok());
    }

    #[test]
    fn a_missing_library_is_said_with_its_names_and_the_remedy() {
        let error = search_path(&[], b"").find_library(&TEST_REQUIREMENT, None).unwrap_err();
        assert_eq!(
            error.message(),
            "expected `libwanted.so.1` or `libwanted.so` where the dynamic linker looks or in `/nowhere/wanted`, found none; \
             install Wanted with `get wanted`, and where the linker does not look there, put its directory into \
             `LD_LIBRARY_PATH` or its file into the option `library`"
        );
    }

    #[test]
    fn a_named_file_is_taken_and_must_be_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let name = file.path().to_str().unwrap();
        assert_eq!(search_path(&[], b"").find_library(&TEST_REQUIREMENT, Some(name)).unwrap(), file.path());
        for wrong in ["libwanted.so", "/nowhere/libwanted.so", "/"] {
            let error = search_path(&[], b"").find_library(&TEST_REQUIREMENT, Some(wrong)).unwrap_err();
            assert!(error.message().ends_with(&format!("found `{wrong}`")), "{error}");
        }
    }
}
