//! What the decorator `jit` needs: traces as Python sees them, branches and loops, and the signatures of calls.

mod control_flow;
mod signature;
mod trace_object;

pub(crate) use self::control_flow::{_cond, _while_loop};
pub(crate) use self::signature::_signature;
pub(crate) use self::trace_object::{_is_traced, _is_tracing, FunctionTrace};
