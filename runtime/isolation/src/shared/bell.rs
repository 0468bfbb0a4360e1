//! Wakes a thread of the other process: a short spin, then a futex.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::Timespec;
use rustix::thread::futex;

/// How long a thread spins before it sleeps. Waking a thread takes about as long as a quick call.
const SPIN_TIME: Duration = Duration::from_micros(30);

/// Spinning on the only processor would keep the other side from answering.
static MAY_SPIN: LazyLock<bool> =
    LazyLock::new(|| std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// A word that is rung when something has changed, and the number of threads asleep on it.
///
/// Both words are in shared memory, and a hostile process may write anything to them. The worst that this causes is a sleep
/// until the patience of [`Bell::wait_until`] ends.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Bell {
    rings: AtomicU32,
    sleepers: AtomicU32,
}

impl Bell {
    /// Wakes all waiting threads. What they wait for was stored before.
    pub(crate) fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            self.wake_all();
        }
    }

    /// Wakes threads even if the other process has overwritten the number of sleepers.
    pub(crate) fn ring_loudly(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        // It only fails for a wrong address, and this one is mapped.
        _ = futex::wake(&self.rings, futex::Flags::empty(), i32::MAX.cast_unsigned());
    }

    /// Waits until `check` returns a value; `None` if that takes longer than `patience`.
    pub(crate) fn wait_until<T>(
        &self,
        patience: Duration,
        mut check: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        if let Some(found) = check() {
            return Some(found);
        }
        if *MAY_SPIN {
            let began = Instant::now();
            while began.elapsed() < SPIN_TIME {
                for _ in 0..16 {
                    if let Some(found) = check() {
                        return Some(found);
                    }
                    std::hint::spin_loop();
                }
            }
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let rings = self.rings.load(Ordering::SeqCst);
        let mut found = check();
        if found.is_none() {
            let timeout = Timespec {
                tv_sec: patience.as_secs().cast_signed(),
                tv_nsec: patience.subsec_nanos().into(),
            };
            // Whether it was woken, interrupted or timed out, the check decides.
            _ = futex::wait(&self.rings, futex::Flags::empty(), rings, Some(&timeout));
            found = check();
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        found
    }
}
