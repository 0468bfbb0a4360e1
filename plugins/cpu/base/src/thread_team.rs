//! The threads that compute, and with which instructions.

use crate::device::Cpu;
use crate::isa::Isa;

/// What computes: an instruction set and a number of threads. Tests replace it.
pub trait ThreadTeam: Sync {
    fn isa(&self) -> Isa;

    fn worker_count(&self) -> usize;

    /// Runs `body(0)` to `body(count - 1)`, possibly in parallel.
    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync));
}

impl ThreadTeam for Cpu {
    fn isa(&self) -> Isa {
        Cpu::isa(self)
    }

    fn worker_count(&self) -> usize {
        Cpu::worker_count(self)
    }

    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.parallel_for(count, 1, |begin, end| (begin..end).for_each(body));
    }
}
