//! The engine: turns a model into a plan and runs it.

pub mod export;
mod fallback_policy;
mod fallback_review;
mod fallback_summary;
mod host_ops;
mod model_operand;
mod node_listener;
mod overridable_initializers;
pub mod passes;
mod plan;
mod precision;
mod progress;
mod run;
mod runtime_value;
mod session;
mod session_environment;
mod step_budget;

pub use fallback_policy::FallbackListener;
pub use fallback_summary::{FallbackOp, FallbackSummary};
pub use host_ops::{creates_text, run_text_op};
pub use model_operand::{ModelOperand, model_outputs};
pub use node_listener::{NodeEvent, NodeListener, NodeRun};
pub use oarlock_model::{Model, graph, import};
pub use plan::{
    ArenaRange, DeviceSupport, ExecutionPlan, NodeCost, RoundingReport, StepView, device_support, node_cost,
};
pub use precision::PrecisionMode;
pub use progress::PrepareProgressListener;
pub use run::{RunTimings, StepTiming};
pub use runtime_value::RuntimeValue;
pub use session::{Session, SessionOptions};
