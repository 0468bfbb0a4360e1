//! A layer that records every call through the plugin contract, as a trace for Chrome's viewer and Perfetto.
//!
//! Enable it with `layers = ["trace"]` in the configuration; `[plugin.trace] file = "…"` sets the output file. The file is also
//! complete for a program that never drops its runtime: it is closed when the process ends. The functions that wrap each slot are
//! generated from the contract.

mod exit;
mod generated;
mod layer;
mod recorder;
mod traced_table;

use oarlock_sdk::{HostServices, Plugin, Result, abi};

/// Entry point for programs that link the plugin statically.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(_host: &HostServices) -> Result<Plugin<layer::TraceLayer>> {
    let trace = layer::TraceLayer::default();
    Ok(Plugin::for_layer("trace", env!("CARGO_PKG_VERSION"), trace, layer::LAYER_TABLE)
        .with_vendor("Oarlock")
        .with_package("oarlock"))
}
