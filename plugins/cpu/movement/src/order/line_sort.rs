//! Sorts all elements of lines, with their positions or without.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::integers_of_elements;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{AxisLines, AxisLinesPart, try_parallel_for_parts};
use oarlock_cpu_base::rows::plane_transpose::PlaneTranspose;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Dtype, Result};

use super::rank_mapping::{RankInteger, RankMapping};
use super::sort::sort_entries;
use super::sort_entry::SortEntry;

/// Runs a function that is generic over the size of a number, for a dtype of numbers.
macro_rules! by_number_size {
    ($dtype:expr, $size:ident => $body:expr) => {
        match oarlock_cpu_base::element_bytes::size_of_dtype($dtype)? {
            1 => {
                const $size: usize = 1;
                $body
            }
            2 => {
                const $size: usize = 2;
                $body
            }
            4 => {
                const $size: usize = 4;
                $body
            }
            _ => {
                const $size: usize = 8;
                $body
            }
        }
    };
}

pub(crate) use by_number_size;

/// A sort of lines along an axis.
pub(crate) struct LineSort<'a> {
    cpu: &'a Cpu,
    axis: AxisLayout,
    is_largest_first: bool,
    dtype: Dtype,
}

impl<'a> LineSort<'a> {
    /// For dtypes of numbers, among which there is an order.
    pub(crate) fn new(cpu: &'a Cpu, axis: AxisLayout, is_largest_first: bool, dtype: Dtype) -> Self {
        Self { cpu, axis, is_largest_first, dtype }
    }

    /// Writes the elements of each line in their order, and their positions if they are wanted.
    pub(crate) fn sort_lines<const N: usize>(
        &self,
        input: &[[u8; N]],
        values: &mut [[u8; N]],
        places: Option<&mut [i64]>,
    ) -> Result<()> {
        match places {
            Some(places) => self.sort_with_places(input, values, places),
            None if const { is_narrow::<N>() } => self.sort_values::<u32, N>(input, values),
            None => self.sort_values::<u64, N>(input, values),
        }
    }

    /// Writes the elements of each line in their order.
    fn sort_values<R: SortEntry + RankInteger, const N: usize>(
        &self,
        input: &[[u8; N]],
        values: &mut [[u8; N]],
    ) -> Result<()> {
        let AxisLayout { length, inner, .. } = self.axis;
        let sorter =
            ValueSort { cpu: self.cpu, ranks: RankMapping::<R>::new(self.dtype, N, self.is_largest_first) };
        let lines = AxisLines::new(values, length, inner);
        let count = self.axis.line_count();
        try_parallel_for_parts(self.cpu, count, grain_for(length), lines, |_, mut values| {
            if inner == 1 {
                for (line, _) in values.line_groups(1) {
                    sorter.write_sorted(&input[line * length..][..length], values.contiguous_line(line))?;
                }
                return Ok(());
            }
            let most = GATHERED_LINES.min(inner) * length;
            let (mut gathered, mut sorted) = (try_filled_vec([0; N], most)?, try_filled_vec([0; N], most)?);
            for (line, lines) in values.line_groups(GATHERED_LINES) {
                let (gathered, sorted) = (&mut gathered[..lines * length], &mut sorted[..lines * length]);
                let first = &input[line / inner * length * inner + line % inner..];
                let isa = self.cpu.isa();
                PlaneTranspose {
                    input: first,
                    stride: inner,
                    out: &mut *gathered,
                    pitch: length,
                    rows: lines,
                    columns: length,
                }
                .transpose_plane(isa);
                for (from, to) in gathered.chunks_exact(length).zip(sorted.chunks_exact_mut(length)) {
                    sorter.write_sorted(from, to)?;
                }
                PlaneTranspose {
                    input: &*sorted,
                    stride: length,
                    out: &mut *gathered,
                    pitch: lines,
                    rows: length,
                    columns: lines,
                }
                .transpose_plane(isa);
                for (position, from) in gathered.chunks_exact(lines).enumerate() {
                    values.lines_at(line, lines, position).copy_from_slice(from);
                }
            }
            Ok(())
        })
    }

    fn sort_with_places<const N: usize>(
        &self,
        input: &[[u8; N]],
        values: &mut [[u8; N]],
        places: &mut [i64],
    ) -> Result<()> {
        let AxisLayout { length, inner, .. } = self.axis;
        let outputs = (AxisLines::new(values, length, inner), AxisLines::new(places, length, inner));
        let count = self.axis.line_count();
        try_parallel_for_parts(self.cpu, count, grain_for(length), outputs, |_, (mut values, mut places)| {
            for (line, _) in values.line_groups(1) {
                let start = line / inner * length * inner + line % inner;
                let input = LineElements { cells: &input[start..], step: inner, length };
                // Rank and place share one integer, the narrowest that holds both.
                if const { is_narrow::<N>() } && u32::try_from(length).is_ok() {
                    self.sort_line::<u64, N>(32, &input, line, &mut values, &mut places)?;
                } else {
                    self.sort_line::<u128, N>(64, &input, line, &mut values, &mut places)?;
                }
            }
            Ok(())
        })
    }

