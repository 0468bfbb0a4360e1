//! Sorts integers that hold a rank and, below it, a place. With vectors, a quicksort does it. Otherwise large inputs are first split by
//! their highest bits into runs that fit into the caches, and the runs are radix-sorted by all remaining bits, from the lowest up.
//! Small ones are sorted by comparison.
//!
//! Entries of one rank keep their order, so those that begin in the order of their places end in it.

use std::sync::Mutex;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{Result, end_if_stopped};

use super::quicksort::sort_by_partitions;
use super::sort_entry::{BufferSide, SortEntry};

/// Up to this many entries are sorted by comparison.
const COMPARISON_SORT_COUNT: usize = 256;
/// Up to this many, if their ranks differ in more than [`WIDE_RANK_BITS`] bits, which would take four or more radix passes.
const WIDE_COMPARISON_SORT_COUNT: usize = 4096;
/// Up to this many are radix-sorted from the lowest bits up: 1 MiB of `u64`, and as much where they are moved to, which L2 and L3
/// hold.
const CACHED_RADIX_COUNT: usize = 1 << 17;
/// Three digits of [`DIGIT_BITS`] bits.
const WIDE_RANK_BITS: u32 = 33;
/// The maximum number of bits per digit: 2¹¹ counters of 8 bytes are 16 KiB, half of a 32 KiB L1 cache.
const DIGIT_BITS: u32 = 11;

/// Sorts entries; large inputs use all threads of the device.
pub(crate) fn sort_entries<E: SortEntry>(cpu: &Cpu, entries: &mut [E], place_bits: u32) -> Result<()> {
    if entries.len() <= E::few(cpu.isa()) {
        // Equal entries are identical, since entries with places are all different: no order can get lost.
        E::sort_few(cpu.isa(), entries);
        return Ok(());
    }
    if E::has_sort_vectors(cpu.isa()) {
        sort_by_partitions(cpu, entries);
        return Ok(());
    }
    // A radix sort moves entries back and forth between two buffers.
    let mut room = try_filled_vec(E::default(), entries.len())?;
    if entries.len() <= CACHED_RADIX_COUNT {
        RadixSorter { place_bits, ends: Vec::new() }.sort_into(entries, &mut room, BufferSide::Same);
        return Ok(());
    }
    let mut order = RadixSorter { place_bits, ends: Vec::new() };
    let Some(runs) = order.split_into_runs(entries, &mut room) else { return Ok(()) };
    let (mut rest, mut room_left) = (entries, &mut room[..]);
    let mut jobs = Vec::new();
    let mut start = 0;
    for end in runs {
        let (run, others) = room_left.split_at_mut(end - start);
        let (target, others_targets) = rest.split_at_mut(end - start);
        (rest, room_left) = (others_targets, others);
        if !run.is_empty() {
            // Each run has a lock of its own, so that safe code can pass it to a thread.
            jobs.push(Mutex::new((run, target)));
        }
        start = end;
    }
    let each = start / jobs.len().max(1);
    cpu.parallel_for(jobs.len(), grain_for(each), |begin, end| {
        let mut order = RadixSorter { place_bits, ends: Vec::new() };
        for job in &jobs[begin..end] {
            // Nobody else has the lock, and nobody panics while holding it.
            let Ok(mut job) = job.lock() else { continue };
            let (run, target) = &mut *job;
            // Runs lie in the other buffer and go back to where the entries came from.
            order.sort_into(run, target, BufferSide::Other);
        }
    });
    Ok(())
}

struct RadixSorter {
    place_bits: u32,
    /// The ends of runs, for each run within a run.
    ends: Vec<usize>,
}

impl RadixSorter {
    fn sort_into<E: SortEntry>(&mut self, entries: &mut [E], other: &mut [E], to: BufferSide) {
        if entries.len() > COMPARISON_SORT_COUNT {
            end_if_stopped();
            let (lowest, bits) = self.rank_spread(entries);
            let is_wide = bits > WIDE_RANK_BITS;
            // Without bits that differ there are no passes, and at most a copy.
            if bits == 0 || !is_wide && entries.len() <= CACHED_RADIX_COUNT {
                return self.sort_by_digits(entries, other, to, lowest, bits);
            }
            if !is_wide || entries.len() > WIDE_COMPARISON_SORT_COUNT {
                return self.sort_by_runs(entries, other, to, lowest, bits);
            }
        }
        entries.sort_unstable();
        if to == BufferSide::Other {
            other.copy_from_slice(entries);
        }
    }

