//! The engine: a model becomes a plan, and a plan runs.

mod datum;
mod environment;
pub mod graph;
pub mod import;
pub mod passes;
mod plan;
mod program;
mod run;
mod session;

pub use datum::Datum;
pub use import::Model;
pub use plan::{Plan, StepInfo};
pub use run::Timing;
pub use session::{Session, SessionOptions, Slot};
