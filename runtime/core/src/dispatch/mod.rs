//! Dispatch: from a call of an op to the kernel that runs it.
//!
//! An [`Op`] is a call site: a place in a program from which an op is called. It caches calls by their [`signature`].
//! The first call with a new signature is resolved ([`resolve`]): shape inference runs, the registry yields a kernel,
//! and the kernel is prepared. The result is a [`resolved_call`]; later calls with the same signature only allocate
//! their outputs and run the kernel.

mod allocating_outputs;
mod bound_call;
mod contiguous;
mod descriptors;
mod fallback;
mod op;
mod op_definition;
mod op_invocation;
mod prepare;
mod resolve;
mod resolved_call;
mod reusable_call;
mod signature;

pub use bound_call::{BoundCall, MemoryLocation};
pub use fallback::CpuFallback;
pub use op::{Op, with_nested_ops};
pub use op_invocation::{OpInvocation, OpOutputs};
pub use prepare::{ConstantInput, ExpectedInput, PrepareOutcome, PreparedCall};
pub use reusable_call::ReusableCall;
