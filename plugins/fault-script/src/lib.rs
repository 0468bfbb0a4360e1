//! The language of scripted faults: which calls go wrong, and how. The simulated device and the fault layer both speak it.

mod fault_kind;
mod fault_plan;
mod fault_rule;
mod random;
mod statements;
mod words;

pub use fault_kind::FaultKind;
pub use fault_plan::{FaultAction, FaultPlan, ScriptedFault};
pub use random::SplitMix64;
pub use statements::{FAULT_STATEMENTS, FaultStatements};
pub use words::{ScriptError, StatementWords, parse_digits, parse_statements, parse_with_unit};
