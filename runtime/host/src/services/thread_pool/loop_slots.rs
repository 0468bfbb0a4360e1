//! Slots in which threads post parallel loops, so that others can find them and help.
//!
//! A loop lives on the stack of the thread that runs it, so posting one allocates nothing. That thread removes the loop and
//! waits for its helpers before it returns.

#![expect(unsafe_code, reason = "a loop on a stack is lent to other threads")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::spin_wait::SpinWait;

/// A loop that is split into pieces.
pub(super) struct ParallelLoop<'a> {
    pub(super) pieces: u64,
    /// Runs a piece on a worker, both given by number.
    pub(super) body: &'a (dyn Fn(u64, u32) + Sync),
}

/// Slots for loops. A loop that finds no free slot runs on its own thread alone.
pub(super) struct LoopSlots {
    places: Box<[LoopSlot]>,
}

/// A slot for one loop. The alignment keeps two slots off the same pair of cache lines, against false sharing.
#[repr(align(128))]
struct LoopSlot {
    is_taken: AtomicBool,
    /// The posted loop, or null. It stays alive while it is posted, and then until the slot has no visitors.
    up: AtomicPtr<ParallelLoop<'static>>,
    visitors: AtomicU32,
    shares: Box<[WorkerShare]>,
}

/// The pieces that a worker runs first. They are the same for every loop of this length, so the worker's cache may still contain
/// their data.
#[derive(Default)]
#[repr(align(128))]
struct WorkerShare {
    next: AtomicU64,
}

impl LoopSlots {
    pub(super) fn new(places: usize, workers: u32) -> Self {
        Self { places: (0..places).map(|_| LoopSlot::new(workers)).collect() }
    }

    /// Posts a loop, calls `tell`, works on the loop, and returns when all its pieces are done.
    pub(super) fn run_loop(&self, work: &ParallelLoop<'_>, worker: u32, tell: impl FnOnce()) {
        if let Some(place) = self.places.iter().find(|place| place.try_claim()) {
            let _up = place.post_loop(work);
            tell();
            place.run_pieces(work, worker);
        } else {
            (0..work.pieces).for_each(|piece| (work.body)(piece, worker));
        }
    }

    /// Helps with a posted loop; false if there was nothing to do.
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
        // SAFETY: the visit is counted before the pointer is loaded, in the single total order of `SeqCst` operations. If the loop
        // is still posted, its owner removes it later, then reads the visitor count, sees this visit and waits for it before the
        // loop goes out of scope. Otherwise the pointer is null, or a later loop, to which the same argument applies.
        let work = unsafe { self.up.load(Ordering::SeqCst).as_ref() };
        work.is_some_and(|work| self.run_pieces(work, worker))
    }

    /// Runs pieces of the posted loop until there are none left, starting with the worker's own share; false if it ran none.
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

    /// The number of the first piece of a share.
    fn first_piece(&self, work: &ParallelLoop<'_>, share: usize) -> u64 {
        work.pieces * share as u64 / self.shares_of(work).len() as u64
    }
}

/// A posted loop. Dropping it removes the loop and waits for the helpers.
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

/// A helper of the loop in a slot. Dropping it decrements the visitor count, even if the loop panics.
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
        // `SeqCst` also releases: the waiting thread sees everything that the visitor wrote.
        self.place.visitors.fetch_sub(1, Ordering::SeqCst);
    }
}
