//! `Slice`: every nth element between a start and an end, forwards or backwards.

use std::sync::Arc;

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{
    INDEX_DTYPES, element_bytes, element_bytes_mut, read_integers, read_optional_integers,
};
use oarlock_sdk::{Kernel, KernelCall, Result, ensure};

use super::strided::StridedCopy;
use super::{data_operand, host_operand, optional_host_operand, shape};

pub(super) fn slice_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        Kernel::new_prepared("Slice", |_, call| {
            let list = |name| call.ints_attribute(name).map(|list| list.map(<[i64]>::to_vec));
            let (starts, ends, axes) = (list("starts")?, list("ends")?, list("axes")?);
            let range = SliceAttributes {
                starts: starts.unwrap_or_default(),
                ends: ends.unwrap_or_default(),
                axes,
                steps: None,
            };
            Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| range.copy_slice(cpu, call)))
        })
        .until_version(9)
        .with_inputs([data_operand("data")])
        .with_outputs([data_operand("output")]),
        Kernel::new("Slice", |cpu, call| {
            let (starts, ends) = (read_integers(&call.input(1)?)?, read_integers(&call.input(2)?)?);
            let (axes, steps) = (read_optional_integers(call, 3)?, read_optional_integers(call, 4)?);
            SliceAttributes { starts, ends, axes, steps }.copy_slice(cpu, call)
        })
        .since_version(10)
        .with_inputs([
            data_operand("data"),
            host_operand("starts", INDEX_DTYPES).with_dtype_group(2),
            host_operand("ends", INDEX_DTYPES).with_dtype_group(2),
            optional_host_operand("axes", INDEX_DTYPES).with_dtype_group(2),
            optional_host_operand("steps", INDEX_DTYPES).with_dtype_group(2),
        ])
        .with_outputs([data_operand("output")]),
    ]
}

struct SliceAttributes {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
}

impl SliceAttributes {
    fn copy_slice(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (input, output) = (call.input(0)?, call.output(0)?);
        let mut dims = shape::shape_dims(&input)?;
        let count = self.starts.len();
        let axes = match &self.axes {
            Some(axes) => shape::resolve_axes(axes, dims.len())?,
            // More starts than dimensions fail the comparison of lengths below.
            None => (0..count.min(dims.len())).collect(),
        };
        let steps = self.steps.clone().unwrap_or_else(|| vec![1; count]);
        ensure!(
            axes.len() == count,
            invalid_argument,
            "expected as many `axes` as `starts`, found {} and {count}",
            axes.len()
        );
        shape::expect_length(&self.ends, "ends", count)?;
        shape::expect_length(&steps, "steps", count)?;
        let mut strides: Vec<_> =
            shape::contiguous_strides(&dims).into_iter().map(|stride| stride as isize).collect();
        let mut begin = 0usize;
        for (index, axis) in axes.into_iter().enumerate() {
            let (first, length) =
                index_range(self.starts[index], self.ends[index], steps[index], dims[axis])?;
            // A step that is taken is shorter than the dimension, so sums and products fit if there are elements.
            begin = begin.saturating_add(first.saturating_mul(strides[axis] as usize));
            dims[axis] = length;
            // A single element is never left, so a step of any size does no harm there.
            if length > 1 {
                strides[axis] = strides[axis].saturating_mul(steps[index] as isize);
            }
        }
        shape::expect_shape(&output, "output", &dims)?;
        by_size!(input.dtype(), N => {
            let (from, to) = (element_bytes::<N>(&input)?, element_bytes_mut::<N>(&output)?);
            StridedCopy::new(begin, &dims, &strides, from.len())?.copy_into(cpu, from, to)
        })
    }
}

/// The first index and the number of indices. Starts and ends beyond the dimension are clamped to it.
fn index_range(start: i64, end: i64, step: i64, dim: usize) -> Result<(usize, usize)> {
    ensure!(step != 0, invalid_argument, "expected `steps` other than 0, found 0");
    let dim = dim as i64;
    // The lowest and the highest integer stand for either end, and are clamped below.
    let from_start = |index: i64| if index < 0 { index.saturating_add(dim) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let (start, distance) = if step > 0 {
        let start = start.clamp(0, dim);
        (start, end.clamp(0, dim) - start)
    } else {
        let start = start.clamp(0, (dim - 1).max(0));
        // Backwards, a slice with the first element ends at -1.
        (start, if dim == 0 { 0 } else { start - end.clamp(-1, dim - 1) })
    };
    if distance <= 0 {
        return Ok((0, 0));
    }
    // `abs` of the lowest step would overflow.
    Ok((start as usize, (distance as u64).div_ceil(step.unsigned_abs()) as usize))
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use super::index_range;
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn ranges_are_clamped_to_the_dimension() {
        assert_eq!(index_range(1, 1000, 2, 6).unwrap(), (1, 3));
        assert_eq!(index_range(-1, i64::MIN, -1, 4).unwrap(), (3, 4));
        assert_eq!(index_range(i64::MAX, i64::MIN, i64::MIN, 4).unwrap(), (3, 1));
        assert_eq!(index_range(i64::MIN, i64::MAX, i64::MAX, 4).unwrap(), (0, 1));
        assert_eq!(index_range(3, 1, 1, 4).unwrap(), (0, 0));
        assert_eq!(index_range(0, 5, -1, 0).unwrap(), (0, 0));
        assert_eq!(index_range(-1, i64::MIN, -1, 0).unwrap(), (0, 0));
        // Backwards, a start before the first element is clamped to the first.
        assert_eq!(index_range(-9, -9, -1, 4).unwrap(), (0, 1));
    }

    #[test]
    fn slices_go_forwards_and_backwards() {
        let values: Vec<u16> = (0..20).collect();
        let input = TestArray::from_values(&[4, 5], &values);
        let list = |values: &[i32]| TestArray::from_values(&[values.len() as i64], values);
        let (starts, ends, axes, steps) =
            (list(&[-1, 1]), list(&[-100, 100]), list(&[0, -1]), list(&[-2, 3]));
        let inputs = [Some(&input), Some(&starts), Some(&ends), Some(&axes), Some(&steps)];
        let results = KERNELS.run_kernel("Slice", 13, &[], &inputs, &[Some((Dtype::U16, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<u16>(), [16, 19, 6, 9]);
    }

    #[test]
    fn the_old_form_takes_attributes() {
        let input = TestArray::from_values(&[2, 3], &[1u8, 2, 3, 4, 5, 6]);
        let attributes = [
            ("starts", TestAttribute::Ints(&[1])),
            ("ends", TestAttribute::Ints(&[i64::MAX])),
            ("axes", TestAttribute::Ints(&[1])),
        ];
        let results = KERNELS
            .run_kernel("Slice", 1, &attributes, &[Some(&input)], &[Some((Dtype::U8, &[2, 2]))])
            .unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [2, 3, 5, 6]);
    }

    #[test]
    fn a_step_of_zero_and_lists_that_do_not_match_are_refused() {
        let input = TestArray::from_values(&[3], &[1u8, 2, 3]);
        let (one, two) = (TestArray::from_values(&[1], &[0i64]), TestArray::from_values(&[2], &[0i64, 0]));
        for steps in [&one, &two] {
            let inputs = [Some(&input), Some(&one), Some(&one), Some(&one), Some(steps)];
            assert!(KERNELS.run_kernel("Slice", 13, &[], &inputs, &[Some((Dtype::U8, &[0]))]).is_err());
        }
    }
}
