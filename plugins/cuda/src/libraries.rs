//! Finds the CUDA libraries. Those that the dynamic linker finds come first, then those that NVIDIA's Python packages put beside
//! the plugin, so that packages installed together with pip work together.
//!
//! `cudarc` opens a library by its bare name. A library that is already open is found by that name, wherever it lies.

#![expect(unsafe_code, reason = "opening a library runs its code")]

use std::path::{Path, PathBuf};

use libloading::Library;
use oarlock_sdk::plugin_directory;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CudaLibrary {
    /// File name.
    file: &'static str,
    /// Directory of the Python package that contains it, relative to `site-packages`.
    directory: &'static str,
    /// Name of the Python package.
    package: &'static str,
    /// File-name prefix of libraries in the same directory that it opens by name.
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

/// Opens a library for the life of the process, if it is installed anywhere.
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

/// The message for a missing library.
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

/// The `site-packages` directory that contains this plugin.
fn python_packages_directory() -> Option<PathBuf> {
    plugin_directory()?.parent().map(PathBuf::from)
}

/// Files that must be open before the library looks for them by name.
fn companion_files(directory: &Path, wanted: CudaLibrary) -> Vec<PathBuf> {
    let Some(begin) = wanted.beside else { return Vec::new() };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(begin))
        .map(|entry| entry.path())
        .collect()
}

/// Opens a library and never closes it; returns true on success.
fn open_permanently(file: &Path) -> bool {
    // SAFETY: opening these NVIDIA libraries runs nothing but their own initialization; anyone who can write where they lie
    // can write the plugin itself.
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
