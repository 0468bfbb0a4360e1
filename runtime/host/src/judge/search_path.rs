//! The directories in which an object asks the dynamic linker to look for libraries, and whose they are.

use std::path::{Path, PathBuf};

use crate::{LinkedLibraries, Refusal, RefusalReason};

/// Directories that glibc before 2.37 searches inside another, for a better build of the same library.
const FORMER_DIRECTORIES: [&str; 5] = ["tls", "haswell", "xeon_phi", "avx512_1", std::env::consts::ARCH];
/// How deep those may lie in each other.
const FORMER_DEPTH: usize = 4;

/// Who decides where a library lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LibraryOrigin {
    /// The plugin, by a path that starts at its own directory: the library is shipped with it.
    Beside,
    /// The plugin, but the library is of another package: the path is absolute, or the manifest requires the library.
    NamedByPlugin,
    /// The system or the user.
    System,
}

/// A directory to search.
#[derive(Clone, Debug)]
pub(crate) struct SearchDirectory {
    pub(crate) path: PathBuf,
    pub(crate) origin: LibraryOrigin,
}

/// An object whose dependencies are searched for, with the directories that it inherits from objects that need it.
pub(crate) struct LinkedObject {
    pub(crate) path: PathBuf,
    /// What `$ORIGIN` stands for. The linker resolves no links on the way to a library; the plugin it gets without any.
    pub(crate) directory: PathBuf,
    pub(crate) links: LinkedLibraries,
    pub(crate) inherited: Vec<SearchDirectory>,
    /// The plugin itself counts as beside itself.
    pub(crate) origin: LibraryOrigin,
}

impl SearchDirectory {
    /// A directory that the plugin has no part in.
    pub(crate) fn of_system(path: &Path) -> Self {
        Self { path: path.to_path_buf(), origin: LibraryOrigin::System }
    }

    /// The files that the linker may load for `name`. In directories of a plugin, these include builds for newer processors, which
    /// the linker prefers.
    pub(crate) fn files_for_name(&self, name: &str) -> Vec<PathBuf> {
        let mut directories = Vec::new();
        if self.origin != LibraryOrigin::System {
            let levels = self.path.join("glibc-hwcaps").read_dir().into_iter().flatten();
            directories.extend(levels.filter_map(|entry| Some(entry.ok()?.path())));
            add_former_directories(&self.path, FORMER_DEPTH, &mut directories);
        }
        directories.push(self.path.clone());
        directories.into_iter().map(|directory| directory.join(name)).filter(|path| path.is_file()).collect()
    }
}

fn add_former_directories(parent: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth == 0 {
        return;
    }
    for directory in FORMER_DIRECTORIES.map(|name| parent.join(name)).into_iter().filter(|path| path.is_dir())
    {
        add_former_directories(&directory, depth - 1, found);
        found.push(directory);
    }
}

impl LinkedObject {
    /// Refuses a plugin that searches the working directory, or a directory below it: whoever can write there could run code as
    /// the user. The linker does so for an empty entry in a list, and for every path that is not absolute.
    pub(crate) fn check_search_path(&self, plugin: &Path) -> Result<(), Refusal> {
        if self.origin == LibraryOrigin::System {
            return Ok(());
        }
        let lists = [("RUNPATH", &self.links.runpath), ("RPATH", &self.links.rpath)];
        let entries = lists.into_iter().flat_map(|(what, list)| {
            let list = list.as_deref().filter(|list| !list.is_empty());
            list.into_iter().flat_map(|list| list.split(':')).map(move |entry| (what, entry))
        });
        let needed = self.links.needed.iter().filter(|name| name.contains('/'));
        let all = entries.chain(needed.map(|name| ("needed library", name.as_str())));
        let relative = all.into_iter().find(|(_, entry)| self.expand_origin(entry).is_relative());
        let Some((what, entry)) = relative else { return Ok(()) };
        let by = if self.path == plugin { String::new() } else { format!(" of `{}`", self.path.display()) };
        Err(Refusal::new(
            RefusalReason::UnsafeSearchPath,
            plugin,
            "libraries from fixed directories, whatever the working directory is",
            format!("the {what} entry `{}`{by}", entry.escape_debug()),
            "link it with `-Wl,-rpath,'$ORIGIN'`, or install a build that is",
        ))
    }

    /// The directories of `DT_RPATH`, which also apply to the libraries that the object needs.
    pub(crate) fn directories_for_needed(&self) -> Vec<SearchDirectory> {
        let own = if self.links.runpath.is_none() { self.expand_list(&self.links.rpath) } else { Vec::new() };
        own.into_iter().chain(self.inherited.iter().cloned()).collect()
    }

