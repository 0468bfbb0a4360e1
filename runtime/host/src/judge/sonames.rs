//! Finds the libraries that a plugin needs, because the error of a failed load has less detail.
//!
//! The search is glibc's: the object's `DT_RPATH` and those of the objects that need it (unless it has a `DT_RUNPATH`),
//! `LD_LIBRARY_PATH`, its `DT_RUNPATH`, the linker's cache, the default directories. Like the linker,
//! the search skips files for other processors. A library that the process has already loaded counts as found wherever its file
//! is, because the linker matches it by name. The dependencies of each library are searched for in turn.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::judge::elf::OpenLibrary;
use crate::judge::ld_cache::LdCache;
use crate::judge::search_path::{LibraryOrigin, LinkedObject, SearchDirectory};
use crate::{HostEnvironment, LinkedLibraries, Refusal, RefusalReason, RequiredLibrary, Version};

const DEFAULT_DIRECTORIES: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// The library search path of this process.
#[derive(Debug)]
pub struct LibrarySearch {
    library_path: Vec<PathBuf>,
    cache: LdCache,
    defaults: Vec<PathBuf>,
    /// The file names of the libraries in this process, listed on first use.
    loaded: OnceLock<BTreeSet<String>>,
}

/// A library file that the linker may load.
#[derive(Debug)]
pub(crate) struct LibraryFile {
    pub(crate) path: PathBuf,
    pub(crate) origin: LibraryOrigin,
    pub(crate) library: OpenLibrary,
}

/// The result of a search for all libraries of a plugin.
#[derive(Debug, Default)]
pub(crate) struct LibraryFindings {
    /// A sentence for each optional library that is missing.
    pub(crate) notes: Vec<String>,
    /// The libraries whose places the plugin decides, which it may bring along.
    pub(crate) of_plugin: Vec<LibraryFile>,
    /// The paths of all libraries that were found.
    pub(crate) all: BTreeSet<PathBuf>,
    /// The refusal for the first library that is missing.
    pub(crate) missing: Option<Refusal>,
}

/// What the linker has for a name: files, the one that it loads last, or a library that this process has loaded.
enum FoundLibrary {
    Files(Vec<LibraryFile>),
    Loaded,
}

impl LibrarySearch {
    /// The search path of this machine.
    pub fn of_system(environment: &HostEnvironment) -> Self {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let multiarch = ["/lib", "/usr/lib"].map(|directory| Path::new(directory).join(&triplet));
        let defaults = multiarch.into_iter().chain(DEFAULT_DIRECTORIES.map(PathBuf::from)).collect();
        let cache = LdCache::new(std::fs::read("/etc/ld.so.cache").unwrap_or_default());
        Self { library_path: environment.library_path.clone(), cache, defaults, loaded: OnceLock::new() }
    }

    /// Finds all libraries that the object at `path` is linked to, and all that its manifest names.
    pub(crate) fn find_libraries(
        &self,
        path: &Path,
        links: &LinkedLibraries,
        requires: &[RequiredLibrary],
    ) -> Result<LibraryFindings, Refusal> {
        let real_path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let object = LinkedObject {
            path: path.to_path_buf(),
            directory: parent_directory(&real_path),
            links: links.clone(),
            inherited: Vec::new(),
            origin: LibraryOrigin::Beside,
        };
        object.check_search_path(path)?;
        let mut findings = LibraryFindings::default();
        for requirement in requires {
            match self.find_requirement(&object, requirement) {
                Err(refusal) if requirement.optional => {
                    findings.notes.push(format!(
                        "optional library: expected {}, found {}",
                        refusal.expected, refusal.found
                    ));
                }
                Err(refusal) => _ = findings.missing.get_or_insert(refusal),
                Ok(files) => findings.add_files(mark_as_required(files)),
            }
        }
        self.find_needed(object, requires, &mut findings)?;
        Ok(findings)
    }

    fn find_needed(
        &self,
        plugin: LinkedObject,
        requires: &[RequiredLibrary],
        findings: &mut LibraryFindings,
    ) -> Result<(), Refusal> {
        let file = plugin.path.clone();
        let mut seen: BTreeSet<String> = plugin.links.soname.iter().cloned().collect();
        let mut unchecked = VecDeque::from([plugin]);
        while let Some(object) = unchecked.pop_front() {
            object.check_search_path(&file)?;
            for name in &object.links.needed {
                if !seen.insert(name.clone()) {
                    continue;
                }
                match self.find_library(&object, name) {
                    Some(FoundLibrary::Loaded) => {}
                    Some(FoundLibrary::Files(files)) => {
                        let inherited = object.directories_for_needed();
                        let is_required = requires.iter().any(|row| row.soname == *name);
                        let files = if is_required { mark_as_required(files) } else { files };
                        unchecked.extend(files.iter().map(|found| LinkedObject {
                            path: found.path.clone(),
                            directory: parent_directory(&found.path),
                            links: found.library.links.clone(),
                            inherited: inherited.clone(),
                            origin: found.origin,
                        }));
                        findings.add_files(files);
                    }
                    None => {
                        let needed_by = (object.path != file).then_some(object.path.as_path());
                        let package = requires
                            .iter()
                            .find(|row| row.soname == *name)
                            .and_then(|row| row.package.as_deref());
                        let refusal = self.missing_library(&file, &object, name, needed_by, package);
                        findings.missing.get_or_insert(refusal);
                    }
                }
            }
        }
        Ok(())
    }

