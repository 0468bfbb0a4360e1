//! Matrix products on the CPU by Intel MKL, through its single dynamic library `libmkl_rt`.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-mkl --features shared-object
//! ```
//!
//! The kernels score higher than the built-in ones, which are faster than MKL on some machines: load this plugin where MKL is
//! faster, or where results must be those of MKL.
//!
//! The plugin selects MKL's sequential layer and its layer with 32-bit integers by calls, not through the environment: products
//! are cut into parts for the host's thread pool. The layers are global to the process and can be chosen only once; if other code
//! using the same file chose first, its threading is accepted and 64-bit integers are refused.

#![expect(unsafe_code, reason = "the functions of the library are C")]

use core::ffi::c_int;
use std::sync::Arc;

use libloading::os::unix::Library;
use oarlock_blas::{BlasLibrary, BlasRequirement, CblasFunctions, resolve_function};
use oarlock_sdk::{HostServices, Plugin, Result, abi, ensure};

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

const MKL_REQUIREMENT: BlasRequirement = BlasRequirement {
    name: "MKL",
    files: &["libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"],
    directories: &["/opt/intel/oneapi/mkl/latest/lib"],
    // pip puts the plugin into `lib/python3.11/site-packages/oarlock_mkl`, and MKL into `lib`; with `--target` both lie side by
    // side.
    beside: &["../../..", "../lib"],
    remedy: "`pip install mkl`",
};

fn plugin(host: &HostServices) -> Result<Plugin> {
    let library = Arc::new(BlasLibrary::find_library(&MKL_REQUIREMENT, host, configure_mkl)?);
    Ok(Plugin::for_kernels("oarlock-mkl", env!("CARGO_PKG_VERSION"))
        .with_vendor("Oarlock")
        .with_kernels(oarlock_blas::blas_kernels(&library, host)))
}

type SetInterfaceLayer = unsafe extern "C" fn(c_int) -> c_int;

/// Interface layer with 32-bit integers.
const LP64_INTERFACE: c_int = 0;
/// Bit of the layer with 64-bit integers; another bit says how complex numbers are returned, which is not used here.
const ILP64_INTERFACE: c_int = 1;
/// Threading layer without threads.
const SEQUENTIAL_THREADING: c_int = 1;

fn configure_mkl(opened: &'static Library) -> Result<CblasFunctions> {
    let cblas = CblasFunctions::new(opened)?;
    // SAFETY: these are the types of the functions in every version of MKL, and they may be called at any time.
    let interface = unsafe {
        let set_interface = resolve_function::<SetInterfaceLayer>(opened, "MKL_Set_Interface_Layer")?;
        let set_threading = resolve_function::<SetInterfaceLayer>(opened, "MKL_Set_Threading_Layer")?;
        set_threading(SEQUENTIAL_THREADING);
        set_interface(LP64_INTERFACE)
    };
    check_lp64_interface(interface)?;
    Ok(cblas)
}

/// Refuses 64-bit integers that other code of the process chose before.
fn check_lp64_interface(interface: c_int) -> Result<()> {
    ensure!(
        interface >= 0 && interface & ILP64_INTERFACE == 0,
        unimplemented,
        "expected an MKL that counts with 32 bits, found one set to interface layer {interface} by other code of this process"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_with_64_bits_is_refused() {
        for interface in [ILP64_INTERFACE, ILP64_INTERFACE | 2, -1] {
            let error = check_lp64_interface(interface).unwrap_err();
            assert!(error.message().contains(&format!("interface layer {interface} ")), "{error}");
        }
        assert!(
            check_lp64_interface(LP64_INTERFACE).is_ok() && check_lp64_interface(LP64_INTERFACE | 2).is_ok()
        );
    }
}
