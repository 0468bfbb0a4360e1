//! A library that was found; it is opened on first use.

#![expect(unsafe_code, reason = "opening a library runs code of it")]

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use oarlock_sdk::{HostServices, PluginError, Result};

use crate::cblas::CblasFunctions;
use crate::library_search::{BlasRequirement, LibrarySearchPath};

/// Configures a library that was just opened and resolves its functions, or says why it cannot be used.
pub type CblasSetup = fn(&'static Library) -> Result<CblasFunctions>;

/// A library that was found, with the result of opening it.
pub struct BlasLibrary {
    path: PathBuf,
    setup: CblasSetup,
    // Failures are kept too: support checks ask for every call, and opening the file again would fail again.
    opened: OnceLock<Result<CblasFunctions>>,
}

impl BlasLibrary {
    /// Finds a library: the file in the option `library`, or the first of the `wanted` files that exists.
    pub fn find_library(wanted: &BlasRequirement, host: &HostServices, setup: CblasSetup) -> Result<Self> {
        Ok(Self::from_path(
            LibrarySearchPath::from_process().find_library(wanted, host.option("library"))?,
            setup,
        ))
    }

    /// A library in a known file.
    pub fn from_path(path: PathBuf, setup: CblasSetup) -> Self {
        Self { path, setup, opened: OnceLock::new() }
    }

    /// The functions of the library, which is opened on the first call. The result is cached, errors included.
    pub fn cblas_functions(&self) -> Result<&CblasFunctions> {
        self.opened.get_or_init(|| self.open_library()).as_ref().map_err(Clone::clone)
    }

    fn open_library(&self) -> Result<CblasFunctions> {
        // `RTLD_NOW` finds a missing symbol here and not in the middle of a product. `RTLD_LOCAL` keeps the symbols of two BLAS
        // libraries in one process apart.
        // SAFETY: initializers of the library run, which the user chose by installing this plugin and this library.
        let opened = unsafe { Library::open(Some(&self.path), RTLD_NOW | RTLD_LOCAL) };
        let opened = opened.map_err(|error| {
            let cause =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            self.unusable_library(&format!(
                "a library that can be opened, found `{}`",
                // The cause is quoted in backticks.
                cause.replace('`', "'")
            ))
        })?;
        // Never closed: its threads and its thread-local storage live on.
        let opened: &'static Library = Box::leak(Box::new(opened));
        (self.setup)(opened).map_err(|error| {
            let message = error.message();
            self.unusable_library(message.strip_prefix("expected ").unwrap_or(message))
        })
    }

    fn unusable_library(&self, expected_and_found: &str) -> PluginError {
        // This code lets the host run its built-in kernels instead.
        PluginError::unimplemented(format!("expected in `{}` {expected_and_found}", self.path.display()))
    }
}

impl fmt::Debug for BlasLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_refused_with_its_name_each_time() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"no ELF").unwrap();
        let library = BlasLibrary::from_path(file.path().to_path_buf(), CblasFunctions::new);
        for _ in 0..2 {
            let message = library.cblas_functions().unwrap_err().message().to_owned();
            let begin =
                format!("expected in `{}` a library that can be opened, found `", file.path().display());
            assert!(message.starts_with(&begin), "{message}");
        }
    }

    #[test]
    fn a_library_without_blas_is_refused() {
        let message = BlasLibrary::from_path("libc.so.6".into(), CblasFunctions::new)
            .cblas_functions()
            .unwrap_err()
            .message()
            .to_owned();
        assert_eq!(message, "expected in `libc.so.6` the function `cblas_sgemm`, found a library without it");
    }
}
