//! Tests of every op on a driver's device, for the crates of drivers to run.
//!
//! The operands are awkward on purpose: they start in the middle of a block, have odd sizes, are repeated and strided, and
//! what surrounds an output must stay as it is.

mod cases;
mod machine;
mod operand;
mod record;
mod run;

pub use cases::CASES;
pub use machine::Machine;
pub use operand::Data;
pub use record::sources;

/// One test: its name, and what it does.
pub type Case = (&'static str, fn(&Machine));
