//! The CPU device: always present, linked into the program and buildable as a shared object, through the same table.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-cpu --features shared-object
//! ```

#[cfg(x86_vectors)]
mod amx;
mod constants;
mod device;
mod gemm;
mod isa;
mod kernels;
mod machine;
mod memory;
mod strips;
#[cfg(test)]
mod testing;
mod unrolled;

use oarlock_sdk::{Host, Plugin, Result, SupportLevel, abi};

use crate::device::Cpu;

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &Host) -> Result<Plugin<Cpu>> {
    let plugin = Plugin::device("oarlock-cpu", env!("CARGO_PKG_VERSION"), "cpu", Cpu::new(host))
        .vendor("Oarlock")
        .package("oarlock")
        .support(
            SupportLevel::HARDWARE_VERIFIED,
            "conformance suite 1.0 passed on an AMD EPYC (Zen 4) under Linux, 2026-11-21",
        )
        .with_async()
        .kernels(kernels::all());
    Ok(plugin)
}
