//! The CUDA device: every GPU that an installed NVIDIA driver offers.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-cuda --features shared-object
//! ```
//!
//! The driver, NVRTC and cuBLASLt are opened at run time, so the plugin builds and loads without them, and then says what is
//! missing. This crate only wraps the driver; devices and kernels come from `oarlock-portable`, plus a matrix product by cuBLASLt
//! if that library is installed.
//!
//! `cudarc` panics if a library or one of its functions is missing. Each library is checked for before it is called, and the SDK
//! converts a panic into an error.

mod compiler;
mod context;
mod cublas;
mod error;
mod gpu;
mod libraries;
mod matmul;
mod matmul_shape;
mod program;
mod tested_chips;
#[cfg(test)]
mod tests;

use oarlock_portable::{GpuDevices, ProgramStore};
use oarlock_sdk::{HostServices, Plugin, Result, abi};

use crate::gpu::CudaGpu;

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &HostServices) -> Result<Plugin<GpuDevices<CudaGpu>>> {
    let gpus = GpuDevices::new(host, ProgramStore::for_user());
    let (level, note) = tested_chips::support_level();
    // `CUDA_VISIBLE_DEVICES` is not declared as an option, since the driver itself obeys it.
    Ok(Plugin::for_device("oarlock-cuda", env!("CARGO_PKG_VERSION"), "cuda", gpus)
        .with_vendor("Oarlock")
        .with_support(level, note)
        .with_async()
        .with_kernels(oarlock_portable::all_kernels())
        .with_kernels([matmul::matmul_kernel()]))
}
