//! The threads that compute, and the instruction sets that they use.

use crate::device::Cpu;
use crate::isa::Isa;

/// An instruction set and a number of threads to compute with. Tests substitute their own.
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