    /// The directories of a list such as `DT_RUNPATH`.
    pub(crate) fn expand_list(&self, list: &Option<String>) -> Vec<SearchDirectory> {
        let list = list.as_deref().unwrap_or_default();
        let entries = list.split(':').filter(|entry| !entry.is_empty());
        entries
            .map(|entry| SearchDirectory {
                path: self.expand_origin(entry),
                origin: self.entry_origin(entry),
            })
            .collect()
    }

    /// Who decides where a path leads that this object names.
    pub(crate) fn entry_origin(&self, entry: &str) -> LibraryOrigin {
        match self.origin {
            LibraryOrigin::System => LibraryOrigin::System,
            LibraryOrigin::Beside if self.expand_origin(entry) != Path::new(entry) => LibraryOrigin::Beside,
            LibraryOrigin::Beside | LibraryOrigin::NamedByPlugin => LibraryOrigin::NamedByPlugin,
        }
    }

    /// Replaces `$ORIGIN` with the directory of the object.
    pub(crate) fn expand_origin(&self, entry: &str) -> PathBuf {
        let origin = self.directory.to_string_lossy();
        entry.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_object(runpath: &str, needed: &str) -> LinkedObject {
        let links = LinkedLibraries {
            runpath: Some(runpath.to_owned()),
            needed: vec![needed.to_owned()],
            ..LinkedLibraries::default()
        };
        let path = PathBuf::from("/p/libnpu.so");
        let directory = PathBuf::from("/p");
        LinkedObject { path, directory, links, inherited: Vec::new(), origin: LibraryOrigin::Beside }
    }

    #[test]
    fn every_entry_that_depends_on_the_working_directory_is_refused() {
        let check = |runpath: &str, needed: &str| {
            make_object(runpath, needed).check_search_path(Path::new("/p/libnpu.so"))
        };
        for good in ["", "$ORIGIN", "${ORIGIN}/../acme.libs", "/opt/acme:$ORIGIN/lib"] {
            assert_eq!(check(good, "libc.so.6"), Ok(()), "{good}");
        }
        for bad in [".", ":", "$ORIGIN:", "/opt::/usr", "lib", "../lib", "$LIB", "lib/$ORIGIN", "./$ORIGIN"] {
            let refusal = check(bad, "libc.so.6").expect_err(bad);
            assert_eq!(refusal.reason, RefusalReason::UnsafeSearchPath);
        }
        assert!(check("$ORIGIN", "lib/libx.so").expect_err("a path").found.contains("lib/libx.so"));
        assert_eq!(check("$ORIGIN", "/opt/libx.so"), Ok(()));
        assert_eq!(check("$ORIGIN", "$ORIGIN/libx.so"), Ok(()));
        let system = LinkedObject { origin: LibraryOrigin::System, ..make_object(".", "libc.so.6") };
        assert_eq!(system.check_search_path(Path::new("/p/libnpu.so")), Ok(()));
    }

    #[test]
    fn a_library_is_shipped_if_its_path_starts_at_one_that_is() {
        let origins = |object: &LinkedObject| {
            object
                .expand_list(&object.links.runpath)
                .iter()
                .map(|directory| directory.origin)
                .collect::<Vec<_>>()
        };
        let plugin = make_object("$ORIGIN/lib:/opt/acme", "libx.so");
        assert_eq!(origins(&plugin), [LibraryOrigin::Beside, LibraryOrigin::NamedByPlugin]);
        let of = |origin| LinkedObject { origin, ..make_object("$ORIGIN/lib:/opt/acme", "libx.so") };
        assert_eq!(origins(&of(LibraryOrigin::NamedByPlugin)), [LibraryOrigin::NamedByPlugin; 2]);
        assert_eq!(origins(&of(LibraryOrigin::System)), [LibraryOrigin::System; 2]);
    }

    #[test]
    fn builds_for_newer_processors_are_found_where_the_linker_prefers_them() {
        let root = tempfile::tempdir().expect("a directory");
        let arch = std::env::consts::ARCH;
        let places = [
            "glibc-hwcaps/x86-64-v3".to_owned(),
            format!("tls/haswell/{arch}"),
            arch.to_owned(),
            ".".to_owned(),
        ];
        for place in &places {
            std::fs::create_dir_all(root.path().join(place)).expect("a directory");
            std::fs::write(root.path().join(place).join("libx.so"), "").expect("a file");
        }
        let count = |origin| {
            SearchDirectory { path: root.path().to_path_buf(), origin }.files_for_name("libx.so").len()
        };
        assert_eq!(count(LibraryOrigin::Beside), places.len());
        assert_eq!(count(LibraryOrigin::System), 1);
    }
}
