//! All elements of lines in their order, with their places or without.

use oarlock_sdk::Result;

use super::sort::{Entry, sort};
use crate::device::Cpu;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::number::{Exact, Number};
use crate::kernels::rows::parts::{Lines, Rows, in_parallel, try_in_parallel};
use crate::kernels::rows::room::filled;
use crate::kernels::rows::vector::with_isa;
use crate::kernels::rows::{GRAIN, grain};

/// How many lines that lie side by side are read together.
const SIDE_BY_SIDE: usize = 16;

/// What is done with each line.
pub(crate) struct Sorting<'a> {
    pub(crate) cpu: &'a Cpu,
    pub(crate) axis: Axis,
    pub(crate) is_largest_first: bool,
}

impl Sorting<'_> {
    /// Writes the elements of each line in their order, and their places where these are wanted.
    pub(crate) fn run<T: Number>(
        &self,
        input: &[T],
        values: &mut [T],
        places: Option<&mut [i64]>,
    ) -> Result<()> {
        let is_narrow = const { <T::Exact as Exact>::RANK_BITS <= 32 };
        match places {
            None if is_narrow => self.of_entries::<T, u32, 0>(input, values, None),
            None => self.of_entries::<T, u64, 0>(input, values, None),
            some if is_narrow && u32::try_from(self.axis.length).is_ok() => {
                self.of_entries::<T, u64, 32>(input, values, some)
            }
            some => self.of_entries::<T, u128, 64>(input, values, some),
        }
    }

    fn of_entries<T: Number, E: Entry, const PLACE: u32>(
        &self,
        input: &[T],
        values: &mut [T],
        places: Option<&mut [i64]>,
    ) -> Result<()> {
        let Axis { length, inner, .. } = self.axis;
        let (cpu, lines, grain) = (self.cpu, self.axis.lines(), grain(length));
        if inner == 1 {
            let outputs = (Rows::new(values, length), places.map(|places| Rows::new(places, length)));
            return try_in_parallel(cpu, lines, grain, outputs, |begin, (values, mut places)| {
                for (line, values) in values.chunks_mut(length).enumerate() {
                    let input = &input[(begin + line) * length..][..length];
                    let places = places.as_mut().map(|places| &mut places[line * length..][..length]);
                    self.line::<T, E, PLACE>(input, values, places)?;
                }
                Ok(())
            });
        }
        let outputs =
            (Lines::new(values, length, inner), places.map(|places| Lines::new(places, length, inner)));
        let width = (GRAIN / length).clamp(1, SIDE_BY_SIDE);
        try_in_parallel(cpu, lines, grain, outputs, |_, (mut values, mut places)| {
            for (first, count) in values.groups(width) {
                let start = first / inner * length * inner + first % inner;
                let row = |at: usize| &input[start + at * inner..][..count];
                let write = |at: usize, found: &[T], order: &[i64]| {
                    values.across(first, count, at).copy_from_slice(found);
                    if let Some(places) = &mut places {
                        places.across(first, count, at).copy_from_slice(order);
                    }
                };
                self.side_by_side::<T, E, PLACE>(count, row, write)?;
            }
            Ok(())
        })
    }

    /// Sorts lines that lie side by side, of which `row` has the elements at a position and `write` takes them.
    fn side_by_side<'a, T: Number, E: Entry, const PLACE: u32>(
        &self,
        count: usize,
        row: impl Fn(usize) -> &'a [T],
        mut write: impl FnMut(usize, &[T], &[i64]),
    ) -> Result<()> {
        let length = self.axis.length;
        let has_places = PLACE > 0;
        let mut elements = filled(T::of_exact(T::Exact::ZERO), count * length)?;
        for at in 0..length {
            for (line, element) in row(at).iter().enumerate() {
                elements[line * length + at] = *element;
            }
        }
        let mut values = elements.clone();
        let mut places = filled(0, if has_places { count * length } else { 0 })?;
        for line in 0..count {
            let range = line * length..(line + 1) * length;
            let places = has_places.then(|| &mut places[range.clone()]);
            self.line::<T, E, PLACE>(&elements[range.clone()], &mut values[range], places)?;
        }
        let (mut found, mut order) = ([values[0]; SIDE_BY_SIDE], [0; SIDE_BY_SIDE]);
        for at in 0..length {
            for line in 0..count {
                found[line] = values[line * length + at];
                if has_places {
                    order[line] = places[line * length + at];
                }
            }
            write(at, &found[..count], &order[..count]);
        }
        Ok(())
    }

    /// Sorts one line. What an element is follows from its rank, but for zeros, of which there are two, and for what is not a
    /// number: these are looked up in the order in which they were.
    fn line<T: Number, E: Entry, const PLACE: u32>(
        &self,
        input: &[T],
        values: &mut [T],
        places: Option<&mut [i64]>,
    ) -> Result<()> {
        let turned = if self.is_largest_first { u64::MAX >> (64 - T::Exact::RANK_BITS) } else { 0 };
        let mut entries = filled(E::default(), input.len())?;
        in_parallel(self.cpu, input.len(), GRAIN, Rows::new(&mut entries, 1), |begin, entries| {
            let input = &input[begin..][..entries.len()];
            with_isa!(self.cpu.isa(), || for (at, (entry, element)) in
                entries.iter_mut().zip(input).enumerate()
            {
                *entry = E::new::<PLACE>(element.exact().rank() ^ turned, begin + at);
            });
        });
        sort::<E, PLACE>(self.cpu, &mut entries)?;
        let outputs = (Rows::new(values, 1), places.map(|places| Rows::new(places, 1)));
        in_parallel(self.cpu, input.len(), GRAIN, outputs, |begin, (values, places)| {
            let entries = &entries[begin..][..values.len()];
            with_isa!(self.cpu.isa(), || for (value, entry) in values.iter_mut().zip(entries) {
                *value = T::of_exact(T::Exact::of_rank(entry.rank::<PLACE>() ^ turned));
            });
            for (place, entry) in places.into_iter().flatten().zip(entries) {
                *place = entry.place::<PLACE>() as i64;
            }
        });
        let not_a_number = T::Exact::of_rank(u64::MAX >> (64 - T::Exact::RANK_BITS));
        if !not_a_number.is_unordered() {
            return Ok(());
        }
        for alike in [T::Exact::ZERO.rank(), not_a_number.rank()] {
            let (least, most) = (E::new::<PLACE>(alike ^ turned, 0), alike ^ turned);
            let begin = entries.partition_point(|entry| *entry < least);
            let count = entries[begin..].partition_point(|entry| entry.rank::<PLACE>() <= most);
            let same = input.iter().filter(|element| element.exact().rank() == alike);
            let of_them = &mut values[begin..begin + count];
            of_them.iter_mut().zip(same).for_each(|(value, element)| *value = *element);
        }
        Ok(())
    }
}
