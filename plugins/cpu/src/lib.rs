//! The CPU device: always present, linked into the program and buildable as a shared object, through the same table.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-cpu --features shared-object
//! ```

#[cfg(x86_vectors)]
mod amx;
mod conformance_runs;
mod constant_cache;
mod device;
mod gemm;
mod isa;
mod kernels;
mod machine;
mod memory;
mod row_blocks;
#[cfg(test)]
mod testing;
mod unrolled;

use oarlock_sdk::{HostServices, Plugin, Result, abi};

use crate::device::Cpu;

/// Identifies this plugin to a host that links it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &HostServices) -> Result<Plugin<Cpu>> {
    let cpu = Cpu::new(host);
    let (level, note) = conformance_runs::support_level(
        &machine::ProcessorFamily::detect_family(&machine::processor_vendor()),
        cpu.isa(),
    );
    let plugin = Plugin::for_device("oarlock-cpu", env!("CARGO_PKG_VERSION"), "cpu", cpu)
        .with_vendor("Oarlock")
        .with_package("oarlock")
        .with_support(level, note)
        .with_async()
        .with_kernels(kernels::all_kernels());
    Ok(plugin)
}
