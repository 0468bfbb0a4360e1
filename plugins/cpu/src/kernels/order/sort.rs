//! Sorts whole numbers that hold a rank and, below it, a place. Many are told apart by their highest bits first, into runs that
//! the caches hold, and the runs by all bits that are left, from the lowest up; few are compared.
//!
//! Entries of one rank stay in their order, so those that begin in the order of their places end in it.

use std::sync::Mutex;

use oarlock_sdk::Result;

use crate::device::Cpu;
use crate::kernels::rows::grain_for;
use crate::kernels::rows::scratch::try_filled_vec;

/// A whole number of which the highest bits are a rank, and those below it, if any, a place.
pub(crate) trait SortEntry: Copy + Ord + Default + Send + Sync {
    /// An entry of a rank and a place; of the rank alone where there are no bits for a place.
    fn new(rank: u64, place: usize, place_bits: u32) -> Self;
    fn entry_rank(self, place_bits: u32) -> u64;
    fn entry_place(self, place_bits: u32) -> usize;
    /// The lowest entry of its rank.
    fn lowest_of_rank(self, place_bits: u32) -> Self;
    /// How far it is above another, without some of the lowest bits.
    fn offset_from(self, lowest: Self, bits: u32) -> usize;
    /// How many bits it takes to tell how far it is above another.
    fn offset_bits(self, lowest: Self) -> u32;
}

macro_rules! entries {
    ($($ty:ty),*) => {
        $(
            impl SortEntry for $ty {
                #[inline(always)]
                fn new(rank: u64, place: usize, place_bits: u32) -> Self {
                    if place_bits == 0 { rank as Self } else { (rank as Self) << place_bits | place as Self }
                }
                #[inline(always)]
                fn entry_rank(self, place_bits: u32) -> u64 {
                    (self >> place_bits) as u64
                }
                #[inline(always)]
                fn entry_place(self, place_bits: u32) -> usize {
                    (self & ((1 << place_bits) - 1)) as usize
                }
                #[inline(always)]
                fn lowest_of_rank(self, place_bits: u32) -> Self {
                    self >> place_bits << place_bits
                }
                #[inline(always)]
                fn offset_from(self, lowest: Self, bits: u32) -> usize {
                    ((self - lowest) >> bits) as usize
                }
                #[inline(always)]
                fn offset_bits(self, lowest: Self) -> u32 {
                    Self::BITS - (self - lowest).leading_zeros()
                }
            }
        )*
    };
}

entries!(u32, u64, u128);

/// So few are sorted by comparing them.
const COMPARISON_SORT_COUNT: usize = 256;
/// So few, where their ranks differ in many bits.
const WIDE_COMPARISON_SORT_COUNT: usize = 4096;
/// So many are told apart from the lowest bits up, as caches hold them and what they are moved to.
const CACHED_RADIX_COUNT: usize = 1 << 17;
/// How many bits are many.
const WIDE_RANK_BITS: u32 = 33;
/// How many bits are looked at at once, at most.
const DIGIT_BITS: u32 = 11;

/// Sorts entries, those of many on all threads of the device.
pub(crate) fn sort_entries<E: SortEntry>(cpu: &Cpu, entries: &mut [E], place_bits: u32) -> Result<()> {
    if entries.len() <= COMPARISON_SORT_COUNT {
        entries.sort_unstable();
        return Ok(());
    }
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
            jobs.push(Mutex::new((run, target)));
        }
        start = end;
    }
    let each = start / jobs.len().max(1);
    cpu.parallel_for(jobs.len(), grain_for(each), |begin, end| {
        let mut order = RadixSorter { place_bits, ends: Vec::new() };
        for job in &jobs[begin..end] {
            // Nobody else has it, and nobody panics who does.
            let Ok(mut job) = job.lock() else { continue };
            let (run, target) = &mut *job;
            order.sort_into(run, target, BufferSide::Other);
        }
    });
    Ok(())
}

/// Where sorted entries go.
#[derive(Clone, Copy, PartialEq)]
enum BufferSide {
    /// Where they were.
    Same,
    /// To the other of the two slices.
    Other,
}

impl BufferSide {
    fn opposite(self) -> Self {
        if self == Self::Same { Self::Other } else { Self::Same }
    }
}

/// Sorts entries by their ranks.
struct RadixSorter {
    place_bits: u32,
    /// Where runs end, for each run within a run.
    ends: Vec<usize>,
}

impl RadixSorter {
    fn sort_into<E: SortEntry>(&mut self, entries: &mut [E], other: &mut [E], to: BufferSide) {
        if entries.len() > COMPARISON_SORT_COUNT {
            let (lowest, bits) = self.rank_spread(entries);
            let is_wide = bits > WIDE_RANK_BITS;
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

    /// The lowest rank, and how many bits tell the ranks apart.
    fn rank_spread<E: SortEntry>(&self, entries: &[E]) -> (E, u32) {
        let first = entries.first().copied().unwrap_or_default();
        let (low, high) =
            entries.iter().fold((first, first), |(low, high), entry| (low.min(*entry), high.max(*entry)));
        let lowest = low.lowest_of_rank(self.place_bits);
        (lowest, high.offset_bits(lowest).saturating_sub(self.place_bits))
    }

    /// Moves entries to the other slice, into runs by their highest bits, and returns where those end; nothing where all
    /// entries are in their order as they are.
    fn split_into_runs<E: SortEntry>(&mut self, entries: &[E], other: &mut [E]) -> Option<Vec<usize>> {
        let (lowest, bits) = self.rank_spread(entries);
        if bits == 0 {
            return None;
        }
        self.move_to_runs(entries, other, lowest, bits);
        Some(std::mem::take(&mut self.ends))
    }

    /// Moves entries to the other slice, into runs by so many of their highest bits as are left undecided by it: how many is
    /// returned. Where the runs end comes after what else is in the list.
    fn move_to_runs<E: SortEntry>(&mut self, entries: &[E], other: &mut [E], lowest: E, bits: u32) -> u32 {
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

    /// Sorts by some of the bits at a time, from the lowest up.
    fn sort_by_digits<E: SortEntry>(
        &self,
        entries: &mut [E],
        other: &mut [E],
        to: BufferSide,
        lowest: E,
        bits: u32,
    ) {
        let place_bits = self.place_bits;
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
        if side != to {
            next.copy_from_slice(from);
        }
    }
}

/// Where each run begins, in place of how many are in it.
fn counts_to_starts(counts: &mut [usize]) {
    let mut begin = 0;
    for count in counts {
        begin += std::mem::replace(count, begin);
    }
}
