//! Matrix products on the CPU by OpenBLAS, or by any other CBLAS library that the option `library` names.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-openblas --features shared-object
//! ```
//!
//! The kernels score higher than the built-in ones, which are faster than OpenBLAS on some machines: load this plugin where
//! OpenBLAS is faster, or where results must be those of OpenBLAS. Another library must use 32-bit integers and be thread-safe,
//! and the user must switch off its own threads.
//!
//! OpenBLAS is limited to one thread, since products are cut into parts for the host's thread pool. The setting is global to the
//! process, so other users of the same file in this process get one thread too.

#![expect(unsafe_code, reason = "the functions of the library are C")]

use core::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use libloading::os::unix::Library;
use oarlock_blas::{BlasLibrary, BlasRequirement, CblasFunctions, resolve_function};
use oarlock_sdk::{HostServices, Plugin, Result, abi, ensure};

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

/// Multi-threaded builds come first: they lock the buffers that concurrent callers share.
const OPENBLAS_REQUIREMENT: BlasRequirement = BlasRequirement {
    name: "OpenBLAS",
    files: &["libopenblas.so.0", "libopenblasp.so.0", "libopenblas.so"],
    directories: &[],
    beside: &[],
    remedy: "`apt install libopenblas0-pthread`",
};

fn plugin(host: &HostServices) -> Result<Plugin> {
    let library = Arc::new(BlasLibrary::find_library(&OPENBLAS_REQUIREMENT, host, configure_openblas)?);
    Ok(Plugin::for_kernels("oarlock-openblas", env!("CARGO_PKG_VERSION"))
        .with_vendor("Oarlock")
        .with_kernels(oarlock_blas::blas_kernels(&library, host)))
}

type SetThreadCount = unsafe extern "C" fn(c_int);
type QueryNumber = unsafe extern "C" fn() -> c_int;
type QueryText = unsafe extern "C" fn() -> *const c_char;

/// Result of `openblas_get_parallel` for a build without threads. An OpenMP build keeps a thread count for each calling thread.
const SINGLE_THREADED: c_int = 0;
const OPENMP: c_int = 2;

fn configure_openblas(opened: &'static Library) -> Result<CblasFunctions> {
    let cblas = CblasFunctions::new(opened)?;
    // SAFETY: these are the types of the functions in every version of OpenBLAS.
    let (config, parallel, set_threads) = unsafe {
        (
            resolve_function::<QueryText>(opened, "openblas_get_config"),
            resolve_function::<QueryNumber>(opened, "openblas_get_parallel"),
            resolve_function::<SetThreadCount>(opened, "openblas_set_num_threads"),
        )
    };
    let (Ok(config), Ok(parallel), Ok(set_threads)) = (config, parallel, set_threads) else {
        return Ok(cblas);
    };
    // SAFETY: both may be called at any time; the text is zero-terminated and is overwritten only by the next call.
    let (config, parallel) = unsafe { (CStr::from_ptr(config()).to_string_lossy().into_owned(), parallel()) };
    match thread_count_scope(&config, parallel)? {
        // SAFETY: it may be called on any thread at any time.
        ThreadCountScope::OfProcess => unsafe { set_threads(1) },
        // SAFETY: it may be called on any thread at any time.
        ThreadCountScope::OfEachCaller => return Ok(unsafe { cblas.with_thread_limiter(set_threads) }),
    }
    Ok(cblas)
}

/// Scope of OpenBLAS's thread-count setting.
#[derive(Debug, PartialEq)]
enum ThreadCountScope {
    OfProcess,
    OfEachCaller,
}

/// Derives the scope from what the build reports about itself, and refuses unusable builds.
fn thread_count_scope(config: &str, parallel: c_int) -> Result<ThreadCountScope> {
    ensure!(
        !config.contains("USE64BITINT"),
        unimplemented,
        "expected an OpenBLAS that counts with 32 bits, found one that counts with 64"
    );
    ensure!(
        parallel != SINGLE_THREADED,
        unimplemented,
        "expected an OpenBLAS that may be called from several threads, found one that is built without threads; \
         install one with {}",
        OPENBLAS_REQUIREMENT.remedy
    );
    Ok(if parallel == OPENMP { ThreadCountScope::OfEachCaller } else { ThreadCountScope::OfProcess })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_that_count_otherwise_or_have_no_threads_are_refused() {
        let wide = thread_count_scope("OpenBLAS 0.3.21 USE64BITINT DYNAMIC_ARCH", 1).unwrap_err();
        assert!(wide.message().ends_with("found one that counts with 64"), "{wide}");
        let alone = thread_count_scope("OpenBLAS 0.3.21 SINGLE_THREADED", 0).unwrap_err();
        assert!(alone.message().contains("found one that is built without threads"), "{alone}");
    }

    #[test]
    fn threads_are_set_once_or_by_each_caller() {
        assert_eq!(
            thread_count_scope("OpenBLAS 0.3.21 DYNAMIC_ARCH", 1).unwrap(),
            ThreadCountScope::OfProcess
        );
        assert_eq!(
            thread_count_scope("OpenBLAS 0.3.21 USE_OPENMP", 2).unwrap(),
            ThreadCountScope::OfEachCaller
        );
    }
}
