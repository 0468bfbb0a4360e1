//! A layer that records every call through the plugin contract, as a trace that Chrome and Perfetto show.
//!
//! Switch it on with `layers = ["trace"]` in the configuration; `[plugin.trace] file = "…"` says where the trace goes.
//! A program that never gives up its runtime has the file whole when it ends.
//! The functions that stand before each slot are generated from the contract.

mod exit;
mod generated;
mod layer;
mod recorder;
mod traced_table;

use oarlock_sdk::{HostServices, Plugin, Result, abi};

/// Tells a host who this plugin is, for programs that link it.
pub const QUERY: abi::PluginQuery = oarlock_sdk::query!(plugin);

#[cfg(feature = "shared-object")]
oarlock_sdk::export!(plugin);

fn plugin(_host: &HostServices) -> Result<Plugin<layer::TraceLayer>> {
    let trace = layer::TraceLayer::default();
    Ok(Plugin::for_layer("trace", env!("CARGO_PKG_VERSION"), trace, layer::LAYER_TABLE)
        .with_vendor("Oarlock")
        .with_package("oarlock"))
}
