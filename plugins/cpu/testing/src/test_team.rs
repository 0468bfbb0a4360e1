//! A thread team for tests.

use std::sync::atomic::{AtomicUsize, Ordering};

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;

/// A team with any number of threads, independent of the machine's.
pub struct TestTeam {
    /// The instruction set to compute with.
    pub isa: Isa,
    /// The number of threads.
    pub count: usize,
}

impl ThreadTeam for TestTeam {
    fn isa(&self) -> Isa {
        self.isa
    }

    fn worker_count(&self) -> usize {
        self.count
    }

    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.count == 1 || count == 1 {
            return (0..count).for_each(body);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.count.min(count) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        body(index);
                    }
                });
            }
        });
    }
}