    /// The lowest rank, and the number of bits that tell the ranks apart.
    fn rank_spread<E: SortEntry>(&self, entries: &[E]) -> (E, u32) {
        let first = entries.first().copied().unwrap_or_default();
        let (low, high) =
            entries.iter().fold((first, first), |(low, high), entry| (low.min(*entry), high.max(*entry)));
        // Ranks count from the lowest, so that large numbers close together differ in few bits.
        let lowest = low.lowest_of_rank(self.place_bits);
        (lowest, high.offset_bits(lowest).saturating_sub(self.place_bits))
    }

    /// Moves entries to the other slice, into runs by their highest bits, and returns where those end; `None` if all entries have
    /// one rank and so are in order.
    fn split_into_runs<E: SortEntry>(&mut self, entries: &[E], other: &mut [E]) -> Option<Vec<usize>> {
        let (lowest, bits) = self.rank_spread(entries);
        if bits == 0 {
            return None;
        }
        self.move_to_runs(entries, other, lowest, bits);
        Some(std::mem::take(&mut self.ends))
    }

    /// Moves entries to the other slice, into runs by their highest bits, and returns how many bits that leaves undecided. The
    /// ends of the runs are appended to the list.
    fn move_to_runs<E: SortEntry>(&mut self, entries: &[E], other: &mut [E], lowest: E, bits: u32) -> u32 {
        // At least about 32 entries per run: with fewer, the overhead per run would dominate.
        let left = bits.saturating_sub((entries.len() / 32).ilog2().min(DIGIT_BITS));
        let skipped = self.place_bits + left;
        let run = |entry: &E| entry.offset_from(lowest, skipped);
        let base = self.ends.len();
        self.ends.resize(base + (1 << (bits - left)), 0);
        let ends = &mut self.ends[base..];
        entries.iter().for_each(|entry| ends[run(entry)] += 1);
        counts_to_starts(ends);
        for entry in entries {
            let next = &mut ends[run(entry)];
            other[*next] = *entry;
            *next += 1;
        }
        left
    }

    fn sort_by_runs<E: SortEntry>(
        &mut self,
        entries: &mut [E],
        other: &mut [E],
        to: BufferSide,
        lowest: E,
        bits: u32,
    ) {
        let base = self.ends.len();
        let left = self.move_to_runs(entries, other, lowest, bits);
        let mut start = 0;
        for index in base..self.ends.len() {
            let end = self.ends[index];
            let (run, room) = (&mut other[start..end], &mut entries[start..end]);
            match (left, to) {
                (0, BufferSide::Same) => room.copy_from_slice(run),
                (0, BufferSide::Other) => {}
                _ => self.sort_into(run, room, to.opposite()),
            }
            start = end;
        }
        self.ends.truncate(base);
    }

    /// Sorts by one digit at a time, from the lowest up. One pass over the entries counts all digits.
    fn sort_by_digits<E: SortEntry>(
        &self,
        entries: &mut [E],
        other: &mut [E],
        to: BufferSide,
        lowest: E,
        bits: u32,
    ) {
        let place_bits = self.place_bits;
        // Digits of equal width: 12 bits become two digits of 6, which need far fewer counters than one of 11 and one of 1.
        let passes = bits.div_ceil(DIGIT_BITS);
        let digit = bits.div_ceil(passes.max(1));
        let at =
            |entry: &E, pass: u32| entry.offset_from(lowest, place_bits + pass * digit) & ((1 << digit) - 1);
        let mut counts = vec![0; (passes as usize) << digit];
        for entry in &*entries {
            for pass in 0..passes {
                counts[((pass as usize) << digit) + at(entry, pass)] += 1;
            }
        }
        let (mut from, mut next, mut side) = (entries, other, BufferSide::Same);
        for (pass, places) in (0..passes).zip(counts.chunks_mut(1 << digit)) {
            counts_to_starts(places);
            for entry in &*from {
                let place = &mut places[at(entry, pass)];
                next[*place] = *entry;
                *place += 1;
            }
            (from, next, side) = (next, from, side.opposite());
        }
        // Each pass changes sides, so the number of passes decides where entries end.
        if side != to {
            next.copy_from_slice(from);
        }
    }
}

/// Turns counts into starts: an exclusive prefix sum.
fn counts_to_starts(counts: &mut [usize]) {
    let mut begin = 0;
    for count in counts {
        begin += std::mem::replace(count, begin);
    }
}
