//! A layer that records every call through the plugin contract, as a trace for Chrome's viewer and Perfetto.
//!
//! Enable it with `layers = ["trace"]` in the configuration; `[plugin.trace] file = "…"` sets the output file. The file is also
//! complete for a program that never drops its runtime: it is closed when the process ends.

mod recorder;
mod trace_work;

oarlock_layer::export_layer!(trace_work::TraceWork);
