//! `Gather`, `GatherElements` and `GatherND`: elements picked by their positions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    element_bytes, element_bytes_mut, for_parallel_pieces, read_integers, typed_values,
};
use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, TensorView, ensure,
};

use super::strided::StrideCursor;
use super::{data_operand, index_operand, shape};

pub(super) fn gather_kernels() -> Vec<Kernel<Cpu>> {
    // Elements are copied byte by byte, from any alignment.
    let data = |name| data_operand(name).with_flags(OperandFlags::UNALIGNED);
    let result = super::data_operand;
    let along = |op: &str, run: fn(&Cpu, &KernelCall<'_>, i64) -> Result<()>| {
        Kernel::new_prepared(op, move |_, call| {
            let axis = call.int_attribute("axis")?.unwrap_or(0);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| run(cpu, call, axis)))
        })
        .with_inputs([data("data"), index_operand("indices")])
        .with_outputs([result("output")])
    };
    vec![
        along("Gather", gather),
        along("GatherElements", gather_elements).since_version(11),
        Kernel::new_prepared("GatherND", |_, call| {
            let batch_dims = call.int_attribute("batch_dims")?.unwrap_or(0);
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| gather_nd(cpu, call, batch_dims)))
        })
        .since_version(11)
        .with_inputs([data("data"), OperandSpec::new(DtypeSet::I64).with_name("indices")])
        .with_outputs([result("output")]),
    ]
}

pub(super) fn checked_index(index: i64, dim: usize) -> Result<usize> {
    shape::resolve_index(index, dim).ok_or_else(|| {
        PluginError::out_of_range(format!(
            "expected `indices` from -{dim} to {dim} (exclusive), found {index}"
        ))
    })
}

