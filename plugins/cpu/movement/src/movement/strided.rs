//! The one loop behind most movements: a contiguous output whose elements lie at strides in the input. Transposes, slices with
//! steps, repetitions (stride 0) and reversals (negative strides) all have this form.

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::for_parallel_pieces;
use oarlock_cpu_base::rows::plane_transpose::PlaneTranspose;
use oarlock_sdk::{Result, ensure};

use super::shape;

/// Bytes of the blocks of an output in which repetitions are copied from the output itself: the size of a small L1 cache.
const REPEAT_BLOCK_BYTES: usize = 32 << 10;

/// Where the elements of an output lie in the input.
pub(super) struct StridedCopy {
    start: usize,
    dims: Vec<usize>,
    strides: Vec<isize>,
}

impl StridedCopy {
    /// The element at index `i` of the output lies in the input at `start` + Σ `i` · `strides`. All must lie below `limit`.
    pub(super) fn new(start: usize, dims: &[usize], strides: &[isize], limit: usize) -> Result<Self> {
        let mut this = Self { start, dims: Vec::new(), strides: Vec::new() };
        if shape::element_count(dims)? == 0 {
            this.dims.push(0);
            this.strides.push(0);
            return Ok(this);
        }
        // Wide enough for products of any size and stride.
        let (mut lowest, mut highest) = (start as i128, start as i128);
        for (dim, stride) in dims.iter().zip(strides) {
            let reach = (*dim as i128 - 1) * *stride as i128;
            lowest += reach.min(0);
            highest += reach.max(0);
        }
        ensure!(
            lowest >= 0 && highest < limit as i128,
            out_of_range,
            "expected elements inside of the {limit} of the input, found some from {lowest} to {highest}"
        );
        // A dimension of 1 is never walked, but would keep those around it from merging.
        for (dim, stride) in dims.iter().zip(strides).filter(|(dim, _)| **dim != 1) {
            this.push_dimension(*dim, *stride);
        }
        Ok(this)
    }

    /// Appends a dimension, or merges it into the last one if both are one walk through memory.
    fn push_dimension(&mut self, dim: usize, stride: isize) {
        if let (Some(last_dim), Some(last_stride)) = (self.dims.last_mut(), self.strides.last_mut())
            && Some(*last_stride) == stride.checked_mul(dim as isize)
        {
            *last_dim *= dim;
            *last_stride = stride;
            return;
        }
        self.dims.push(dim);
        self.strides.push(stride);
    }

    /// Fills an output, which has as many elements as the dimensions say.
    pub(super) fn copy_into<const N: usize>(
        &self,
        cpu: &Cpu,
        input: &[[u8; N]],
        out: &mut [[u8; N]],
    ) -> Result<()> {
        let expected = shape::element_count(&self.dims)?;
        let found = out.len();
        ensure!(
            found == expected,
            invalid_argument,
            "expected an output of {expected} elements, found {found}"
        );
        if out.is_empty() {
            return Ok(());
        }
        let Some((inner, outer)) = self.dims.split_last() else {
            out[0] = input[self.start];
            return Ok(());
        };
        let stride = self.strides[outer.len()];
        // An outer stride of 1 beside a larger inner one is a transpose: by tiles, both sides are accessed in whole cache lines.
        let crossing = self.strides[..outer.len()].iter().rposition(|stride| *stride == 1);
        let blocks = self.block_axes::<N>();
        if let Some(axis) = crossing.filter(|_| stride > 1) {
            self.copy_across(cpu, axis, input, out);
        } else if self.strides[blocks.start.min(outer.len())..outer.len()].contains(&0) {
            // A repeated innermost axis alone does not lead here: it fills each row, as copying row by row does as well.
            let block = self.dims[blocks.clone()].iter().product();
            for_parallel_pieces(cpu, out, block, |begin, out| {
                let mut starts =
                    StrideCursor::new(&self.dims[..blocks.start], &self.strides[..blocks.start], begin);
                for out in out.chunks_exact_mut(block) {
                    let start = self.start.wrapping_add_signed(starts.offset);
                    self.copy_block(blocks.clone(), input, start, out);
                    starts.advance();
                }
            });
        } else {
            for_parallel_pieces(cpu, out, 1, |begin, out| self.copy_along(*inner, stride, begin, input, out));
        }
        Ok(())
    }

    /// The innermost axes, as many as make a block of at most [`REPEAT_BLOCK_BYTES`].
    fn block_axes<const N: usize>(&self) -> Range<usize> {
        let mut size = N;
        let fits = |dim: &usize| {
            size = size.saturating_mul(*dim);
            size <= REPEAT_BLOCK_BYTES
        };
        let count = self.dims.iter().rev().map(fits).take_while(|fits| *fits).count();
        self.dims.len() - count..self.dims.len()
    }

