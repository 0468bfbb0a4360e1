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
mod tested;
#[cfg(test)]
mod testing;
mod unrolled;

use oarlock_sdk::{Host, Plugin, Result, abi};

use crate::device::Cpu;

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(host: &Host) -> Result<Plugin<Cpu>> {
    let cpu = Cpu::new(host);
    let (level, note) =
        tested::support(&machine::ProcessorFamily::here(&machine::processor_maker()), cpu.isa());
    let plugin = Plugin::device("oarlock-cpu", env!("CARGO_PKG_VERSION"), "cpu", cpu)
        .vendor("Oarlock")
        .package("oarlock")
        .support(level, note)
        .with_async()
        .kernels(kernels::all());
    Ok(plugin)
}
