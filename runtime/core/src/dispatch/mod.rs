//! Dispatch: from an op to the kernel that runs it.
//!
//! An [`Op`] is a place in a program from which an operator is called. What calls have in common, their
//! [`signature`], is looked up there; the first call with a new one is resolved ([`resolve`]): shapes are inferred, a row of
//! the registry is chosen, its kernel readied. What comes out is a [`site`], and later calls with the same signature do
//! nothing but take memory for the outputs and call the kernel.

mod ahead;
mod fallback;
mod launch;
mod op;
mod outputs;
mod raw;
mod resolve;
mod signature;
mod site;
mod watch;

pub use ahead::{Expected, Packed, Place, Readied, Ready};
pub(crate) use fallback::Fallbacks;
pub use fallback::{CpuFallback, FallbackCount};
pub use launch::Launch;
pub use op::{Invocation, Op, Outputs};
pub(crate) use watch::Watch;