    /// Copies the elements that these axes span. Repetitions are copied from the output, where each copy doubles what is there.
    fn copy_block<const N: usize>(
        &self,
        axes: Range<usize>,
        input: &[[u8; N]],
        first: usize,
        out: &mut [[u8; N]],
    ) {
        let (axis, inner) = (axes.start, axes.start + 1..axes.end);
        let (dim, stride) = (self.dims[axis], self.strides[axis]);
        if inner.is_empty() {
            copy_row(input, first, stride, out);
        } else if stride == 0 {
            let mut done = out.len() / dim;
            self.copy_block(inner, input, first, &mut out[..done]);
            while done < out.len() {
                let more = done.min(out.len() - done);
                out.copy_within(..more, done);
                done += more;
            }
        } else {
            let mut from = first;
            for out in out.chunks_exact_mut(out.len() / dim) {
                self.copy_block(inner.clone(), input, from, out);
                from = from.wrapping_add_signed(stride);
            }
        }
    }

    /// Copies row by row: `begin` is the index of the first element of this part of the output.
    fn copy_along<const N: usize>(
        &self,
        inner: usize,
        stride: isize,
        begin: usize,
        input: &[[u8; N]],
        out: &mut [[u8; N]],
    ) {
        let last = self.dims.len() - 1;
        let mut rows = StrideCursor::new(&self.dims[..last], &self.strides[..last], begin / inner);
        let (mut column, mut rest) = (begin % inner, out);
        while !rest.is_empty() {
            // A piece may begin and end within a row.
            let (row, further) = rest.split_at_mut(rest.len().min(inner - column));
            let first = self.start.wrapping_add_signed(rows.offset + column as isize * stride);
            copy_row(input, first, stride, row);
            (column, rest) = (0, further);
            rows.advance();
        }
    }

    /// Copies plane by plane, where the input is contiguous along `axis` and the output along the last one.
    fn copy_across<const N: usize>(&self, cpu: &Cpu, axis: usize, input: &[[u8; N]], out: &mut [[u8; N]]) {
        let last = self.dims.len() - 1;
        let (inner, stride) = (self.dims[last], self.strides[last].unsigned_abs());
        let between: usize = self.dims[axis + 1..last].iter().product();
        let unit = between * inner;
        for_parallel_pieces(cpu, out, unit, |begin, mut out| {
            let mut from_axis = begin % self.dims[axis];
            let mut outer =
                StrideCursor::new(&self.dims[..axis], &self.strides[..axis], begin / self.dims[axis]);
            // Advancing past the last position starts over.
            let mut middle = StrideCursor::new(&self.dims[axis + 1..last], &self.strides[axis + 1..last], 0);
            while !out.is_empty() {
                // A piece may begin and end within the axis.
                let rows = (self.dims[axis] - from_axis).min(out.len() / unit);
                let (part, further) = out.split_at_mut(rows * unit);
                for index in 0..between {
                    let first = self.start.wrapping_add_signed(outer.offset + middle.offset) + from_axis;
                    let (input, out) = (&input[first..], &mut part[index * inner..]);
                    PlaneTranspose { input, stride, out, pitch: unit, rows, columns: inner }
                        .transpose_plane(cpu.isa());
                    middle.advance();
                }
                (from_axis, out) = (0, further);
                outer.advance();
            }
        });
    }
}

/// Copies elements that are a stride apart in the input.
fn copy_row<const N: usize>(input: &[[u8; N]], first: usize, stride: isize, row: &mut [[u8; N]]) {
    match stride {
        1 => row.copy_from_slice(&input[first..first + row.len()]),
        0 => row.fill(input[first]),
        -1 => {
            // One slice, so that bounds are checked once and not for each element.
            let backwards = input[..=first].iter().rev();
            row.iter_mut().zip(backwards).for_each(|(cell, from)| *cell = *from);
        }
        _ => {
            let mut from = first;
            for cell in row {
                *cell = input[from];
                from = from.wrapping_add_signed(stride);
            }
        }
    }
}

/// Counts through dimensions and tracks the offset that the strides give.
pub(super) struct StrideCursor<'a> {
    dims: &'a [usize],
    strides: &'a [isize],
    counter: Vec<usize>,
    pub(super) offset: isize,
}

impl<'a> StrideCursor<'a> {
    /// A cursor at a position in the order of a contiguous tensor.
    pub(super) fn new(dims: &'a [usize], strides: &'a [isize], position: usize) -> Self {
        let (mut counter, mut rest, mut offset) = (vec![0; dims.len()], position, 0);
        for axis in (0..dims.len()).rev() {
            // An empty dimension has no position, but 0 must not divide.
            counter[axis] = rest % dims[axis].max(1);
            rest /= dims[axis].max(1);
            offset += counter[axis] as isize * strides[axis];
        }
        Self { dims, strides, counter, offset }
    }

    /// Advances to the next position; after the last one comes the first.
    pub(super) fn advance(&mut self) {
        for axis in (0..self.dims.len()).rev() {
            self.counter[axis] += 1;
            self.offset += self.strides[axis];
            if self.counter[axis] < self.dims[axis] {
                return;
            }
            self.offset -= self.strides[axis] * self.counter[axis] as isize;
            self.counter[axis] = 0;
        }
    }

    pub(super) fn indices(&self) -> &[usize] {
        &self.counter
    }
}
