//! The threads on which plugins run their loops: one pool for all, so that they do not fight over the processor.
//!
//! No thread is started before the first loop that is worth splitting: a program that only lists devices has none.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use rayon::ThreadPool;
use rayon::iter::{IntoParallelIterator as _, ParallelIterator as _};

/// How many pieces a worker gets on average, so that a slow one does not hold up the rest.
const PIECES_PER_WORKER: u64 = 4;

/// The host's threads.
#[derive(Debug)]
pub(crate) struct Pool {
    workers: NonZeroUsize,
    threads: OnceLock<Option<ThreadPool>>,
}

impl Pool {
    /// A pool with so many workers, or as many as this process may use at once.
    pub(crate) fn new(workers: Option<NonZeroUsize>) -> Self {
        let available = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { workers: workers.unwrap_or_else(available), threads: OnceLock::new() }
    }

    pub(crate) fn workers(&self) -> u32 {
        u32::try_from(self.workers.get()).unwrap_or(u32::MAX)
    }

    /// Runs `body(begin, end, worker)` over 0..count in pieces of at least `grain`, and returns when all are done.
    ///
    /// The pieces depend on nothing but the arguments and the number of workers. A loop within a loop is run by the
    /// same workers: the one that waits helps.
    pub(crate) fn run(&self, count: u64, grain: u64, body: impl Fn(u64, u64, u32) + Sync) {
        if count == 0 {
            return;
        }
        let most_pieces = u64::from(self.workers()) * PIECES_PER_WORKER;
        let piece = grain.max(1).max(count.div_ceil(most_pieces));
        let worker = || rayon::current_thread_index().map_or(0, |index| index as u32 % self.workers());
        let threads = if piece < count && self.workers.get() > 1 { self.threads() } else { None };
        match threads {
            None => body(0, count, worker()),
            Some(threads) => threads.install(|| {
                (0..count.div_ceil(piece)).into_par_iter().for_each(|number| {
                    let begin = number * piece;
                    // The last piece takes what is left, which may be less than a piece but never less than one.
                    body(begin, count.min(begin.saturating_add(piece)), worker());
                });
            }),
        }
    }

    /// The threads; `None` when the system gives none, in which case the caller's has to do.
    fn threads(&self) -> Option<&ThreadPool> {
        let start = || {
            let builder = rayon::ThreadPoolBuilder::new().num_threads(self.workers.get());
            builder.thread_name(|index| format!("oarlock-{index}")).build().ok()
        };
        self.threads.get_or_init(start).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn pool(workers: usize) -> Pool {
        Pool::new(NonZeroUsize::new(workers))
    }

    #[test]
    fn every_element_is_visited_once_by_a_worker_that_exists() {
        let pool = pool(3);
        for (count, grain) in [(0, 1), (1, 1), (7, 0), (1000, 1), (1000, 300), (1000, u64::MAX)] {
            let visits: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
            pool.run(count, grain, |begin, end, worker| {
                assert!(worker < 3 && begin < end);
                (begin..end).for_each(|at| _ = visits[at as usize].fetch_add(1, Ordering::Relaxed));
            });
            assert!(visits.iter().all(|visits| visits.load(Ordering::Relaxed) == 1), "{count} by {grain}");
        }
    }

    #[test]
    fn a_loop_within_a_loop_ends() {
        let (pool, total) = (pool(2), AtomicU64::new(0));
        pool.run(16, 1, |begin, end, _| {
            for _ in begin..end {
                pool.run(16, 1, |begin, end, _| _ = total.fetch_add(end - begin, Ordering::Relaxed));
            }
        });
        assert_eq!(total.into_inner(), 256);
    }

    #[test]
    fn no_thread_is_started_for_a_loop_that_is_not_worth_it() {
        let pool = pool(4);
        pool.run(10, 10, |begin, end, _| assert_eq!((begin, end), (0, 10)));
        assert!(pool.threads.get().is_none());
    }
}
