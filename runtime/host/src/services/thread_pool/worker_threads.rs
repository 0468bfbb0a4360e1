//! The threads that help with parallel loops.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::loop_slots::{LoopSlots, ParallelLoop};
use super::spin_wait::SpinWait;
use super::wake_placement::WakePlacement;

/// The number of loops that can have helpers at the same time: loops of several threads of the program, and nested loops.
const LOOP_SLOTS: usize = 8;

thread_local! {
    /// The worker number of one of these threads. A thread of the program works on its own loops as number 0.
    static WORKER_INDEX: Cell<u32> = const { Cell::new(0) };
}

pub(super) fn worker_index() -> u32 {
    WORKER_INDEX.get()
}

/// Threads that wait for loops to help with.
pub(super) struct WorkerThreads {
    state: Arc<WorkerState>,
    threads: Vec<JoinHandle<()>>,
}

/// The state that the threads share.
struct WorkerState {
    slots: LoopSlots,
    /// The number of loops posted so far.
    calls: AtomicU64,
    sleepers: AtomicU32,
    bed: Mutex<()>,
    bell: Condvar,
    is_over: AtomicBool,
    placements: Box<[WakePlacement]>,
}

impl WorkerThreads {
    /// Starts `size` threads, or fewer if the system permits no more.
    pub(super) fn new(size: u32) -> Self {
        let state = Arc::new(WorkerState {
            slots: LoopSlots::new(LOOP_SLOTS, size + 1),
            calls: AtomicU64::new(0),
            sleepers: AtomicU32::new(0),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            is_over: AtomicBool::new(false),
            placements: (0..size).map(|_| WakePlacement::new()).collect(),
        });
        let start = |number: u32| {
            let state = state.clone();
            let thread = thread::Builder::new().name(format!("oarlock-{number}"));
            thread.spawn(move || state.serve_loops(number)).ok()
        };
        let threads = (1..=size).map_while(start).collect();
        Self { state, threads }
    }

    /// Runs a loop, and returns when all its pieces are done.
    pub(super) fn run_loop(&self, work: &ParallelLoop<'_>) {
        self.state.slots.run_loop(work, worker_index(), || self.state.wake_helpers(work.pieces - 1));
    }
}

impl Drop for WorkerThreads {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        self.state.wake_helpers(u64::MAX);
        for thread in self.threads.drain(..) {
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

impl WorkerState {
    /// Announces a new loop, and wakes as many threads as can help.
    fn wake_helpers(&self, helpers: u64) {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let asleep = u64::from(self.sleepers.load(Ordering::SeqCst)).min(helpers);
        if asleep > 0 {
            WakePlacement::avoid_this_processor(&self.placements);
            // A thread that counts as a sleeper but still holds this lock is not asleep yet, and would miss the notification.
            drop(self.bed.lock().unwrap_or_else(PoisonError::into_inner));
            (0..asleep).for_each(|_| self.bell.notify_one());
        }
    }

    /// The main function of a helper thread.
    fn serve_loops(&self, number: u32) {
        WORKER_INDEX.set(number);
        self.placements[number as usize - 1].set_helper();
        let mut patience = SpinWait::default();
        while !self.is_over.load(Ordering::SeqCst) {
            let calls = self.calls.load(Ordering::SeqCst);
            if self.slots.help_any(number) {
                patience = SpinWait::default();
            } else if self.calls.load(Ordering::SeqCst) == calls && !patience.wait() {
                self.sleep_until_call(calls);
                patience = SpinWait::default();
            }
        }
    }

    /// Sleeps until more loops were posted than the thread has seen.
    fn sleep_until_call(&self, seen: u64) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut bed = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while self.calls.load(Ordering::SeqCst) == seen {
            bed = self.bell.wait(bed).unwrap_or_else(PoisonError::into_inner);
        }
        drop(bed);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}
