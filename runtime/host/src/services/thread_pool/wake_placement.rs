//! Keeps helpers off the processor of the thread that wakes them.
//!
//! In a virtual machine, Linux takes an idle processor for one that the hypervisor has given to others, so it wakes a thread on the
//! processor of the waker. There the two take turns until the scheduler balances its load some milliseconds later, when most runs
//! of a model are over. On a virtual machine with two processors, 197 of 200 wakes after a pause of 5 ms ended there.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::thread::{self, Pid};

/// No processor is avoided yet.
const NONE: usize = usize::MAX;

/// Where a helper may wake.
pub(super) struct WakePlacement {
    thread: OnceLock<Pid>,
    /// The processor that the helper may not use.
    avoided: AtomicUsize,
}

impl WakePlacement {
    pub(super) fn new() -> Self {
        Self { thread: OnceLock::new(), avoided: AtomicUsize::new(NONE) }
    }

    /// Makes the calling thread the helper.
    pub(super) fn set_helper(&self) {
        // Only this thread sets it, once.
        let _ = self.thread.set(thread::gettid());
    }

    /// Forbids helpers the processor of the calling thread, and permits the one that they avoided before. It asks the system only if
    /// that one has changed. Helpers without another processor, and those that the system denies this, stay where they are.
    pub(super) fn avoid_this_processor(helpers: &[Self]) {
        // Miri has no processors.
        if cfg!(miri) {
            return;
        }
        let own = thread::sched_getcpu();
        for helper in helpers {
            let before = helper.avoided.load(Ordering::Relaxed);
            let Some(id) = helper.thread.get().filter(|_| before != own) else { continue };
            // What the helper itself may use, which need not be what the caller may.
            let Ok(mut processors) = thread::sched_getaffinity(Some(*id)) else { continue };
            if before != NONE {
                processors.set(before);
            }
            processors.unset(own);
            if processors.count() > 0 && thread::sched_setaffinity(Some(*id), &processors).is_ok() {
                helper.avoided.store(own, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no processors")]
    fn a_helper_may_use_all_processors_but_that_of_its_waker() {
        let permitted = thread::sched_getaffinity(None).expect("Linux tells");
        let placement = [WakePlacement::new()];
        let (ask, asked) = mpsc::channel::<()>();
        let (answer, answers) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                placement[0].set_helper();
                answer.send(thread::sched_getaffinity(None)).expect("the test waits");
                for () in asked {
                    answer.send(thread::sched_getaffinity(None)).expect("the test waits");
                }
            });
            assert!(answers.recv().expect("a helper").is_ok_and(|processors| processors == permitted));
            WakePlacement::avoid_this_processor(&placement);
            let avoided = placement[0].avoided.load(Ordering::Relaxed);
            ask.send(()).expect("a helper");
            let found = answers.recv().expect("a helper").expect("Linux tells");
            drop(ask);
            let mut expected = permitted;
            if permitted.count() > 1 {
                expected.unset(avoided);
            }
            assert!(found == expected, "{found:?} without {avoided}");
        });
    }
}
