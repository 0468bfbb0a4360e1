//! Where a thread puts up a loop, and where others find it and help.
//!
//! A loop lives on the stack of the thread that runs it, so that none costs memory. That thread takes the loop down and
//! waits for those that help before it goes on.

#![expect(unsafe_code, reason = "a loop on a stack is lent to other threads")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::spin_wait::SpinWait;

/// A loop in pieces.
pub(super) struct ParallelLoop<'a> {
    pub(super) pieces: u64,
    /// Runs the piece with a number on the worker with a number.
    pub(super) body: &'a (dyn Fn(u64, u32) + Sync),
}

/// Places for loops. One that finds no place is run by its own thread alone.
pub(super) struct LoopBoard {
    places: Box<[LoopSlot]>,
}

/// A place for one loop, on cache lines of its own.
#[repr(align(128))]
struct LoopSlot {
    is_taken: AtomicBool,
    /// The loop that is up, or null. It is alive as long as it is up, and then until there are no visitors.
    up: AtomicPtr<ParallelLoop<'static>>,
    visitors: AtomicU32,
    shares: Box<[WorkerShare]>,
}

/// The pieces that a worker takes first. It has the same ones of every loop like this one, so that what it needs for them
/// may still be in its cache.
#[derive(Default)]
#[repr(align(128))]
struct WorkerShare {
    next: AtomicU64,
}

impl LoopBoard {
    /// A board with so many places, for so many workers.
    pub(super) fn new(places: usize, workers: u32) -> Self {
        Self { places: (0..places).map(|_| LoopSlot::new(workers)).collect() }
    }

    /// Puts a loop up, tells of it by `tell`, works on it, and returns when all its pieces are done.
    pub(super) fn run_loop(&self, work: &ParallelLoop<'_>, worker: u32, tell: impl FnOnce()) {
        if let Some(place) = self.places.iter().find(|place| place.try_claim()) {
            let _up = place.post_loop(work);
            tell();
            place.run_pieces(work, worker);
        } else {
            (0..work.pieces).for_each(|piece| (work.body)(piece, worker));
        }
    }

    /// Helps with a loop that is up, and says whether there was anything to do.
    pub(super) fn help_any(&self, worker: u32) -> bool {
        self.places.iter().any(|place| place.help_loop(worker))
    }
}

impl LoopSlot {
    fn new(workers: u32) -> Self {
        Self {
            is_taken: AtomicBool::new(false),
            up: AtomicPtr::new(ptr::null_mut()),
            visitors: AtomicU32::new(0),
            shares: (0..workers).map(|_| WorkerShare::default()).collect(),
        }
    }

    fn try_claim(&self) -> bool {
        !self.is_taken.load(Ordering::Relaxed) && !self.is_taken.swap(true, Ordering::Acquire)
    }

    fn post_loop<'a>(&'a self, work: &'a ParallelLoop<'_>) -> PostedLoop<'a> {
        for (index, share) in self.shares_of(work).iter().enumerate() {
            share.next.store(self.first_piece(work, index), Ordering::Relaxed);
        }
        self.up.store(ptr::from_ref(work).cast_mut().cast(), Ordering::SeqCst);
        PostedLoop { place: self }
    }

    fn help_loop(&self, worker: u32) -> bool {
        if self.up.load(Ordering::Relaxed).is_null() {
            return false;
        }
        let _visit = HelperVisit::new(self);
        // SAFETY: the visit was counted before the loop was looked up, both in the one order that all threads agree on.
        // If the loop was still up, whoever takes it down counts the visitors after that, finds this one and waits for it
        // before the loop ends. If it was not, this is null or a later loop, of which the same holds.
        let work = unsafe { self.up.load(Ordering::SeqCst).as_ref() };
        work.is_some_and(|work| self.run_pieces(work, worker))
    }

    /// Takes pieces of the loop that is up until none is left, those of its own share first, and says whether there was one.
    fn run_pieces(&self, work: &ParallelLoop<'_>, worker: u32) -> bool {
        let shares = self.shares_of(work);
        let mut has_worked = false;
        for turn in 0..shares.len() {
            let index = (worker as usize + turn) % shares.len();
            let (next, end) = (&shares[index].next, self.first_piece(work, index + 1));
            while next.load(Ordering::Relaxed) < end {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece < end {
                    (work.body)(piece, worker);
                    has_worked = true;
                }
            }
        }
        has_worked
    }

    fn shares_of(&self, work: &ParallelLoop<'_>) -> &[WorkerShare] {
        &self.shares[..self.shares.len().min(work.pieces as usize)]
    }

    /// The first piece of a share.
    fn first_piece(&self, work: &ParallelLoop<'_>, share: usize) -> u64 {
        work.pieces * share as u64 / self.shares_of(work).len() as u64
    }
}

/// A loop that is up, until this is dropped: then nobody sees it any more.
struct PostedLoop<'a> {
    place: &'a LoopSlot,
}

impl Drop for PostedLoop<'_> {
    fn drop(&mut self) {
        self.place.up.store(ptr::null_mut(), Ordering::SeqCst);
        let mut patience = SpinWait::default();
        while self.place.visitors.load(Ordering::SeqCst) != 0 {
            patience.wait();
        }
        self.place.is_taken.store(false, Ordering::Release);
    }
}

/// A thread that looks at the loop of a place. It is counted, also when the loop panics.
struct HelperVisit<'a> {
    place: &'a LoopSlot,
}

impl<'a> HelperVisit<'a> {
    fn new(place: &'a LoopSlot) -> Self {
        place.visitors.fetch_add(1, Ordering::SeqCst);
        Self { place }
    }
}

impl Drop for HelperVisit<'_> {
    fn drop(&mut self) {
        // What the visitor wrote is there for the one that waits.
        self.place.visitors.fetch_sub(1, Ordering::SeqCst);
    }
}
