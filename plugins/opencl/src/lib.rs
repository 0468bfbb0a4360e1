//! The OpenCL device: every GPU, accelerator and processor that an installed OpenCL driver offers.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-opencl --features shared-object
//! ```
//!
//! The OpenCL library is opened at run time, so the plugin builds and loads without one, and then says what is missing. This
//! crate only wraps the driver; devices and kernels come from `oarlock-portable`.

mod error;
mod gpu;
#[cfg(test)]
mod tests;

use oarlock_portable::{GpuDevices, ProgramStore};
use oarlock_sdk::{HostServices, Plugin, Result, SupportLevel, abi};

use crate::gpu::OpenClGpu;

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &HostServices) -> Result<Plugin<GpuDevices<OpenClGpu>>> {
    let gpus = GpuDevices::new(host, ProgramStore::for_user());
    Ok(Plugin::for_device("oarlock-opencl", env!("CARGO_PKG_VERSION"), "opencl", gpus)
        .with_vendor("Oarlock")
        .with_visibility_variable("OARLOCK_OPENCL_VISIBLE_DEVICES")
        .with_support(
            SupportLevel::DRIVER_VERIFIED,
            "conformance suite 1.0 passed with PoCL 3.1 on an x86-64 processor, 2026-11-21",
        )
        .with_async()
        .with_kernels(oarlock_portable::all_kernels()))
}
