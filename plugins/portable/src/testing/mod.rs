//! Tests of every op on a driver's device, for driver crates to run.
//!
//! Operands are awkward on purpose: they start in the middle of a block, have odd sizes, broadcast and have strides, and the
//! bytes around an output must not change.

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

/// A test by name.
pub type PluginCase = (&'static str, fn(&PluginMachine));
