//! Shared by the kernel plugins for BLAS libraries: finding and opening a library, and kernels for `MatMul` and `Gemm` on it.
//!
//! The library is searched for when the plugin is queried, so a plugin without one is refused with a helpful message. It is
//! opened later, when a kernel is first asked about a call: opening a library may start threads, which a plugin must not do
//! before it is used.
//!
//! The kernels work on host-addressable memory of the device type `cpu`. Their score is above that of the built-in kernels,
//! although some libraries are slower on some machines: a user who loads such a plugin is taken to want it. They are not marked
//! as deterministic, because libraries choose their code path by the alignment of operands; in deterministic mode the built-in
//! kernels run.
//!
//! The library computes with one thread, and products are cut into parts for the host's thread pool: a plugin has no threads of
//! its own, and two pools would compete for the same processors.

mod cblas;
mod gemm;
mod library;
mod library_search;
mod matmul;
mod product;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::Arc;

use oarlock_sdk::{HostServices, Kernel, PluginError};

pub use crate::cblas::{CblasFunctions, resolve_function};
pub use crate::library::{BlasLibrary, CblasSetup};
pub use crate::library_search::BlasRequirement;

/// The built-in kernels have a score of 100.
const KERNEL_SCORE: i32 = 110;

/// Kernel records for `MatMul` and `Gemm` on a library.
pub fn blas_kernels(library: &Arc<BlasLibrary>, host: &HostServices) -> Vec<Kernel<()>> {
    vec![matmul::matmul_kernel(library, *host), gemm::gemm_kernel(library, *host)]
}

fn operand_out_of_bounds() -> PluginError {
    PluginError::out_of_range("expected operands as large as their shapes say, found smaller ones")
}
