//! Dispatch: from an op to the kernel that runs it.
//!
//! An [`Op`] is a place in a program from which an operator is called. What calls have in common, their
//! [`signature`], is looked up there; the first call with a new one is resolved ([`resolve`]): shapes are inferred, a row of
//! the registry is chosen, its kernel readied. What comes out is a [`resolved_call`], and later calls with the same signature do
//! nothing but take memory for the outputs and call the kernel.

mod allocating_outputs;
mod descriptors;
mod fallback;
mod op;
mod post_kernel;
mod prepare;
mod resolve;
mod resolved_call;
mod reusable_call;
mod signature;

pub(crate) use fallback::FallbackCounters;
pub use fallback::{CpuFallback, FallbackCount};
pub use op::{Op, OpInvocation, OpOutputs};
pub(crate) use post_kernel::PostKernelChecks;
pub use prepare::{BoundCall, ExpectedInput, MemoryLocation, PrepareOutcome, PreparedCall};
pub use reusable_call::ReusableCall;
