//! The CPU device, linked into the program or built as a shared object, through the same table.
//!
//! ```text
//! cargo build --release --package oarlock-plugin-cpu --features shared-object
//! ```
//!
//! This crate only assembles the plugin. The device is in `base`, and the kernels are in the neighboring crates.

mod conformance_runs;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::machine;
use oarlock_sdk::{HostServices, Kernel, Plugin, Result, abi};

/// Identifies this plugin to a host that links it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

/// The kernels of each crate. If several kernels accept the same operands, the first one runs.
const KERNEL_CRATES: [fn() -> Vec<Kernel<Cpu>>; 5] = [
    oarlock_cpu_movement::movement_kernels,
    oarlock_cpu_elementwise::elementwise_kernels,
    oarlock_cpu_algebra::algebra_kernels,
    oarlock_cpu_nn::nn_kernels,
    oarlock_cpu_nhwc::nhwc_kernels,
];

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
        .with_kernels(KERNEL_CRATES.iter().flat_map(|kernels| kernels()));
    Ok(plugin)
}
