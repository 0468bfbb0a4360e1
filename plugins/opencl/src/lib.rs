//! The OpenCL device: every GPU, accelerator and processor that an installed OpenCL driver offers.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-opencl --features shared-object
//! ```
//!
//! The OpenCL library is opened at run time, so the plugin builds and loads without one, and then says what is missing.
//! This crate drives: memory, streams, events, compiling and launching. The kernels are those of `oarlock-portable`.

mod asynchronous;
mod callbacks;
mod copies;
mod core;
mod device;
mod error;
mod find;
mod memory;
mod pinned;
mod program;
mod queue;
mod state;
#[cfg(test)]
mod tests;

use oarlock_sdk::{Host, Plugin, Result, SupportLevel, abi};

use crate::state::OpenCl;

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &Host) -> Result<Plugin<OpenCl>> {
    Ok(Plugin::device("oarlock-opencl", env!("CARGO_PKG_VERSION"), "opencl", OpenCl::new(host))
        .vendor("Oarlock")
        .visible_devices_variable("OARLOCK_OPENCL_VISIBLE_DEVICES")
        .support(
            SupportLevel::DRIVER_VERIFIED,
            "conformance suite 1.0 passed with PoCL 3.1 on an x86-64 processor, 2026-11-21",
        )
        .with_async()
        .kernels(oarlock_portable::kernels()))
}
