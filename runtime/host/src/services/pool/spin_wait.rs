//! Waiting for what is about to come.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread looks again before it lets others have the processor in between; some tens of microseconds.
const SPINS_BEFORE_YIELD: u32 = 1000;
/// How long a thread waits for work before it sleeps. Waking it takes longer than most kernels, and between the kernels of
/// a model there is less time than this.
const MAX_WAIT: Duration = Duration::from_millis(1);

/// A wait that begins by looking again and again, and goes on by yielding to other threads.
#[derive(Default)]
pub(super) struct SpinWait {
    looks: u32,
    /// When the yielding began.
    begin: Option<Instant>,
}

impl SpinWait {
    /// Waits a little. Returns whether it is still worth looking, and not better to sleep.
    pub(super) fn wait(&mut self) -> bool {
        if self.looks < SPINS_BEFORE_YIELD {
            self.looks += 1;
            hint::spin_loop();
            return true;
        }
        thread::yield_now();
        self.begin.get_or_insert_with(Instant::now).elapsed() < MAX_WAIT
    }
}
