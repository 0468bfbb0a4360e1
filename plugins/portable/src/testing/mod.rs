//! Tests of every op on a driver's device, for the crates of drivers to run.
//!
//! The operands are awkward on purpose: they start in the middle of a block, have odd sizes, are repeated and strided, and
//! what surrounds an output must stay as it is.

mod cases;
mod driver;
mod machine;
mod op_trial;
mod recording_gpu;
mod test_data;
mod trials;

pub use cases::CASES;
pub use driver::{check_driver, driver_devices};
pub use machine::PluginMachine;
pub use recording_gpu::record_sources;
pub use test_data::TestData;
pub use trials::run_trials;

/// One test: its name, and what it does.
pub type PluginCase = (&'static str, fn(&PluginMachine));
