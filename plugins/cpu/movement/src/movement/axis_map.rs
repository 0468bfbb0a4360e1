//! The loop of ops that map each axis on its own: an index of the output to an index of the input, or to a fill value.

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::for_parallel_pieces;
use oarlock_sdk::{Result, ensure};

use super::shape;
use super::strided::StrideCursor;

/// The index in the input for each index along an axis of the output: consecutive ones in the middle, and any before and after.
/// So a long axis that is padded a little takes no list as long as itself.
pub(super) struct AxisMap {
    before: AxisBorder,
    run: Range<usize>,
    after: AxisBorder,
}

/// The part of an axis beside the run.
pub(super) enum AxisBorder {
    /// As many filled places.
    Filled(usize),
    /// An index each; `None` where the output is filled.
    Indices(Vec<Option<usize>>),
}

impl AxisMap {
    /// The input from `run.start` to `run.end` between two borders.
    pub(super) fn with_borders(before: AxisBorder, run: Range<usize>, after: AxisBorder) -> Self {
        Self { before, run, after }
    }

    /// A map that is given in full.
    pub(super) fn from_indices(indices: Vec<Option<usize>>) -> Self {
        // The run begins at the last place of the lowest index; a reflection before it, for example, is copied one by one.
        let from = indices.iter().flatten().min().copied().unwrap_or(0);
        let begin = indices.iter().rposition(|at| *at == Some(from)).unwrap_or(0);
        let length =
            indices[begin..].iter().zip(from..).take_while(|(at, place)| **at == Some(*place)).count();
        let mut before = indices;
        let after = before.split_off(begin + length);
        before.truncate(begin);
        Self::with_borders(AxisBorder::Indices(before), from..from + length, AxisBorder::Indices(after))
    }

    fn len(&self) -> usize {
        self.before.len() + self.run.len() + self.after.len()
    }

    /// The index in the input for one in the output.
    fn source_index(&self, index: usize) -> Option<usize> {
        let Some(index) = index.checked_sub(self.before.len()) else {
            return self.before.source_index(index);
        };
        match index.checked_sub(self.run.len()) {
            None => Some(self.run.start + index),
            Some(index) => self.after.source_index(index),
        }
    }

    /// True if an axis of this size is copied as it is.
    fn is_identity(&self, dim: usize) -> bool {
        self.run == (0..dim) && self.before.len() + self.after.len() == 0
    }

    /// Joins an axis of this size that follows and is copied as it is. Returns false if that would take a list of all its elements.
    fn join_identity(&mut self, dim: usize) -> bool {
        let borders = [&mut self.before, &mut self.after];
        if dim != 1 && borders.iter().any(|border| !border.is_filled()) {
            return false;
        }
        for border in borders {
            if let AxisBorder::Filled(length) = border {
                *length *= dim;
            }
        }
        self.run = self.run.start * dim..self.run.end * dim;
        true
    }

    fn is_inside(&self, dim: usize) -> bool {
        (self.run.is_empty() || self.run.end <= dim)
            && self.before.is_inside(dim)
            && self.after.is_inside(dim)
    }
}

impl AxisBorder {
    fn len(&self) -> usize {
        match self {
            Self::Filled(length) => *length,
            Self::Indices(indices) => indices.len(),
        }
    }

    fn source_index(&self, index: usize) -> Option<usize> {
        match self {
            Self::Filled(_) => None,
            Self::Indices(indices) => indices[index],
        }
    }

    /// True if nothing in the border is from the input.
    fn is_filled(&self) -> bool {
        match self {
            Self::Filled(_) => true,
            Self::Indices(indices) => indices.is_empty(),
        }
    }

    fn is_inside(&self, dim: usize) -> bool {
        match self {
            Self::Filled(_) => true,
            Self::Indices(indices) => indices.iter().flatten().all(|index| *index < dim),
        }
    }

    fn copy_part<const N: usize>(&self, input: &[[u8; N]], fill: [u8; N], part: &mut [[u8; N]]) {
        match self {
            Self::Filled(_) => part.fill(fill),
            Self::Indices(indices) => {
                for (cell, index) in part.iter_mut().zip(indices) {
                    *cell = index.map_or(fill, |index| input[index]);
                }
            }
        }
    }
}

