//! Distributes tasks of unequal length over threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use oarlock_sdk::end_if_stopped;

/// The maximum number of shares, which bounds the counters on the stack. Further threads start in a share that another thread has.
const MAX_SHARES: usize = 32;

/// The tasks of a share between two questions whether the kernel is to stop.
const TASKS_PER_QUESTION: usize = 4;

/// A work-stealing queue. Each lane first takes the tasks of its share, then those left in other shares. All calls of a size have
/// the same shares, so when one call reads what another wrote, the data of a lane may still be in its cache.
pub struct TaskQueue {
    count: usize,
    shares: usize,
    /// Tasks taken from each share.
    taken: [AtomicUsize; MAX_SHARES],
}

impl TaskQueue {
    pub fn new(count: usize, lanes: usize) -> Self {
        let shares = lanes.min(count).clamp(1, MAX_SHARES);
        Self { count, shares, taken: [const { AtomicUsize::new(0) }; MAX_SHARES] }
    }

    /// The tasks that a lane takes, one at a time. Between some of them, a kernel that is to stop ends.
    pub fn tasks_for_worker(&self, lane: usize) -> impl Iterator<Item = usize> {
        (0..self.shares).flat_map(move |turn| {
            let share = (lane + turn) % self.shares;
            let (first, end) = (self.share_start(share), self.share_start(share + 1));
            std::iter::from_fn(move || {
                let taken = self.taken[share].fetch_add(1, Ordering::Relaxed);
                // Not for each task: a clock is read, and small products are done in less than a microsecond.
                if taken % TASKS_PER_QUESTION == TASKS_PER_QUESTION - 1 {
                    end_if_stopped();
                }
                let task = first + taken;
                (task < end).then_some(task)
            })
        })
    }

    fn share_start(&self, share: usize) -> usize {
        // In 128 bits, because `count` may be as large as `usize::MAX`.
        (self.count as u128 * share as u128 / self.shares as u128) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_is_taken_once_and_those_of_the_own_share_first() {
        for (count, lanes) in [(0, 3), (1, 4), (7, 2), (8, 3), (100, 40)] {
            let tasks = TaskQueue::new(count, lanes);
            let mut taken: Vec<usize> = (0..lanes)
                .flat_map(|lane| tasks.tasks_for_worker(lane).take(2).collect::<Vec<_>>())
                .collect();
            taken.extend(tasks.tasks_for_worker(lanes - 1));
            taken.sort_unstable();
            assert_eq!(taken, (0..count).collect::<Vec<_>>(), "{count} tasks, {lanes} lanes");
        }
        let tasks = TaskQueue::new(8, 2);
        assert_eq!(tasks.tasks_for_worker(1).collect::<Vec<_>>(), [4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(TaskQueue::new(usize::MAX, 3).tasks_for_worker(2).next(), Some(usize::MAX / 3 * 2));
    }

    #[test]
    fn several_threads_take_each_task_once() {
        let (tasks, sum) = (TaskQueue::new(1000, 4), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for lane in 0..4 {
                let (tasks, sum) = (&tasks, &sum);
                scope.spawn(move || {
                    tasks.tasks_for_worker(lane).for_each(|task| _ = sum.fetch_add(task, Ordering::Relaxed));
                });
            }
        });
        assert_eq!(sum.into_inner(), 1000 * 999 / 2);
    }
}