fn gather(cpu: &Cpu, call: &KernelCall<'_>, axis: i64) -> Result<()> {
    let (input, positions, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let dims = shape::shape_dims(&input)?;
    let axis = resolve_axis(axis, dims.len())?;
    let expected = [&dims[..axis], &shape::shape_dims(&positions)?, &dims[axis + 1..]].concat();
    shape::expect_shape(&output, "output", &expected)?;
    let (_, length, inner) = shape::split_at_axis(&dims, axis);
    by_size!(input.dtype(), N => {
        let (from, out) = (element_bytes::<N>(&input)?, element_bytes_mut::<N>(&output)?);
        // A copy of the loop for each dtype, instead of a converted copy of all positions.
        match positions.dtype() {
            Dtype::I32 => gather_rows(cpu, typed_values::<i32>(&positions)?, from, [length, inner], out),
            _ => gather_rows(cpu, typed_values::<i64>(&positions)?, from, [length, inner], out),
        }
    })
}

/// Gathers rows of `inner` elements from each block of `length` rows.
fn gather_rows<const N: usize, I: Copy + Into<i64> + Sync>(
    cpu: &Cpu,
    positions: &[I],
    from: &[[u8; N]],
    [length, inner]: [usize; 2],
    out: &mut [[u8; N]],
) -> Result<()> {
    if out.is_empty() {
        return check_positions(positions, length);
    }
    let fits = AtomicBool::new(true);
    for_parallel_pieces(cpu, out, inner, |begin, mut out| {
        let (mut outer, mut index) = (begin / positions.len(), begin % positions.len());
        let mut all_fit = true;
        while !out.is_empty() {
            let rows = (positions.len() - index).min(out.len() / inner);
            let (part, rest) = out.split_at_mut(rows * inner);
            let (block, positions) =
                (&from[outer * length * inner..][..length * inner], &positions[index..index + rows]);
            // A copy of unknown length is a function call, which single elements do without.
            all_fit &= if inner == 1 {
                gather_from_line(positions, block, part)
            } else {
                part.chunks_exact_mut(inner).zip(positions).all(|(row, position)| {
                    let place = place_of_position((*position).into(), length);
                    let found = if place < length { block.get(place * inner..) } else { None };
                    found.map(|found| row.copy_from_slice(&found[..inner])).is_some()
                })
            };
            (outer, index, out) = (outer + 1, 0, rest);
        }
        if !all_fit {
            fits.store(false, Ordering::Relaxed);
        }
    });
    if fits.into_inner() { Ok(()) } else { check_positions(positions, length) }
}

/// The place of a position that may count from the end. One that is out of bounds becomes at least `length`, so one comparison
/// checks both ends.
#[inline(always)]
fn place_of_position(position: i64, length: usize) -> usize {
    (if position < 0 { position.wrapping_add(length as i64) } else { position }) as usize
}

/// Names the first position that is out of bounds. Loops that gather only notice that there is one.
fn check_positions<I: Copy + Into<i64>>(positions: &[I], length: usize) -> Result<()> {
    positions.iter().try_for_each(|position| checked_index((*position).into(), length).map(drop))
}

fn gather_elements(cpu: &Cpu, call: &KernelCall<'_>, axis: i64) -> Result<()> {
    let (input, positions, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let along = IndexedAxis::new(&input, &positions, axis)?;
    shape::expect_shape(&output, "output", &along.dims)?;
    by_size!(input.dtype(), N => {
        let (from, out) = (element_bytes::<N>(&input)?, element_bytes_mut::<N>(&output)?);
        // A copy of the loop for each dtype, instead of a converted copy of all positions.
        match positions.dtype() {
            Dtype::I32 => along.gather_indexed(cpu, typed_values::<i32>(&positions)?, from, out),
            _ => along.gather_indexed(cpu, typed_values::<i64>(&positions)?, from, out),
        }
    })
}

/// The axis that positions of `GatherElements` and `ScatterElements` index, and how the data lies along the others.
pub(super) struct IndexedAxis {
    /// The dimensions of the positions.
    pub(super) dims: Vec<usize>,
    /// The stride of the data along each axis, but 0 along the indexed one.
    strides: Vec<isize>,
    step: usize,
    length: usize,
}

impl IndexedAxis {
    pub(super) fn new(data: &TensorView<'_>, positions: &TensorView<'_>, axis: i64) -> Result<Self> {
        let (dims, around) = (shape::shape_dims(positions)?, shape::shape_dims(data)?);
        let axis = resolve_axis(axis, around.len())?;
        let fits = dims.len() == around.len()
            && (0..dims.len()).all(|other| other == axis || dims[other] <= around[other]);
        ensure!(
            fits,
            invalid_argument,
            "expected `indices` of a shape inside of the data's {around:?}, found {dims:?}"
        );
        let mut strides: Vec<_> =
            shape::contiguous_strides(&around).into_iter().map(|step| step as isize).collect();
        let step = std::mem::replace(&mut strides[axis], 0) as usize;
        Ok(Self { dims, strides, step, length: around[axis] })
    }

    fn gather_indexed<const N: usize, I: Copy + Into<i64> + Sync>(
        &self,
        cpu: &Cpu,
        positions: &[I],
        from: &[[u8; N]],
        out: &mut [[u8; N]],
    ) -> Result<()> {
        let (Some((row, outer)), Some((stride, strides))) =
            (self.dims.split_last(), self.strides.split_last())
        else {
            return Ok(());
        };
        let steps = IndexSteps { length: self.length, step: self.step, stride: *stride as usize };
        // Indices are checked while elements are copied. Only if one is wrong are they read once more, to name it.
        let fits = AtomicBool::new(true);
        for_parallel_pieces(cpu, out, 1, |begin, mut out| {
            let mut all_fit = true;
            let mut cursor = StrideCursor::new(outer, strides, begin / row);
            let (mut column, mut positions) = (begin % row, &positions[begin..]);
            while !out.is_empty() {
                let (cells, rest) = out.split_at_mut(out.len().min(row - column));
                let first = cursor.offset as usize + column * steps.stride;
                all_fit &= steps.gather_row(positions, from, first, cells);
                (column, positions, out) = (0, &positions[cells.len()..], rest);
                cursor.advance();
            }
            if !all_fit {
                // Relaxed is enough: the end of the loop comes before the read.
                fits.store(false, Ordering::Relaxed);
            }
        });
        if fits.into_inner() { Ok(()) } else { check_positions(positions, self.length) }
    }

    /// Calls `visit` with the place in the data of each position, in order, up to the first that is out of bounds.
    pub(super) fn visit_places<I: Copy + Into<i64>>(
        &self,
        positions: &[I],
        mut visit: impl FnMut(usize),
    ) -> Result<()> {
        let (Some((row, outer)), Some((stride, strides))) =
            (self.dims.split_last(), self.strides.split_last())
        else {
            return Ok(());
        };
        let (length, step, stride) = (self.length, self.step, *stride as usize);
        let mut cursor = StrideCursor::new(outer, strides, 0);
        for positions in positions.chunks_exact((*row).max(1)) {
            let mut first = cursor.offset as usize;
            for position in positions {
                let place = place_of_position((*position).into(), length);
                if place >= length {
                    return checked_index((*position).into(), length).map(drop);
                }
                visit(first + place * step);
                first += stride;
            }
            cursor.advance();
        }
        Ok(())
    }
}

/// How a row of positions maps to the data.
#[derive(Clone, Copy)]
struct IndexSteps {
    /// The number of places along the axis, and their distance.
    length: usize,
    step: usize,
    /// The distance of the first places of neighboring positions.
    stride: usize,
}

impl IndexSteps {
    /// Gathers elements relative to `first`, and returns whether all positions are in bounds. `self` is a copy, so that writing
    /// the output does not make the compiler read the steps again for each element.
    fn gather_row<const N: usize, I: Copy + Into<i64>>(
        self,
        positions: &[I],
        from: &[[u8; N]],
        mut first: usize,
        cells: &mut [[u8; N]],
    ) -> bool {
        // All positions index one contiguous line, so the slice is taken once and each access is a single bounds check.
        if self.step == 1 && self.stride == 0 {
            let line = from.get(first..).and_then(|from| from.get(..self.length));
            return line.is_some_and(|line| gather_from_line(positions, line, cells));
        }
        let mut all_fit = true;
        for (cell, position) in cells.iter_mut().zip(positions) {
            let place = place_of_position((*position).into(), self.length);
            all_fit &= place < self.length;
            // A wrong place may overflow, but then its element is not used.
            let element = from.get(first.wrapping_add(place.wrapping_mul(self.step)));
            *cell = element.copied().unwrap_or([0; N]);
            first += self.stride;
        }
        all_fit
    }
}

/// Gathers elements of a contiguous line. Stops at a position that is out of bounds and returns false.
fn gather_from_line<const N: usize, I: Copy + Into<i64>>(
    positions: &[I],
    line: &[[u8; N]],
    cells: &mut [[u8; N]],
) -> bool {
    for (cell, position) in cells.iter_mut().zip(positions) {
        let place = place_of_position((*position).into(), line.len());
        let Some(element) = line.get(place) else { return false };
        *cell = *element;
    }
    true
}

fn gather_nd(cpu: &Cpu, call: &KernelCall<'_>, batch_dims: i64) -> Result<()> {
    let (input, positions, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let (dims, tuples) = (shape::shape_dims(&input)?, IndexTuples::new(&input, &positions, batch_dims)?);
    let expected = [&tuples.dims[..], &dims[tuples.depth..]].concat();
    shape::expect_shape(&output, "output", &expected)?;
    let (starts, width) = (&tuples.starts, tuples.width);
    by_size!(input.dtype(), N => {
        let from = element_bytes::<N>(&input)?;
        for_parallel_pieces(cpu, element_bytes_mut::<N>(&output)?, width, |begin, out| {
            for (out, start) in out.chunks_mut(width).zip(&starts[begin..]) {
                out.copy_from_slice(&from[*start..start + width]);
            }
        });
        Ok(())
    })
}

/// Offsets into the data for the index tuples of `GatherND` and `ScatterND`, each of `width` elements.
pub(super) struct IndexTuples {
    /// The dimensions of the indices without the last.
    pub(super) dims: Vec<usize>,
    /// The number of dimensions of the data that a tuple and its batch fix.
    pub(super) depth: usize,
    pub(super) width: usize,
    pub(super) starts: Vec<usize>,
}

impl IndexTuples {
    pub(super) fn new(data: &TensorView<'_>, positions: &TensorView<'_>, batch_dims: i64) -> Result<Self> {
        let (around, mut dims) = (shape::shape_dims(data)?, shape::shape_dims(positions)?);
        let batch_dims = usize::try_from(batch_dims).unwrap_or(usize::MAX);
        let length = dims.pop().ok_or_else(|| {
            PluginError::invalid_argument("expected `indices` of at least one dimension, found a scalar")
        })?;
        let depth = batch_dims.saturating_add(length);
        ensure!(
            batch_dims <= dims.len() && depth <= around.len() && dims[..batch_dims] == around[..batch_dims],
            invalid_argument,
            "expected `indices` that lead {depth} dimensions deep into {around:?} with {batch_dims} in common, \
             found the shape {:?}",
            positions.dims()
        );
        let width = shape::element_count(&around[depth..])?;
        let steps = shape::contiguous_strides(&around);
        let tuples = shape::element_count(&dims)?;
        let batches = dims[..batch_dims].iter().fold(1usize, |count, dim| count.saturating_mul(*dim));
        // Batches are as far apart as neighbors along the last dimension that they have in common.
        let (per_batch, batch_step) =
            (tuples / batches.max(1), if batch_dims == 0 { 0 } else { steps[batch_dims - 1] });
        let indices = read_integers(positions)?;
        let start = |tuple: usize| {
            // Steps through data without elements may overflow.
            let mut start = (tuple / per_batch.max(1)).wrapping_mul(batch_step);
            for axis in 0..length {
                let at = batch_dims + axis;
                let index = checked_index(indices[tuple * length + axis], around[at])?;
                start = start.wrapping_add(index.wrapping_mul(steps[at]));
            }
            Ok(start)
        };
        // If the remainder is empty the offsets mean nothing, but then nothing is moved. There may also be more tuples without
        // indices than fit into memory.
        let tuples = if length == 0 && width == 0 { 0 } else { tuples };
        // Before any element is copied, as the loop that copies cannot return an error.
        let starts = (0..tuples).map(start).collect::<Result<_>>()?;
        Ok(Self { dims, depth, width, starts })
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn sample_data() -> TestArray {
        TestArray::from_values(&[3, 2], &[1f32, 2., 3., 4., 5., 6.])
    }

    #[test]
    fn rows_are_gathered_along_any_axis() {
        let positions = TestArray::from_values(&[1, 2], &[-1i32, 0]);
        for (axis, dims, expected) in
            [(0, &[1, 2, 2][..], &[5f32, 6., 1., 2.][..]), (-1, &[3, 1, 2], &[2., 1., 4., 3., 6., 5.])]
        {
            let axis = [("axis", TestAttribute::Int(axis))];
            let outputs = [Some((Dtype::F32, dims))];
            let results = KERNELS
                .run_kernel("Gather", 13, &axis, &[Some(&sample_data()), Some(&positions)], &outputs)
                .unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<f32>(), expected);
        }
    }

    #[test]
    fn a_scalar_position_takes_the_axis_away() {
        let position = TestArray::from_values(&[], &[1i64]);
        let outputs = [Some((Dtype::F32, &[2][..]))];
        let results = KERNELS
            .run_kernel("Gather", 13, &[], &[Some(&sample_data()), Some(&position)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [3., 4.]);
    }

    #[test]
    fn gather_with_no_indices_gives_an_empty_output() {
        let positions = TestArray::from_values::<i64>(&[0], &[]);
        let outputs = [Some((Dtype::F32, &[0, 2][..]))];
        assert!(
            KERNELS
                .run_kernel("Gather", 13, &[], &[Some(&sample_data()), Some(&positions)], &outputs)
                .is_ok()
        );
    }

    #[test]
    fn positions_outside_are_refused_by_every_op() {
        for (op, dims, out) in [
            ("Gather", &[1][..], &[1, 2][..]),
            ("GatherElements", &[1, 1], &[1, 1]),
            ("GatherND", &[1], &[2]),
        ] {
            for position in [3, -4, i64::MIN, i64::MAX] {
                let positions = TestArray::from_values(dims, &[position]);
                let outputs = [Some((Dtype::F32, out))];
                let message = KERNELS
                    .run_kernel(op, 13, &[], &[Some(&sample_data()), Some(&positions)], &outputs)
                    .unwrap_err();
                assert!(message.contains("`indices` from -3 to 3"), "{op}: {message}");
            }
        }
    }

    #[test]
    fn positions_outside_of_the_last_axis_are_refused() {
        let (axis, outputs) = ([("axis", TestAttribute::Int(1))], [Some((Dtype::F32, &[1, 2][..]))]);
        for position in [2, -3, i64::MIN, i64::MAX] {
            let positions = TestArray::from_values(&[1, 2], &[-2, position]);
            let inputs = [Some(&sample_data()), Some(&positions)];
            let message = KERNELS.run_kernel("GatherElements", 13, &axis, &inputs, &outputs).unwrap_err();
            assert!(message.contains("`indices` from -2 to 2"), "{message}");
        }
    }

    #[test]
    fn elements_are_gathered_along_an_axis() {
        let positions = TestArray::from_values(&[2, 2], &[1i64, -1, 0, 0]);
        let outputs = [Some((Dtype::F32, &[2, 2][..]))];
        let results = KERNELS
            .run_kernel("GatherElements", 13, &[], &[Some(&sample_data()), Some(&positions)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [3., 6., 1., 2.]);
    }

    #[test]
    fn positions_along_each_axis_count_from_either_end() {
        let dims = [3i64, 4, 5];
        let values: Vec<u16> = (0..60).collect();
        let data = TestArray::from_values(&dims, &values);
        for axis in 0..3 {
            let mut shape = [2i64, 3, 4];
            shape[axis] = 7;
            let count = shape.iter().product::<i64>();
            let positions: Vec<i32> =
                (0..count).map(|at| (at * 5 % (2 * dims[axis]) - dims[axis]) as i32).collect();
            let place = |at: i64| {
                let mut index = [at / (shape[1] * shape[2]), at / shape[2] % shape[1], at % shape[2]];
                index[axis] = i64::from(positions[at as usize]).rem_euclid(dims[axis]);
                (index[0] * 4 + index[1]) * 5 + index[2]
            };
            let expected: Vec<u16> = (0..count).map(|at| place(at) as u16).collect();
            let attributes = [("axis", TestAttribute::Int(axis as i64))];
            let positions = TestArray::from_values(&shape, &positions);
            let outputs = [Some((Dtype::U16, &shape[..]))];
            let inputs = [Some(&data), Some(&positions)];
            let results = KERNELS.run_kernel("GatherElements", 13, &attributes, &inputs, &outputs).unwrap();
            assert_eq!(results[0].as_ref().unwrap().values::<u16>(), expected, "axis {axis}");
        }
    }

    #[test]
    fn tuples_of_indices_gather_what_they_lead_to() {
        let positions = TestArray::from_values(&[2, 2], &[0i64, 1, -1, 0]);
        let outputs = [Some((Dtype::F32, &[2][..]))];
        let results = KERNELS
            .run_kernel("GatherND", 13, &[], &[Some(&sample_data()), Some(&positions)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2., 5.]);
        let (positions, batch) =
            (TestArray::from_values(&[3, 1], &[1i64, 0, 1]), [("batch_dims", TestAttribute::Int(1))]);
        let outputs = [Some((Dtype::F32, &[3][..]))];
        let results = KERNELS
            .run_kernel("GatherND", 13, &batch, &[Some(&sample_data()), Some(&positions)], &outputs)
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [2., 3., 6.]);
    }

    #[test]
    fn tuples_that_lead_too_deep_are_refused() {
        let positions = TestArray::from_values(&[1, 3], &[0i64, 0, 0]);
        let outputs = [Some((Dtype::F32, &[1][..]))];
        assert!(
            KERNELS
                .run_kernel("GatherND", 13, &[], &[Some(&sample_data()), Some(&positions)], &outputs)
                .is_err()
        );
        let batch = [("batch_dims", TestAttribute::Int(-1))];
        assert!(
            KERNELS
                .run_kernel("GatherND", 13, &batch, &[Some(&sample_data()), Some(&positions)], &outputs)
                .is_err()
        );
    }
}
