//! Where everything is in the shared memory.

use std::sync::atomic::AtomicU32;

use super::bell::Bell;

/// The number of threads that can call a plugin at the same time; more threads wait for their turn.
pub(crate) const LANES: usize = 64;
/// Requests that a lane holds while the child is behind.
pub(crate) const REQUEST_SLOTS: usize = 16;
/// The room for one request. A longer one goes through the arena.
pub(crate) const REQUEST_BYTES: usize = 4096;
/// The room for a reply, which may be an error with long texts.
pub(crate) const REPLY_BYTES: usize = 64 << 10;
/// The pieces of copies between device and ordinary host memory. They fit into the second cache level.
pub(crate) const STAGING_BYTES: usize = 256 << 10;
/// The pieces of a lane that are in flight at the same time.
pub(crate) const STAGING_PIECES: usize = 4;

const PAGE: usize = 4096;
pub(crate) const REQUESTS_AT: usize = PAGE;
pub(crate) const REPLY_AT: usize = REQUESTS_AT + REQUEST_SLOTS * REQUEST_BYTES;
pub(crate) const ANSWER_AT: usize = REPLY_AT + REPLY_BYTES;
pub(crate) const STAGING_AT: usize = ANSWER_AT + REPLY_BYTES;
/// The bytes of one lane.
pub(crate) const LANE_BYTES: usize = STAGING_AT + STAGING_PIECES * STAGING_BYTES;
/// The first lane.
pub(crate) const LANES_AT: usize = PAGE;
/// The arena.
pub(crate) const ARENA_AT: usize = LANES_AT + LANES * LANE_BYTES;

/// A counter on a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct SharedCounter(pub(crate) AtomicU32);

/// The words at the start of the shared memory.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RegionWords {
    /// The lanes that the host has used so far. The child starts a thread for each.
    pub(crate) lanes_in_use: SharedCounter,
    /// Rung when `lanes_in_use` grows.
    pub(crate) lane_bell: Bell,
    /// Grows as long as the child is alive and not stopped.
    pub(crate) heartbeat: SharedCounter,
}

/// The words at the start of a lane. The host writes those before `executed`, the child the others.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct LaneWords {
    /// Requests written.
    pub(crate) posted: SharedCounter,
    /// Answers to questions of a running kernel.
    pub(crate) answered: SharedCounter,
    /// Rung when one of these grows.
    pub(crate) request_bell: Bell,
    /// Requests done.
    pub(crate) executed: SharedCounter,
    /// Questions of a running kernel.
    pub(crate) asked: SharedCounter,
    /// Rung when one of these grows.
    pub(crate) reply_bell: Bell,
}

const _: () = assert!(size_of::<RegionWords>() <= PAGE && size_of::<LaneWords>() <= PAGE);
