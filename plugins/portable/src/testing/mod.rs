//! Tests of every op on a driver's device, for the crates of drivers to run.
//!
//! The operands are awkward on purpose: they start in the middle of a block, have odd sizes, are repeated and strided, and
//! what surrounds an output must stay as it is.

mod cases;
mod driver;
mod machine;
mod operand;
mod record;
mod run;
mod trials;

pub use cases::CASES;
pub use driver::{check_driver, devices};
pub use machine::Machine;
pub use operand::Data;
pub use record::sources;
pub use trials::run_trials;

/// One test: its name, and what it does.
pub type Case = (&'static str, fn(&Machine));
