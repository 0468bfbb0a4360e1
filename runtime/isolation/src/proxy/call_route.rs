//! What a call is, besides its arguments, and why it may fail.

use std::time::Duration;

use oarlock_abi as abi;

use super::request_writer::ElementPolicy;
use crate::wire::WireBreach;
use crate::wire::failure::WireFailure;

/// Where a call goes, and what is special about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRoute {
    /// The number of the slot.
    pub(crate) slot: u32,
    /// The stream of the call, or 0.
    pub(crate) stream: u64,
    /// The event of the call, or 0.
    pub(crate) event: u64,
    /// True if nobody waits: a failure is reported when the stream is synchronized.
    pub(crate) posts: bool,
    /// True if the slot frees something, which succeeds on a lost device (rule R-6).
    pub(crate) frees: bool,
    /// The tensors whose elements the slot may read.
    pub(crate) elements: ElementPolicy,
    /// The call of a kernel, or null.
    pub(crate) call: *const abi::Call,
    /// A limit on the time that the call may take, in place of the configured one.
    pub(crate) limit: Option<Duration>,
}

impl CallRoute {
    pub(crate) const fn to_slot(slot: u32) -> Self {
        let elements = ElementPolicy::Attributes;
        Self {
            slot,
            stream: 0,
            event: 0,
            posts: false,
            frees: false,
            elements,
            call: std::ptr::null(),
            limit: None,
        }
    }
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The plugin, or the host on its behalf, reports a failure.
    Reported(WireFailure),
    /// The child is gone.
    Lost,
    /// The child broke the protocol.
    Breach(WireBreach),
}

impl From<WireBreach> for CallFailure {
    fn from(breach: WireBreach) -> Self {
        Self::Breach(breach)
    }
}