    /// Sorts one line with places. An element follows from its rank, except zeros, of which there are two, and NaN: these are looked
    /// up in their original order.
    fn sort_line<E: SortEntry, const N: usize>(
        &self,
        place_bits: u32,
        input: &LineElements<'_, N>,
        line: usize,
        values: &mut AxisLinesPart<'_, [u8; N]>,
        places: &mut AxisLinesPart<'_, i64>,
    ) -> Result<()> {
        let isa = self.cpu.isa();
        let ranks = RankMapping::<u64>::new(self.dtype, N, self.is_largest_first);
        let mut entries = try_filled_vec(E::default(), input.length)?;
        // With the place in the low bits, entries are distinct, and equal elements keep their order.
        if let Some(cells) = input.contiguous() {
            with_isa!(isa, || {
                let mapping = ranks;
                for (place, (to, cell)) in entries.iter_mut().zip(cells).enumerate() {
                    *to = E::new(mapping.rank_of(*cell), place, place_bits);
                }
            });
        } else {
            for (place, (to, cell)) in entries.iter_mut().zip(input.iter()).enumerate() {
                *to = E::new(ranks.rank_of(cell), place, place_bits);
            }
        }
        sort_entries(self.cpu, &mut entries, place_bits)?;
        // Cheaper than reading the input at the place, which is a random access for each element.
        let element = |entry: &E| ranks.element_of_rank(entry.entry_rank(place_bits));
        if self.axis.inner == 1 {
            let values = values.contiguous_line(line);
            with_isa!(isa, || for (value, entry) in values.iter_mut().zip(&entries) {
                *value = element(entry);
            });
        } else {
            values.line_elements(line).zip(&entries).for_each(|(value, entry)| *value = element(entry));
        }
        for (place, entry) in places.line_elements(line).zip(&entries) {
            *place = entry.entry_place(place_bits) as i64;
        }
        for alike in ranks.shared_ranks().into_iter().flatten() {
            let begin = entries.partition_point(|entry| entry.entry_rank(place_bits) < alike);
            let count = entries[begin..].partition_point(|entry| entry.entry_rank(place_bits) == alike);
            if count > 0 {
                // In the order of the input, as sorting keeps the order of what is equal.
                let same = input.iter().filter(|cell| ranks.rank_of(*cell) == alike);
                let places = values.line_elements(line).skip(begin).take(count);
                places.zip(same).for_each(|(value, cell)| *value = cell);
            }
        }
        Ok(())
    }
}

/// Lines that do not lie side by side are sorted in copies of so many: 16 `f32` are a cache line.
const GATHERED_LINES: usize = 16;

/// A sort of elements alone.
struct ValueSort<'a, R> {
    cpu: &'a Cpu,
    ranks: RankMapping<R>,
}

impl<R: SortEntry + RankInteger> ValueSort<'_, R> {
    /// Writes elements in their order.
    fn write_sorted<const N: usize>(&self, from: &[[u8; N]], to: &mut [[u8; N]]) -> Result<()> {
        let Self { cpu, ranks } = *self;
        let isa = cpu.isa();
        if const { N <= 2 } && from.len() >= counted_length::<N>() {
            self.write_counted(from, to)?;
        } else if let Some(entries) = integers_of_elements::<R, N>(to) {
            // Ranks are sorted where the elements go, so there is no other memory to fill.
            ranks.rank_elements(isa, from, entries);
            sort_entries(cpu, entries, 0)?;
            ranks.turn_into_elements::<N>(isa, entries);
        } else {
            let mut entries = try_filled_vec(R::default(), from.len())?;
            ranks.rank_elements(isa, from, &mut entries);
            sort_entries(cpu, &mut entries, 0)?;
            to.iter_mut().zip(&entries).for_each(|(to, rank)| *to = ranks.element_of_rank(*rank));
        }
        // Elements follow from their ranks, except zeros, of which there are two, and NaN.
        for alike in ranks.shared_ranks().into_iter().flatten() {
            let begin = to.partition_point(|cell| ranks.rank_of(*cell) < alike);
            let count = to[begin..].partition_point(|cell| ranks.rank_of(*cell) == alike);
            if count == 0 {
                continue;
            }
            let to = &mut to[begin..][..count];
            // In the order of the input, as sorting keeps the order of what is equal.
            let same = || from.iter().filter(|cell| ranks.rank_of(**cell) == alike);
            match same().next() {
                Some(first) if !ranks.has_other_of_rank(isa, from, *first) => to.fill(*first),
                _ => to.iter_mut().zip(same()).for_each(|(value, cell)| *value = *cell),
            }
        }
        Ok(())
    }

    /// Counts how many elements have each of few ranks.
    fn write_counted<const N: usize>(&self, from: &[[u8; N]], to: &mut [[u8; N]]) -> Result<()> {
        let ranks = self.ranks;
        let mut counts = try_filled_vec(0, 1 << (8 * N))?;
        from.iter().for_each(|cell| counts[ranks.rank_of(*cell).as_index()] += 1);
        let mut rest = to;
        for (rank, count) in counts.into_iter().enumerate() {
            let (own, others) = rest.split_at_mut(count);
            own.fill(ranks.element_of_rank(R::from_low_bits(rank as u64)));
            rest = others;
        }
        Ok(())
    }
}

/// From this length on, elements are counted: with a counter for each possible one, that is then faster than comparing them.
const fn counted_length<const N: usize>() -> usize {
    if N == 1 { 1 << 9 } else { 1 << 16 }
}

/// True if a rank leaves half of a `u64` for the place.
const fn is_narrow<const N: usize>() -> bool {
    N <= 4
}

struct LineElements<'a, const N: usize> {
    cells: &'a [[u8; N]],
    /// The distance from one element to the next.
    step: usize,
    length: usize,
}

impl<const N: usize> LineElements<'_, N> {
    /// The elements as a slice if they lie side by side, for loops that the compiler is to vectorize.
    fn contiguous(&self) -> Option<&[[u8; N]]> {
        (self.step == 1).then(|| &self.cells[..self.length])
    }

    fn iter(&self) -> impl Iterator<Item = [u8; N]> {
        self.cells.iter().step_by(self.step).take(self.length).copied()
    }
}
