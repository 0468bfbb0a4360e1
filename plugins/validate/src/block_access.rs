//! Who reads and writes which bytes of a block, and whether two accesses can meet.

use std::ops::Range;

use crate::stream_order::{StreamOrder, WorkPoint};

/// Accesses that a block remembers; older ones count as done.
const MAX_ACCESSES: usize = 256;

/// A part of a block that work on a stream reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct BlockAccess {
    pub(crate) range: Range<u64>,
    pub(crate) writes: bool,
    pub(crate) point: WorkPoint,
    /// The number of the call that added the work.
    pub(crate) call: u64,
}

/// Accesses that may not be done yet.
#[derive(Debug, Default)]
pub(crate) struct PendingAccesses(Vec<BlockAccess>);

impl PendingAccesses {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An earlier access that the new one can meet: one of both writes, and nothing orders them.
    pub(crate) fn find_conflict(
        &self,
        order: &StreamOrder,
        range: &Range<u64>,
        writes: bool,
        stream: u64,
    ) -> Option<&BlockAccess> {
        self.0.iter().rev().find(|earlier| {
            (earlier.writes || writes)
                && earlier.range.start < range.end
                && range.start < earlier.range.end
                && !order.is_before(earlier.point, stream)
        })
    }

    pub(crate) fn push(&mut self, order: &StreamOrder, access: BlockAccess) {
        if self.0.len() >= MAX_ACCESSES {
            self.0.retain(|earlier| !order.is_before(earlier.point, crate::stream_order::HOST));
            if self.0.len() >= MAX_ACCESSES {
                self.0.remove(0);
            }
        }
        self.0.push(access);
    }

    /// Forgets what the host has seen done.
    pub(crate) fn forget_finished(&mut self, order: &StreamOrder) {
        self.0.retain(|earlier| !order.is_before(earlier.point, crate::stream_order::HOST));
    }
}