/// Copies the elements that the maps name, one map for each axis of an input of the given dimensions.
pub(super) fn copy_mapped<const N: usize>(
    cpu: &Cpu,
    input: &[[u8; N]],
    dims: &[usize],
    mut maps: Vec<AxisMap>,
    fill: [u8; N],
    out: &mut [[u8; N]],
) -> Result<()> {
    let is_inside = maps.iter().zip(dims).all(|(map, dim)| map.is_inside(*dim));
    let mut lengths: Vec<_> = maps.iter().map(AxisMap::len).collect();
    ensure!(
        is_inside
            && maps.len() == dims.len()
            && shape::element_count(&lengths)? == out.len()
            && shape::element_count(dims)? == input.len(),
        out_of_range,
        "expected positions inside of the input's {dims:?}, found others"
    );
    let mut dims = dims.to_vec();
    // The longer the rows, the fewer copies.
    while let [.., outer, last] = &mut maps[..]
        && let [.., outer_dim, dim] = &mut dims[..]
        && last.is_identity(*dim)
        && outer.join_identity(*dim)
    {
        *outer_dim *= *dim;
        maps.pop();
        dims.pop();
        lengths.pop();
    }
    if let Some((length, map)) = lengths.last_mut().zip(maps.last()) {
        *length = map.len();
    }
    let (Some((columns, outer)), false) = (maps.split_last(), out.is_empty()) else {
        if let ([cell], Some(from)) = (out, input.first()) {
            *cell = *from;
        }
        return Ok(());
    };
    let steps = shape::contiguous_strides(&dims);
    // The maps replace the strides, so the cursor only counts.
    let (outer_lengths, still) = (&lengths[..outer.len()], vec![0; outer.len()]);
    let line = RowMapping::new(columns, dims[outer.len()]);
    for_parallel_pieces(cpu, out, columns.len(), |begin, out| {
        let mut cursor = StrideCursor::new(outer_lengths, &still, begin);
        // The row before, as far as it is in this piece: other pieces are written by other threads.
        let mut before: Option<(Option<usize>, &mut [[u8; N]])> = None;
        for row in out.chunks_mut(columns.len()) {
            let places = outer.iter().zip(cursor.indices()).zip(&steps);
            // One axis outside of the input is enough to fill the whole row.
            let first = places
                .map(|((map, index), step)| map.source_index(*index).map(|at| at * step))
                .sum::<Option<usize>>();
            match (first, &before) {
                // A repeated row is copied as a whole.
                (_, Some((same, done))) if *same == first => row.copy_from_slice(done),
                // An input without elements has no columns to copy.
                (Some(first), _) => line.copy_row(input.get(first..).unwrap_or_default(), fill, row),
                (None, _) => row.fill(fill),
            }
            before = Some((first, row));
            cursor.advance();
        }
    });
    Ok(())
}

/// How a row of the output maps to a row of the input.
enum RowMapping<'a> {
    /// Each element this many times.
    Repeated(usize),
    /// Consecutive elements between two borders.
    Run(&'a AxisMap),
}

impl<'a> RowMapping<'a> {
    fn new(columns: &'a AxisMap, length: usize) -> Self {
        let times = columns.len() / length.max(1);
        // One long run repeats nothing.
        let is_repeated = times > 0
            && times * length == columns.len()
            && (columns.run.len() == length && times == 1
                || (0..columns.len()).all(|index| columns.source_index(index) == Some(index / times)));
        if is_repeated { Self::Repeated(times) } else { Self::Run(columns) }
    }

    fn copy_row<const N: usize>(&self, input: &[[u8; N]], fill: [u8; N], row: &mut [[u8; N]]) {
        match self {
            Self::Repeated(1) => row.copy_from_slice(&input[..row.len()]),
            // Upsampling by 2 is common; a constant count vectorizes.
            Self::Repeated(2) => {
                for (cells, from) in row.as_chunks_mut::<2>().0.iter_mut().zip(input) {
                    *cells = [*from; 2];
                }
            }
            Self::Repeated(times) => {
                row.chunks_mut(*times).zip(input).for_each(|(cells, from)| cells.fill(*from));
            }
            Self::Run(AxisMap { before, run, after }) => {
                let (first, rest) = row.split_at_mut(before.len());
                let (middle, last) = rest.split_at_mut(run.len());
                before.copy_part(input, fill, first);
                if !run.is_empty() {
                    middle.copy_from_slice(&input[run.clone()]);
                }
                after.copy_part(input, fill, last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_repeated_or_taken_from_anywhere() {
        for (columns, length, expected) in [
            (vec![Some(0), Some(0), Some(1), Some(1)], 2, &[1, 1, 2, 2][..]),
            (vec![Some(0), Some(1), Some(2), Some(3)], 4, &[1, 2, 3, 4]),
            (vec![Some(0), Some(0), Some(0), Some(0)], 1, &[1, 1, 1, 1]),
            (vec![Some(0), Some(1), None, Some(1)], 2, &[1, 2, 9, 2]),
            (vec![Some(2), Some(1), Some(0), Some(1), Some(2), Some(1)], 3, &[3, 2, 1, 2, 3, 2]),
            (vec![None, Some(1), Some(2), Some(3), None, None], 5, &[9, 2, 3, 4, 9, 9]),
            (vec![Some(1), Some(0), Some(1), Some(0)], 2, &[2, 1, 2, 1]),
            // The start of a longer row is no repetition of all of it.
            (vec![Some(0), Some(1), Some(2), Some(3)], 5, &[1, 2, 3, 4]),
        ] {
            let (input, mut row) = ([[1u8], [2], [3], [4], [5]], vec![[0u8]; expected.len()]);
            RowMapping::new(&AxisMap::from_indices(columns.clone()), length).copy_row(&input, [9], &mut row);
            assert_eq!(row.as_flattened(), expected, "{columns:?}");
        }
    }
}
