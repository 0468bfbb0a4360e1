//! The threads that help with loops.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::board::{Board, Loop};
use super::patience::Patience;

/// Loops that find helpers at the same time: those of as many threads of the program, and loops within loops.
const PLACES: usize = 8;

thread_local! {
    /// The number of a thread of a crew. A thread of the program works on its own loops as number 0.
    static NUMBER: Cell<u32> = const { Cell::new(0) };
}

/// The number of this thread as a worker.
pub(super) fn number() -> u32 {
    NUMBER.get()
}

/// Threads that wait for loops.
pub(super) struct Crew {
    quarters: Arc<Quarters>,
    threads: Vec<JoinHandle<()>>,
}

/// What the threads share.
struct Quarters {
    board: Board,
    /// How many loops were put up so far.
    calls: AtomicU64,
    sleepers: AtomicU32,
    bed: Mutex<()>,
    bell: Condvar,
    is_over: AtomicBool,
}

impl Crew {
    /// Starts `size` threads, or fewer where the system gives no more.
    pub(super) fn new(size: u32) -> Self {
        let quarters = Arc::new(Quarters {
            board: Board::new(PLACES, size + 1),
            calls: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        let start = |number: u32| {
            let quarters = quarters.clone();
            let thread = thread::Builder::new().name(format!("oarlock-{number}"));
            thread.spawn(move || quarters.serve(number)).ok()
        };
        let threads = (1..=size).map_while(start).collect();
        Self { quarters, threads }
    }

    /// Runs a loop, and returns when all its pieces are done.
    pub(super) fn run(&self, work: &Loop<'_>) {
        self.quarters.board.run(work, number(), || self.quarters.call(work.pieces - 1));
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.quarters.is_over.store(true, Ordering::SeqCst);
        self.quarters.call(u64::MAX);
        for thread in self.threads.drain(..) {
            // One that panicked has told so itself.
            let _ = thread.join();
        }
    }
}

impl Quarters {
    /// Tells of a new loop, and wakes as many as can help.
    fn call(&self, helpers: u64) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let asleep = u64::from(self.sleepers.load(Ordering::SeqCst)).min(helpers);
        if asleep > 0 {
            // Whoever has counted itself among the sleepers and holds this has not slept yet, and would miss the bell.
            drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
            (0..asleep).for_each(|_| self.bell.notify_one());
        }
    }

    /// What a thread does all its life.
    fn serve(&self, number: u32) {
        NUMBER.set(number);
        let mut patience = Patience::default();
        while !self.is_over.load(Ordering::SeqCst) {
            let calls = self.calls.load(Ordering::SeqCst);
            if self.board.help(number) {
                patience = Patience::default();
            } else if self.calls.load(Ordering::SeqCst) == calls && !patience.wait() {
                self.sleep(calls);
                patience = Patience::default();
            }
        }
    }

    /// Sleeps until there are more calls than the thread has seen.
    fn sleep(&self, seen: u64) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while self.calls.load(Ordering::SeqCst) == seen {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        drop(bed);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
