//! The CUDA device: every GPU that an installed NVIDIA driver offers.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-cuda --features shared-object
//! ```
//!
//! The driver, NVRTC and cuBLASLt are opened at run time, so the plugin builds and loads without them, and then says what
//! is missing. This crate is what the driver does and no more; devices and kernels are those of `oarlock-portable`, and a
//! matrix product of cuBLASLt where that library is there.
//!
//! `cudarc` panics where a library or one of its functions is missing. Each library is looked for before it is called, and
//! the SDK makes an error of a panic.

mod blas;
mod compiler;
mod context;
mod error;
mod event;
mod find;
mod gpu;
mod idle;
mod libraries;
mod matmul;
mod product;
mod program;
mod queue;
#[cfg(test)]
mod tests;

use oarlock_portable::{Gpus, Store};
use oarlock_sdk::{Host, Plugin, Result, SupportLevel, abi};

use crate::gpu::Cuda;

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &Host) -> Result<Plugin<Gpus<Cuda>>> {
    let gpus = Gpus::new(host, Store::of_the_user());
    // `CUDA_VISIBLE_DEVICES` is not declared, since the driver itself obeys it.
    Ok(Plugin::device("oarlock-cuda", env!("CARGO_PKG_VERSION"), "cuda", gpus)
        .vendor("Oarlock")
        .support(
            SupportLevel::DRIVER_VERIFIED,
            "NVRTC compiled every kernel for sm_80, sm_90 and sm_100; not yet run on a chip",
        )
        .with_async()
        .kernels(oarlock_portable::kernels())
        .kernels([matmul::kernel()]))
}
