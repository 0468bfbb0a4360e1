//! Spinning before sleeping, for events that are expected soon.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// The number of spins, some tens of microseconds, before a thread starts to yield the processor.
const SPINS_BEFORE_YIELD: u32 = 1000;
/// The time for which a thread waits for work before it sleeps. Waking it takes longer than most kernels, and gaps between the
/// kernels of a model are shorter than this.
const MAX_WAIT: Duration = Duration::from_millis(1);

/// A wait that first spins and then yields to other threads.
#[derive(Default)]
pub(super) struct SpinWait {
    looks: u32,
    /// When yielding started.
    begin: Option<Instant>,
}

impl SpinWait {
    /// Waits a little; false if it is time to sleep instead.
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
