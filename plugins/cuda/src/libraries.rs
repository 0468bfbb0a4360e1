//! The libraries of CUDA. Those that the dynamic linker finds come first; after them those that the Python packages of NVIDIA
//! put beside the plugin, so that what pip installs together works together.
//!
//! `cudarc` opens a library by its name alone. One that is open already is found by that name, wherever it lies.

#![expect(unsafe_code, reason = "opening a library runs its code")]

use std::path::{Path, PathBuf};

use libloading::Library;
use oarlock_sdk::plugin_directory;

/// A library of CUDA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CudaLibrary {
    /// The name of its file.
    file: &'static str,
    /// The directory of the package that brings it, from the one that packages lie in.
    directory: &'static str,
    /// The package of Python that brings it.
    package: &'static str,
    /// How the names of files begin that lie beside it, and that it opens by name.
    beside: Option<&'static str>,
}

#[cfg(not(feature = "cuda13"))]
pub(crate) const NVRTC_LIBRARY: CudaLibrary = CudaLibrary {
    file: "libnvrtc.so.12",
    directory: "nvidia/cuda_nvrtc/lib",
    package: "nvidia-cuda-nvrtc-cu12",
    beside: Some("libnvrtc-builtins.so."),
};

#[cfg(not(feature = "cuda13"))]
pub(crate) const CUBLAS_LIBRARY: CudaLibrary = CudaLibrary {
    file: "libcublasLt.so.12",
    directory: "nvidia/cublas/lib",
    package: "nvidia-cublas-cu12",
    beside: None,
};

#[cfg(feature = "cuda13")]
pub(crate) const NVRTC_LIBRARY: CudaLibrary = CudaLibrary {
    file: "libnvrtc.so.13",
    directory: "nvidia/cu13/lib",
    package: "nvidia-cuda-nvrtc",
    beside: Some("libnvrtc-builtins.so."),
};

#[cfg(feature = "cuda13")]
pub(crate) const CUBLAS_LIBRARY: CudaLibrary = CudaLibrary {
    file: "libcublasLt.so.13",
    directory: "nvidia/cu13/lib",
    package: "nvidia-cublas",
    beside: None,
};

/// Opens a library for as long as the process runs, if it is anywhere.
pub(crate) fn open_library(wanted: CudaLibrary) {
    if open_permanently(Path::new(wanted.file)) {
        return;
    }
    let Some(packages) = python_packages_directory() else { return };
    let directory = packages.join(wanted.directory);
    for file in companion_files(&directory, wanted) {
        open_permanently(&file);
    }
    open_permanently(&directory.join(wanted.file));
}

/// What to say where there is none.
pub(crate) fn missing_library_message(wanted: CudaLibrary) -> String {
    let place = python_packages_directory().map_or_else(String::new, |packages| {
        format!(" or in `{}`", packages.join(wanted.directory).display())
    });
    format!(
        "library `{}` where the dynamic linker looks{place}, found none; install the Python package `{}` beside this plugin, or \
         add the directory of the library to `LD_LIBRARY_PATH`",
        wanted.file, wanted.package
    )
}

/// The directory that the packages lie in of which this plugin is one.
fn python_packages_directory() -> Option<PathBuf> {
    plugin_directory()?.parent().map(PathBuf::from)
}

/// The files that have to be open before the library looks for them.
fn companion_files(directory: &Path, wanted: CudaLibrary) -> Vec<PathBuf> {
    let Some(begin) = wanted.beside else { return Vec::new() };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begin))
        .map(|entry| entry.path())
        .collect()
}

/// Opens a library and never closes it; says whether that went well.
fn open_permanently(file: &Path) -> bool {
    // SAFETY: opening these libraries of NVIDIA runs nothing but their own start; who can write where they lie can write the
    // plugin itself.
    let opened = unsafe { Library::new(file) };
    opened.map(std::mem::forget).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_library_opens_by_name_is_found_beside_it() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["libnvrtc-builtins.so.12.9", "libnvrtc.so.12", "libother.so"] {
            std::fs::write(directory.path().join(name), "").expect("a file");
        }
        assert_eq!(
            companion_files(directory.path(), NVRTC_LIBRARY),
            [directory.path().join("libnvrtc-builtins.so.12.9")]
        );
        assert!(companion_files(directory.path(), CUBLAS_LIBRARY).is_empty());
        assert!(companion_files(Path::new("/nowhere"), NVRTC_LIBRARY).is_empty());
    }

    #[test]
    fn a_file_that_is_no_library_is_passed_over() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert!(!open_permanently(file.path()));
        assert!(open_permanently(Path::new("libc.so.6")));
    }

    #[test]
    fn what_is_missing_is_said_with_where_it_was_sought_and_what_brings_it() {
        let text = missing_library_message(NVRTC_LIBRARY);
        assert!(text.contains(NVRTC_LIBRARY.file) && text.contains(NVRTC_LIBRARY.package), "{text}");
        assert!(text.contains(NVRTC_LIBRARY.directory), "{text}");
    }
}
