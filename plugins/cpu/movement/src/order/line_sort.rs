//! Sorts all elements of lines, with their positions or without.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{AxisLines, AxisLinesPart, try_parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Dtype, Result};

use super::rank_mapping::RankMapping;
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
        let AxisLayout { length, inner, .. } = self.axis;
        let outputs = (
            AxisLines::new(values, length, inner),
            places.map(|places| AxisLines::new(places, length, inner)),
        );
        try_parallel_for_parts(
            self.cpu,
            self.axis.line_count(),
            grain_for(length),
            outputs,
            |_, (mut values, mut places)| {
                for (line, _) in values.line_groups(1) {
                    let start = line / inner * length * inner + line % inner;
                    let input = LineElements { cells: &input[start..], step: inner, length };
                    // Rank and place share one integer, the narrowest that holds both.
                    if places.is_none() {
                        if const { is_narrow::<N>() } {
                            self.sort_line::<u32, N>(0, &input, line, &mut values, None)?;
                        } else {
                            self.sort_line::<u64, N>(0, &input, line, &mut values, None)?;
                        }
                    } else if const { is_narrow::<N>() } && u32::try_from(length).is_ok() {
                        self.sort_line::<u64, N>(32, &input, line, &mut values, places.as_mut())?;
                    } else {
                        self.sort_line::<u128, N>(64, &input, line, &mut values, places.as_mut())?;
                    }
                }
                Ok(())
            },
        )
    }

    /// True if the order of two elements is that in which they stand.
    pub(crate) fn have_equal_rank<const N: usize>(&self, one: [u8; N], other: [u8; N]) -> bool {
        let ranks = RankMapping::<u64>::new(self.dtype, N, false);
        ranks.rank_of(one) == ranks.rank_of(other)
    }

    /// Sorts one line. An element follows from its rank, except zeros, of which there are two, and NaN: these are looked up in
    /// their original order.
    fn sort_line<E: SortEntry, const N: usize>(
        &self,
        place_bits: u32,
        input: &LineElements<'_, N>,
        line: usize,
        values: &mut AxisLinesPart<'_, [u8; N]>,
        places: Option<&mut AxisLinesPart<'_, i64>>,
    ) -> Result<()> {
        let isa = self.cpu.isa();
        let ranks = RankMapping::<u64>::new(self.dtype, N, self.is_largest_first);
        let mut entries = try_filled_vec(E::default(), input.length)?;
        // With the place in the low bits, entries are distinct, and equal elements keep their order.
        let entry = |place, cell| E::new(ranks.rank_of(cell), place, place_bits);
        if let Some(cells) = input.contiguous() {
            with_isa!(isa, || for (place, (to, cell)) in entries.iter_mut().zip(cells).enumerate() {
                *to = entry(place, *cell);
            });
        } else {
            entries
                .iter_mut()
                .zip(input.iter())
                .enumerate()
                .for_each(|(place, (to, cell))| *to = entry(place, cell));
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
        if let Some(places) = places {
            for (place, entry) in places.line_elements(line).zip(&entries) {
                *place = entry.entry_place(place_bits) as i64;
            }
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
