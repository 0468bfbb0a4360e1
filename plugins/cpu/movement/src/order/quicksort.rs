//! A quicksort whose partitions take whole vectors.
//!
//! A partition moves one side of the pivot to the other of two buffers, so entries of a run end in whichever buffer they have to.

use std::sync::Mutex;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::grain_for;
use oarlock_sdk::end_if_stopped;

use super::sort_entry::{BufferSide, SortEntry};

/// The numbers of entries of which the pivot is the median, in short runs and in long ones.
const SAMPLES: [usize; 2] = [15, 31];
/// From here on, runs are long.
const LONG_RUN: usize = 1024;
/// Runs that threads sort are at least this long, unless the pivots are bad.
const THREAD_RUN: usize = 1 << 14;

/// Sorts entries with all threads of the device. The room is as long, and its entries get lost.
pub(super) fn sort_by_partitions<E: SortEntry>(cpu: &Cpu, entries: &mut [E], room: &mut [E]) {
    let (isa, count) = (cpu.isa(), entries.len());
    let threads = cpu.worker_count();
    // A few runs for each thread, as they differ in length.
    let limit = if threads == 1 { count } else { (count / (4 * threads)).max(THREAD_RUN) };
    let mut runs = Vec::new();
    // Each run has a lock of its own, so that safe code can pass it to a thread.
    let whole = SortRun { entries, room, to: BufferSide::Same };
    whole.divide(isa, limit, &mut |run| runs.push(Mutex::new(Some(run))));
    cpu.parallel_for(runs.len(), grain_for(limit), |begin, end| {
        for run in &runs[begin..end] {
            // Nobody else has the lock, and nobody panics while holding it.
            let Some(run) = run.lock().ok().and_then(|mut run| run.take()) else { continue };
            run.divide(isa, E::FEW, &mut |run| {
                E::sort_few(isa, run.entries);
                run.finish();
            });
        }
    });
}

/// Entries to sort, and the buffer on the other side.
struct SortRun<'a, E> {
    entries: &'a mut [E],
    room: &'a mut [E],
    to: BufferSide,
}

impl<'a, E: SortEntry> SortRun<'a, E> {
    /// Divides the run into runs of at most `limit` entries, and passes these on. Longer ones are passed on only where pivots are so
    /// bad that this takes too many steps.
    fn divide(self, isa: Isa, limit: usize, pass_on: &mut impl FnMut(Self)) {
        let steps = 2 * self.entries.len().checked_ilog2().unwrap_or(0);
        self.divide_in_steps(isa, limit, steps, pass_on);
    }

    fn divide_in_steps(self, isa: Isa, limit: usize, steps: u32, pass_on: &mut impl FnMut(Self)) {
        let mut run = self;
        for left in (0..steps).rev() {
            if run.entries.len() <= limit {
                break;
            }
            if run.entries.len() > LONG_RUN {
                end_if_stopped();
            }
            let pivot = median_of_sample(isa, run.entries);
            let [below, others] = run.partition(isa, pivot);
            run = others;
            if !below.entries.is_empty() {
                below.divide_in_steps(isa, limit, left, pass_on);
                continue;
            }
            // No entry is below the pivot, so those that equal it come first.
            let Some(next) = pivot.next() else { return run.finish() };
            let [equal, others] = run.partition(isa, next);
            equal.finish();
            run = others;
        }
        pass_on(run);
    }

    /// The run of the entries below a pivot, and that of the others.
    fn partition(self, isa: Isa, pivot: E) -> [Self; 2] {
        let Self { entries, room, to } = self;
        let keeps_below = to == BufferSide::Same;
        let kept = E::partition(isa, entries, room, pivot, keeps_below);
        let (moved, (entries, moved_room)) = (entries.len() - kept, entries.split_at_mut(kept));
        let (moved_entries, room) = room.split_at_mut(moved);
        // The moved side of the pivot goes back, to where it makes a whole with the side that stays.
        let kept = Self { entries, room, to };
        let moved = Self { entries: moved_entries, room: moved_room, to: to.opposite() };
        if keeps_below { [kept, moved] } else { [moved, kept] }
    }

    /// Moves sorted entries to where they belong.
    fn finish(self) {
        if self.to == BufferSide::Other {
            self.room.copy_from_slice(self.entries);
        }
    }
}

fn median_of_sample<E: SortEntry>(isa: Isa, entries: &[E]) -> E {
    let count = SAMPLES[usize::from(entries.len() >= LONG_RUN)];
    let mut sample = [E::default(); SAMPLES[1]];
    let sample = &mut sample[..count];
    for (place, entry) in sample.iter_mut().zip(entries.iter().step_by(entries.len() / count)) {
        *place = *entry;
    }
    E::sort_few(isa, sample);
    sample[count / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorts in two steps, as threads do.
    fn sort_in_runs<E: SortEntry>(isa: Isa, limit: usize, entries: &mut [E]) {
        let mut room = vec![E::default(); entries.len()];
        let whole = SortRun { entries, room: &mut room, to: BufferSide::Same };
        let mut runs = Vec::new();
        whole.divide(isa, limit, &mut |run| runs.push(run));
        for run in runs {
            run.divide(isa, E::FEW, &mut |run| {
                E::sort_few(isa, run.entries);
                run.finish();
            });
        }
    }

    fn check_sorting<E: SortEntry + std::fmt::Debug>(make: impl Fn(u64) -> E, greatest: E) {
        let scattered = |index: usize| (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for count in [0, 1, 257, 1000, 5000] {
                let patterns: [Vec<E>; 7] = [
                    (0..count).map(|index| make(scattered(index))).collect(),
                    (0..count).map(|index| make(index as u64)).collect(),
                    (0..count).rev().map(|index| make(index as u64)).collect(),
                    (0..count).map(|index| make(index.min(count - index) as u64)).collect(),
                    (0..count).map(|index| make(scattered(index) >> 62)).collect(),
                    (0..count).map(|index| if index % 3 == 0 { make(7) } else { greatest }).collect(),
                    vec![greatest; count],
                ];
                for input in patterns {
                    let (mut sorted, mut expected) = (input.clone(), input);
                    sort_in_runs(isa, 600, &mut sorted);
                    expected.sort_unstable();
                    assert_eq!(sorted, expected, "{isa:?}");
                }
            }
        }
    }

    #[test]
    fn any_entries_end_in_order() {
        check_sorting(|number| number as u32, u32::MAX);
        check_sorting(|number| number, u64::MAX);
        check_sorting(u128::from, u128::MAX);
    }

    #[test]
    fn runs_whose_pivots_are_bad_are_passed_on_whole() {
        let mut entries: Vec<u32> = (0..5000).collect();
        let mut room = entries.clone();
        let whole = SortRun { entries: &mut entries, room: &mut room, to: BufferSide::Same };
        let mut lengths = Vec::new();
        whole.divide_in_steps(Isa::best_level(), 1, 3, &mut |run| lengths.push(run.entries.len()));
        assert_eq!(lengths.iter().sum::<usize>(), 5000);
        assert!(lengths.len() <= 8, "{lengths:?}");
    }
}
