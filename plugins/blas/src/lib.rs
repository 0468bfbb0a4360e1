//! What the kernel plugins for BLAS libraries share: finding and opening a library, and rows for `MatMul` and `Gemm` on it.
//!
//! A library is looked for when the plugin is asked who it is, so that a plugin without one is refused with a sentence
//! that helps. It is opened later, when a row is first asked about a call: opening one may start threads, which a plugin
//! must not do before it is used.
//!
//! The rows are for host-addressable memory of the device type `cpu`. Their score is above that of the built-in kernels,
//! which are faster than some libraries on some machines: whoever loads such a plugin is taken to want it. They do not
//! promise the same bits each time, because libraries choose their way by the alignment of operands; so in deterministic
//! mode the built-in kernels run.
//!
//! The library computes with one thread, and products are cut into parts for the threads of the host: a plugin has no
//! threads of its own, and two pools would fight for the same processors.

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
pub use crate::library::{BlasLibrary, BlasRequirement, CblasSetup};

/// The score of the rows; the built-in kernels have 100.
const KERNEL_SCORE: i32 = 110;

/// The rows of a library.
pub fn blas_kernels(library: &Arc<BlasLibrary>, host: &HostServices) -> Vec<Kernel<()>> {
    vec![matmul::matmul_kernel(library, *host), gemm::gemm_kernel(library, *host)]
}

/// An operand whose elements lie outside of its memory.
fn operand_out_of_bounds() -> PluginError {
    PluginError::out_of_range("expected operands as large as their shapes say, found smaller ones")
}
