//! Tasks of unequal length, shared between threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads beyond these begin where others do.
const MAX_SHARES: usize = 32;

/// Tasks that some lanes take until none is left: each first those of its own share, and then what others have left. The shares are
/// the same for all calls of a size, and alike where one call reads what another wrote, so that what a lane needs may still be in
/// its cache.
pub(crate) struct TaskQueue {
    count: usize,
    shares: usize,
    /// How many of each share are taken.
    taken: [AtomicUsize; MAX_SHARES],
}

impl TaskQueue {
    pub(crate) fn new(count: usize, lanes: usize) -> Self {
        let shares = lanes.min(count).clamp(1, MAX_SHARES);
        Self { count, shares, taken: [const { AtomicUsize::new(0) }; MAX_SHARES] }
    }

    /// The tasks that a lane takes, one by one.
    pub(crate) fn tasks_for_worker(&self, lane: usize) -> impl Iterator<Item = usize> {
        (0..self.shares).flat_map(move |turn| {
            let share = (lane + turn) % self.shares;
            let (first, end) = (self.share_start(share), self.share_start(share + 1));
            std::iter::from_fn(move || {
                let task = first + self.taken[share].fetch_add(1, Ordering::Relaxed);
                (task < end).then_some(task)
            })
        })
    }

    /// The first task of a share.
    fn share_start(&self, share: usize) -> usize {
        // Widened, as there may be as many tasks as a machine can count.
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
