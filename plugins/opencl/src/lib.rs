//! The OpenCL device: every GPU, accelerator and processor that an installed OpenCL driver offers.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-opencl --features shared-object
//! ```
//!
//! The OpenCL library is opened at run time, so the plugin builds and loads without one, and then says what is missing.
//! This crate is what the driver does and no more; devices and kernels are those of `oarlock-portable`.

mod error;
mod event;
mod find;
mod gpu;
mod idle;
mod queue;
#[cfg(test)]
mod tests;

use oarlock_portable::{Gpus, Store};
use oarlock_sdk::{Host, Plugin, Result, SupportLevel, abi};

use crate::gpu::OpenCl;

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &Host) -> Result<Plugin<Gpus<OpenCl>>> {
    let gpus = Gpus::new(host, Store::of_the_user());
    Ok(Plugin::device("oarlock-opencl", env!("CARGO_PKG_VERSION"), "opencl", gpus)
        .vendor("Oarlock")
        .visible_devices_variable("OARLOCK_OPENCL_VISIBLE_DEVICES")
        .support(
            SupportLevel::DRIVER_VERIFIED,
            "conformance suite 1.0 passed with PoCL 3.1 on an x86-64 processor, 2026-11-21",
        )
        .with_async()
        .kernels(oarlock_portable::kernels()))
}
