//! A quicksort whose partitions take whole vectors.

use std::sync::Mutex;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::simd::PARTITION_ROOM;
use oarlock_sdk::end_if_stopped;

use super::sort_entry::SortEntry;

/// The numbers of entries of which the pivot is the median, in short runs and in long ones.
const SAMPLES: [usize; 2] = [15, 31];
/// From here on, runs are long.
const LONG_RUN: usize = 1024;
/// Runs that threads sort are at least this long, unless the pivots are bad.
const THREAD_RUN: usize = 1 << 14;

/// Sorts entries with all threads of the device.
pub(super) fn sort_by_partitions<E: SortEntry>(cpu: &Cpu, entries: &mut [E]) {
    let (isa, count) = (cpu.isa(), entries.len());
    let threads = cpu.worker_count();
    if threads == 1 || count <= THREAD_RUN {
        return sort_run(isa, entries);
    }
    // A few runs for each thread, as they differ in length.
    let limit = (count / (4 * threads)).max(THREAD_RUN);
    let mut runs = Vec::new();
    // Each run has a lock of its own, so that safe code can pass it to a thread.
    RunDivision::new(isa, limit).divide(entries, &mut |run| runs.push(Mutex::new(run)));
    cpu.parallel_for(runs.len(), grain_for(limit), |begin, end| {
        for run in &runs[begin..end] {
            // Nobody else has the lock, and nobody panics while holding it.
            let Ok(mut run) = run.lock() else { continue };
            sort_run(isa, &mut run);
        }
    });
}

fn sort_run<E: SortEntry>(isa: Isa, entries: &mut [E]) {
    RunDivision::new(isa, E::few(isa)).divide(entries, &mut |run| E::sort_few(isa, run));
}

/// A division of entries into runs of which each goes on from where the one before it ends.
struct RunDivision<E> {
    isa: Isa,
    limit: usize,
    room: [E; PARTITION_ROOM],
}

impl<E: SortEntry> RunDivision<E> {
    fn new(isa: Isa, limit: usize) -> Self {
        Self { isa, limit, room: [E::default(); PARTITION_ROOM] }
    }

    /// Divides a run into runs of at most `limit` entries, and passes these on. Longer ones are passed on only where pivots are so bad
    /// that this takes too many steps. What is in order already is not passed on.
    fn divide<'a>(&mut self, entries: &'a mut [E], pass_on: &mut impl FnMut(&'a mut [E])) {
        let steps = 2 * entries.len().checked_ilog2().unwrap_or(0);
        self.divide_in_steps(entries, steps, pass_on);
    }

    fn divide_in_steps<'a>(
        &mut self,
        entries: &'a mut [E],
        steps: u32,
        pass_on: &mut impl FnMut(&'a mut [E]),
    ) {
        let mut run = entries;
        for left in (0..steps).rev() {
            if run.len() <= self.limit {
                break;
            }
            if run.len() > LONG_RUN {
                end_if_stopped();
            }
            let pivot = median_of_sample(self.isa, run);
            let below = E::partition(self.isa, run, &mut self.room, pivot);
            if below > 0 {
                let (below, others) = run.split_at_mut(below);
                self.divide_in_steps(below, left, pass_on);
                run = others;
                continue;
            }
            // No entry is below the pivot, so those that equal it come first, and are in order.
            let Some(next) = pivot.next() else { return };
            let equal = E::partition(self.isa, run, &mut self.room, next);
            run = &mut run[equal..];
        }
        pass_on(run);
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
        RunDivision::new(isa, limit).divide(entries, &mut |run| sort_run(isa, run));
    }

    fn check_sorting<E: SortEntry + std::fmt::Debug>(make: impl Fn(u64) -> E, greatest: E) {
        let scattered = |index: usize| (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
            for count in [0, 1, 257, 1000, 1024, 1025, 5000] {
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
    fn entries_of_any_number_end_in_order() {
        let mut state = 7u64;
        for round in 0..700 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            // Each small number, and some others.
            let count = if round < 600 { round } else { (state >> 33) as usize % 6000 };
            let bits = state >> 59;
            let input: Vec<u64> = (0..count as u64)
                .map(|index| (index ^ state).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> bits)
                .collect();
            for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
                let (mut sorted, mut expected) = (input.clone(), input.clone());
                sort_in_runs(isa, 600, &mut sorted);
                expected.sort_unstable();
                assert_eq!(sorted, expected, "{isa:?}");
            }
        }
    }

    #[test]
    fn runs_whose_pivots_are_bad_are_passed_on_whole() {
        let mut entries: Vec<u32> = (0..5000).collect();
        let mut lengths = Vec::new();
        RunDivision::new(Isa::best_level(), 1)
            .divide_in_steps(&mut entries, 3, &mut |run| lengths.push(run.len()));
        assert_eq!(lengths.iter().sum::<usize>(), 5000);
        assert!(lengths.len() <= 8, "{lengths:?}");
    }
}