    /// The files that the linker would load for the object at `path`, and those that its manifest names, as far as they are found.
    pub(crate) fn linked_files(
        &self,
        path: &Path,
        links: &LinkedLibraries,
        requires: &[RequiredLibrary],
    ) -> Vec<PathBuf> {
        let findings = self.find_libraries(path, links, requires);
        findings.map_or_else(|_| Vec::new(), |findings| findings.all.into_iter().collect())
    }

    fn find_requirement(
        &self,
        plugin: &LinkedObject,
        requirement: &RequiredLibrary,
    ) -> Result<Vec<LibraryFile>, Refusal> {
        let RequiredLibrary { soname, version, package, .. } = requirement;
        let Some(found) = self.find_library(plugin, soname) else {
            return Err(self.missing_library(&plugin.path, plugin, soname, None, package.as_deref()));
        };
        let FoundLibrary::Files(files) = found else { return Ok(Vec::new()) };
        let (Some(range), Some(LibraryFile { path, .. })) = (version, files.last()) else { return Ok(files) };
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        match version_in_name(&real) {
            Some(version) if !range.contains(&version) => Err(Refusal::new(
                RefusalReason::SonameMissing,
                &plugin.path,
                format!("`{soname}` of version `{range}`"),
                format!("version {version} in `{}`", real.display()),
                install_remedy(package.as_deref(), "install another version of the package"),
            )),
            _ => Ok(files),
        }
    }

    /// The files that the linker may load for `name` on behalf of `object`.
    fn find_library(&self, object: &LinkedObject, name: &str) -> Option<FoundLibrary> {
        let open = |path: PathBuf, origin| {
            let library = OpenLibrary::open_file(&path).ok()?;
            Some(LibraryFile { path, origin, library })
        };
        let in_directory = |directory: &SearchDirectory| {
            let paths = directory.files_for_name(name).into_iter();
            let files: Vec<LibraryFile> = paths.filter_map(|path| open(path, directory.origin)).collect();
            (!files.is_empty()).then_some(files)
        };
        let of_system = |path: &Path| open(path.to_path_buf(), LibraryOrigin::System).map(|file| vec![file]);
        if name.contains('/') {
            let file = open(object.expand_origin(name), object.entry_origin(name));
            return file.map(|file| FoundLibrary::Files(vec![file]));
        }
        let first = self.search_directories(object).iter().find_map(in_directory);
        let listed = || self.cache.files_for_soname(name).find_map(of_system);
        let usual = || self.defaults.iter().find_map(|directory| of_system(&directory.join(name)));
        let loaded = || self.loaded_libraries().contains(name).then_some(FoundLibrary::Loaded);
        first.or_else(listed).or_else(usual).map(FoundLibrary::Files).or_else(loaded)
    }

    /// The directories to search before the cache.
    fn search_directories(&self, object: &LinkedObject) -> Vec<SearchDirectory> {
        let runpath = object.expand_list(&object.links.runpath);
        let rpath = if runpath.is_empty() { object.directories_for_needed() } else { Vec::new() };
        let of_user = self.library_path.iter().map(|path| SearchDirectory::of_system(path));
        rpath.into_iter().chain(of_user).chain(runpath).collect()
    }

    fn missing_library(
        &self,
        file: &Path,
        object: &LinkedObject,
        name: &str,
        needed_by: Option<&Path>,
        package: Option<&str>,
    ) -> Refusal {
        let by = needed_by.map_or_else(String::new, |path| format!(", which `{}` needs", path.display()));
        let directories = self.search_directories(object);
        let mut places: Vec<String> =
            directories.iter().map(|directory| format!("`{}`", directory.path.display())).collect();
        places.push("the linker's cache and the default directories".to_owned());
        Refusal::new(
            RefusalReason::SonameMissing,
            file,
            format!("the library `{}`{by}", name.escape_debug()),
            format!("none in {}", places.join(", ")),
            install_remedy(
                package,
                "install the package that provides it, or add its directory to `LD_LIBRARY_PATH`",
            ),
        )
    }

    /// The file names of the libraries that this process has loaded.
    pub(crate) fn loaded_libraries(&self) -> &BTreeSet<String> {
        self.loaded.get_or_init(|| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            let files = maps.lines().filter_map(|line| line.rsplit_once('/'));
            files.map(|(_, name)| name.to_owned()).filter(|name| name.contains(".so")).collect()
        })
    }
}

impl LibraryFindings {
    /// Keeps the paths of all files, and the files whose places the plugin decides.
    fn add_files(&mut self, files: Vec<LibraryFile>) {
        self.all.extend(files.iter().map(|file| file.path.clone()));
        for file in files.into_iter().filter(|file| file.origin != LibraryOrigin::System) {
            if self.of_plugin.iter().all(|other| other.path != file.path) {
                self.of_plugin.push(file);
            }
        }
    }
}

/// Libraries that the manifest requires are of other packages, wherever they are.
fn mark_as_required(mut files: Vec<LibraryFile>) -> Vec<LibraryFile> {
    for file in files.iter_mut().filter(|file| file.origin == LibraryOrigin::Beside) {
        file.origin = LibraryOrigin::NamedByPlugin;
    }
    files
}

fn parent_directory(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_path_buf()
}

fn install_remedy(package: Option<&str>, otherwise: &str) -> String {
    package
        .map_or_else(|| otherwise.to_owned(), |package| format!("install or update the package `{package}`"))
}

/// The version that follows `.so.` in a file name.
fn version_in_name(path: &Path) -> Option<Version> {
    let name = path.file_name()?.to_str()?;
    name.split_once(".so.")?.1.parse().ok()
}

#[cfg(test)]
mod tests;
