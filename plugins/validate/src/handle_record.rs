//! What is known about a handle: where it was made, and what may still happen to it.

use std::backtrace::Backtrace;
use std::fmt;

use oarlock_layer::HandleKind;

use crate::block_access::PendingAccesses;

/// Where something was made or freed.
#[derive(Clone, Debug)]
pub(crate) struct HandleOrigin {
    /// The number of the call.
    pub(crate) call: u64,
    /// The name of its slot.
    pub(crate) slot: &'static str,
    /// The stack of the caller, if the user wants it.
    pub(crate) stack: Option<String>,
}

impl HandleOrigin {
    pub(crate) fn new(call: u64, slot: &'static str, with_stack: bool) -> Self {
        let stack = with_stack.then(|| Backtrace::force_capture().to_string());
        Self { call, slot, stack }
    }
}

impl fmt::Display for HandleOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`, call {}", self.slot, self.call)?;
        self.stack.as_ref().map_or(Ok(()), |stack| write!(formatter, ", from:\n{stack}"))
    }
}

/// A handle that is alive.
#[derive(Debug)]
pub(crate) struct HandleRecord {
    pub(crate) device: u32,
    /// Of a block, its size in bytes.
    pub(crate) size: u64,
    pub(crate) made: HandleOrigin,
    /// Of a block, the work that may still read or write it.
    pub(crate) pending: PendingAccesses,
}

/// What a handle is called in messages.
pub(crate) fn handle_noun(kind: HandleKind) -> &'static str {
    match kind {
        HandleKind::Memory => "block",
        HandleKind::Stream => "stream",
        HandleKind::Event => "event",
        HandleKind::Error => "error",
    }
}

/// The same with its article.
pub(crate) fn handle_phrase(kind: HandleKind) -> String {
    let article = if matches!(kind, HandleKind::Event | HandleKind::Error) { "an" } else { "a" };
    format!("{article} {}", handle_noun(kind))
}

/// The rule about a handle that is not alive.
pub(crate) fn handle_rule(kind: HandleKind) -> &'static str {
    match kind {
        HandleKind::Memory => "M-1",
        HandleKind::Error => "R-1",
        HandleKind::Stream | HandleKind::Event => "A-3",
    }
}
