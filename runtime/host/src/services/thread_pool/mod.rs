//! The thread pool for the loops of all plugins. They share one pool, so that they do not compete for processors.
//!
//! The thread that runs a loop works on it too, so a pool with one worker per processor starts one thread fewer. Threads spin
//! for a while before they sleep, because waking one takes longer than most kernels. Threads are started at the first loop
//! that is worth splitting, so a program that only lists devices starts none.

mod loop_slots;
mod spin_wait;
mod wake_placement;
mod worker_threads;

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use self::loop_slots::ParallelLoop;
use self::worker_threads::WorkerThreads;

/// The average number of pieces per worker: more than one, so that a slow worker does not delay the whole loop.
const PIECES_PER_WORKER: u64 = 4;

/// The maximum number of threads of a pool: an upper bound on real machines' processors, so that a typo does not start a million.
pub const MAX_WORKERS: u32 = 1024;

/// The worker threads of a host.
pub(crate) struct ThreadPool {
    workers: NonZeroUsize,
    threads: OnceLock<WorkerThreads>,
}

impl ThreadPool {
    /// A pool with this number of workers; by default, the number of processors that this process may use.
    pub(crate) fn new(workers: Option<NonZeroUsize>) -> Self {
        let available = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let most = const { NonZeroUsize::new(MAX_WORKERS as usize).expect("it is not 0") };
        Self { workers: workers.unwrap_or_else(available).min(most), threads: OnceLock::new() }
    }

    pub(crate) fn worker_count(&self) -> u32 {
        u32::try_from(self.workers.get()).unwrap_or(u32::MAX)
    }

    /// Runs `body(begin, end, worker)` over `0..count` in pieces of at least `grain`, and returns when all are done.
    ///
    /// The pieces depend only on the arguments and the number of workers. Threads that work on a loop concurrently have different
    /// worker numbers. A nested loop runs on the same workers.
    pub(crate) fn parallel_for(&self, count: u64, grain: u64, body: impl Fn(u64, u64, u32) + Sync) {
        if count == 0 {
            return;
        }
        let most_pieces = u64::from(self.worker_count()) * PIECES_PER_WORKER;
        let piece = grain.max(1).max(count.div_ceil(most_pieces));
        if piece >= count || self.workers.get() == 1 {
            return body(0, count, worker_threads::worker_index());
        }
        let body = |number: u64, worker: u32| {
            let begin = number * piece;
            // The last piece is the remainder, which may be shorter than the other pieces but is never empty.
            body(begin, count.min(begin.saturating_add(piece)), worker);
        };
        self.threads
            .get_or_init(|| WorkerThreads::new(self.worker_count() - 1))
            .run_loop(&ParallelLoop { pieces: count.div_ceil(piece), body: &body });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn pool_of(workers: usize) -> ThreadPool {
        ThreadPool::new(NonZeroUsize::new(workers))
    }

    #[test]
    fn every_element_is_visited_once_by_a_worker_that_exists() {
        let pool = pool_of(3);
        for (count, grain) in [(0, 1), (1, 1), (7, 0), (1000, 1), (1000, 300), (1000, u64::MAX)] {
            let visits: Vec<AtomicU64> = (0..count).map(|_| AtomicU64::new(0)).collect();
            pool.parallel_for(count, grain, |begin, end, worker| {
                assert!(worker < 3 && begin < end);
                (begin..end).for_each(|at| _ = visits[at as usize].fetch_add(1, Ordering::Relaxed));
            });
            assert!(visits.iter().all(|visits| visits.load(Ordering::Relaxed) == 1), "{count} by {grain}");
        }
    }

    #[test]
    fn two_threads_work_on_a_loop_at_once_also_after_they_slept() {
        let pool = pool_of(2);
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let here = AtomicU64::new(0);
            // Each piece waits until another one has begun, which is impossible on one thread.
            pool.parallel_for(2, 1, |_, _, _| {
                here.fetch_add(1, Ordering::SeqCst);
                let begin = std::time::Instant::now();
                while here.load(Ordering::SeqCst) < 2 {
                    assert!(begin.elapsed().as_secs() < 60, "nobody came to help");
                    std::thread::yield_now();
                }
            });
        }
    }

    #[test]
    fn a_loop_within_a_loop_ends() {
        let (pool, total) = (pool_of(2), AtomicU64::new(0));
        pool.parallel_for(16, 1, |begin, end, _| {
            for _ in begin..end {
                pool.parallel_for(16, 1, |begin, end, _| _ = total.fetch_add(end - begin, Ordering::Relaxed));
            }
        });
        assert_eq!(total.into_inner(), 256);
    }

    #[test]
    fn no_thread_is_started_for_a_loop_that_is_not_worth_it() {
        let pool = pool_of(4);
        pool.parallel_for(10, 10, |begin, end, _| assert_eq!((begin, end), (0, 10)));
        assert!(pool.threads.get().is_none());
    }

    #[test]
    fn the_threads_of_a_program_share_the_pool_and_no_two_in_a_loop_have_the_same_number() {
        let pool = pool_of(4);
        // Miri is slow.
        let rounds = if cfg!(miri) { 5 } else { 200 };
        // More threads than loops that can have helpers, and pauses in which the pool falls asleep.
        std::thread::scope(|scope| {
            for caller in 0..12 {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let busy: [AtomicU64; 4] = Default::default();
                        let total = AtomicU64::new(0);
                        pool.parallel_for(64, 1, |begin, end, worker| {
                            assert_eq!(busy[worker as usize].fetch_add(1, Ordering::SeqCst), 0);
                            total.fetch_add(end - begin, Ordering::Relaxed);
                            busy[worker as usize].fetch_sub(1, Ordering::SeqCst);
                        });
                        assert_eq!(total.into_inner(), 64);
                        if round % 50 == caller {
                            std::thread::sleep(std::time::Duration::from_millis(3));
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn what_a_loop_wrote_is_there_when_it_is_done() {
        let pool = pool_of(2);
        let mut numbers = vec![0u64; 4096];
        // Miri is slow.
        let rounds = if cfg!(miri) { 5 } else { 500 };
        for round in 1..rounds {
            let cells: Vec<AtomicU64> = numbers.iter().map(|number| AtomicU64::new(*number)).collect();
            pool.parallel_for(4096, 16, |begin, end, _| {
                cells[begin as usize..end as usize]
                    .iter()
                    .for_each(|cell| _ = cell.fetch_add(1, Ordering::Relaxed));
            });
            numbers = cells.into_iter().map(AtomicU64::into_inner).collect();
            assert!(numbers.iter().all(|number| *number == round));
        }
    }

    #[test]
    fn a_pool_ends_with_its_threads_asleep_or_awake() {
        for pause in [0, 5] {
            let pool = pool_of(3);
            pool.parallel_for(64, 1, |_, _, _| {});
            std::thread::sleep(std::time::Duration::from_millis(pause));
            drop(pool);
        }
    }
}
