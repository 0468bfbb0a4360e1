//! The lanes of a connection: a thread that calls the plugin takes one and gives it back.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::shared::layout::LANES;

/// The right to use one lane.
#[derive(Debug, Default)]
pub(crate) struct LaneTicket {
    pub(crate) index: usize,
    /// A buffer for requests.
    pub(crate) request: Vec<u8>,
    /// A buffer for replies.
    pub(crate) reply: Vec<u8>,
    /// The questions of kernels that were answered.
    pub(crate) answered: u32,
}

/// All lanes. A program with one thread always gets the first one.
#[derive(Debug)]
pub(crate) struct LanePool {
    books: Mutex<LaneBooks>,
    returned: Condvar,
    /// The requests of each lane.
    posted: [AtomicU32; LANES],
    /// The lanes that may have requests nobody has waited for, as bits. Only the owner of a lane changes its bit.
    unsettled: AtomicU64,
    /// The number of each lane's last such request. A later one, which somebody waits for, may take as long as it likes.
    unsettled_until: [AtomicU32; LANES],
}

#[derive(Debug, Default)]
struct LaneBooks {
    free: Vec<LaneTicket>,
    in_use: usize,
}

impl LanePool {
    pub(crate) fn new() -> Self {
        Self {
            books: Mutex::default(),
            returned: Condvar::new(),
            posted: [const { AtomicU32::new(0) }; LANES],
            unsettled: AtomicU64::new(0),
            unsettled_until: [const { AtomicU32::new(0) }; LANES],
        }
    }

    fn lock_books(&self) -> MutexGuard<'_, LaneBooks> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a lane. `started` is told the number of lanes in use if this one is new. `None` if all are taken for longer than
    /// `patience`.
    pub(crate) fn take_lane(&self, patience: Duration, started: impl FnOnce(u32)) -> Option<LaneTicket> {
        let mut books = self.lock_books();
        if books.free.is_empty() && books.in_use == LANES {
            books = self.returned.wait_timeout(books, patience).unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(ticket) = books.free.pop() {
            return Some(ticket);
        }
        if books.in_use == LANES {
            return None;
        }
        let index = books.in_use;
        books.in_use += 1;
        started(books.in_use as u32);
        Some(LaneTicket { index, ..LaneTicket::default() })
    }

    pub(crate) fn give_lane(&self, ticket: LaneTicket) {
        self.lock_books().free.push(ticket);
        self.returned.notify_one();
    }

    /// The number of requests that were written to a lane.
    pub(crate) fn posted_count(&self, lane: usize) -> u32 {
        self.posted[lane].load(Ordering::Acquire)
    }

    /// Counts one more request; only the owner of the lane does.
    pub(crate) fn count_request(&self, lane: usize) -> u32 {
        self.posted[lane].fetch_add(1, Ordering::AcqRel).wrapping_add(1)
    }

    /// Notes that nobody waits for this request of a lane.
    pub(crate) fn mark_unsettled(&self, lane: usize, number: u32) {
        self.unsettled_until[lane].store(number, Ordering::Release);
        self.unsettled.fetch_or(1 << lane, Ordering::AcqRel);
    }

    pub(crate) fn mark_settled(&self, lane: usize) {
        if self.unsettled.load(Ordering::Acquire) & (1 << lane) != 0 {
            self.unsettled.fetch_and(!(1 << lane), Ordering::AcqRel);
        }
    }

    /// The lanes besides this one that may have requests nobody has waited for, and the number of the last one.
    pub(crate) fn unsettled_others(&self, lane: usize) -> impl Iterator<Item = (usize, u32)> {
        let others = self.unsettled.load(Ordering::Acquire) & !(1 << lane);
        let marked = (0..LANES).filter(move |other| others & (1 << other) != 0);
        marked.map(|other| (other, self.unsettled_until[other].load(Ordering::Acquire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_posted_requests_of_others_and_not_for_calls_after_them() {
        let pool = LanePool::new();
        let mut in_use = 0;
        let mut take = || pool.take_lane(Duration::ZERO, |count| in_use = count).expect("a lane");
        let (one, other) = (take(), take());
        assert_eq!((one.index, other.index, in_use), (0, 1, 2));
        let posted = pool.count_request(one.index);
        pool.mark_unsettled(one.index, posted);
        // A call that somebody waits for.
        pool.count_request(one.index);
        assert_eq!(pool.unsettled_others(other.index).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(pool.unsettled_others(one.index).count(), 0, "its own come first anyway");
        pool.mark_settled(one.index);
        assert_eq!(pool.unsettled_others(other.index).count(), 0);
        pool.give_lane(one);
        assert_eq!(pool.take_lane(Duration::ZERO, |_| ()).expect("a lane").index, 0);
    }

    #[test]
    fn there_are_as_many_lanes_as_there_are() {
        let pool = LanePool::new();
        let tickets: Vec<_> =
            (0..LANES).map(|_| pool.take_lane(Duration::ZERO, |_| ()).expect("a lane")).collect();
        assert!(pool.take_lane(Duration::ZERO, |_| ()).is_none());
        tickets.into_iter().for_each(|ticket| pool.give_lane(ticket));
        assert!(pool.take_lane(Duration::ZERO, |_| ()).is_some());
    }
}
