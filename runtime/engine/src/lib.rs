//! The engine: a model becomes a plan, and a plan runs.

mod environment;
pub mod export;
mod fallback;
pub mod graph;
pub mod import;
mod overridable_initializers;
pub mod passes;
mod plan;
mod plan_cache;
mod planned_graph;
mod precision;
mod progress;
mod run;
mod runtime_value;
mod session;

pub use fallback::{FallbackListener, FallbackOp, FallbackSummary};
pub use import::Model;
pub use plan::{ArenaSlot, DeviceSupport, ExecutionPlan, NodeCost, StepView, device_support, node_cost};
pub use precision::{PrecisionMode, RoundingReport};
pub use progress::PrepareProgressListener;
pub use run::{RunTimings, StepTiming, make_text, makes_text};
pub use runtime_value::RuntimeValue;
pub use session::{ModelOperand, Session, SessionOptions, model_outputs};
