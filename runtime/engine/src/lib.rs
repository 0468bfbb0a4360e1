//! The engine: a model becomes a plan, and a plan runs.

mod datum;
mod defaults;
mod environment;
pub mod export;
mod fallback;
pub mod graph;
pub mod import;
pub mod passes;
mod plan;
mod plans;
mod precision;
mod program;
mod progress;
mod run;
mod session;

pub use datum::Datum;
pub use fallback::{FallbackListener, FallbackOp, FallbackSummary};
pub use import::Model;
pub use plan::{Ability, Cost, Lodging, Plan, StepInfo, ability, cost};
pub use precision::{Precision, Rounding};
pub use progress::Progress;
pub use run::{Timing, Timings, make_text, makes_text};
pub use session::{Session, SessionOptions, Slot, outputs};
