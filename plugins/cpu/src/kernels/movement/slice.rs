//! `Slice`: every so many elements between a start and an end, forwards or backwards.

use std::sync::Arc;

use oarlock_sdk::{Call, Kernel, Result, ensure};

use super::operand::{INDEX, by_size, cells, cells_mut, integers, optional_integers};
use super::strided::Strided;
use super::{data, host, optional_host, shape};
use crate::device::Cpu;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![
        Kernel::prepared("Slice", |_, call| {
            let list = |name| call.ints(name).map(|list| list.map(<[i64]>::to_vec));
            let (starts, ends, axes) = (list("starts")?, list("ends")?, list("axes")?);
            let range = Range {
                starts: starts.unwrap_or_default(),
                ends: ends.unwrap_or_default(),
                axes,
                steps: None,
            };
            Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| range.slice(cpu, call)))
        })
        .until(9)
        .inputs([data("data")])
        .outputs([data("output")]),
        Kernel::new("Slice", |cpu, call| {
            let (starts, ends) = (integers(&call.input(1)?)?, integers(&call.input(2)?)?);
            let (axes, steps) = (optional_integers(call, 3)?, optional_integers(call, 4)?);
            Range { starts, ends, axes, steps }.slice(cpu, call)
        })
        .since(10)
        .inputs([
            data("data"),
            host("starts", INDEX).group(2),
            host("ends", INDEX).group(2),
            optional_host("axes", INDEX).group(2),
            optional_host("steps", INDEX).group(2),
        ])
        .outputs([data("output")]),
    ]
}

struct Range {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Option<Vec<i64>>,
    steps: Option<Vec<i64>>,
}

impl Range {
    fn slice(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let (input, output) = (call.input(0)?, call.output(0)?);
        let mut dims = shape::dims(&input)?;
        let count = self.starts.len();
        let axes = match &self.axes {
            Some(axes) => shape::axes(axes, dims.len())?,
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
        let mut strides: Vec<_> = shape::strides(&dims).into_iter().map(|stride| stride as isize).collect();
        let mut begin = 0usize;
        for (index, axis) in axes.into_iter().enumerate() {
            let (first, length) = range(self.starts[index], self.ends[index], steps[index], dims[axis])?;
            // A step that is taken is shorter than the dimension, so sums and products fit where there are elements.
            begin = begin.saturating_add(first.saturating_mul(strides[axis] as usize));
            dims[axis] = length;
            if length > 1 {
                strides[axis] = strides[axis].saturating_mul(steps[index] as isize);
            }
        }
        shape::expect(&output, "output", &dims)?;
        by_size!(input.dtype(), N => {
            let (from, to) = (cells::<N>(&input)?, cells_mut::<N>(&output)?);
            Strided::new(begin, &dims, &strides, from.len())?.copy(cpu, from, to)
        })
    }
}

/// The first index and how many there are. Starts and ends beyond the dimension are moved to its ends.
fn range(start: i64, end: i64, step: i64, dim: usize) -> Result<(usize, usize)> {
    ensure!(step != 0, invalid_argument, "expected `steps` other than 0, found 0");
    let dim = dim as i64;
    let from_start = |index: i64| if index < 0 { index.saturating_add(dim) } else { index };
    let (start, end) = (from_start(start), from_start(end));
    let (start, distance) = if step > 0 {
        let start = start.clamp(0, dim);
        (start, end.clamp(0, dim) - start)
    } else {
        let start = start.clamp(0, (dim - 1).max(0));
        (start, if dim == 0 { 0 } else { start - end.clamp(-1, dim - 1) })
    };
    if distance <= 0 {
        return Ok((0, 0));
    }
    Ok((start as usize, (distance as u64).div_ceil(step.unsigned_abs()) as usize))
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use super::range;
    use crate::testing::{Array, Attribute, run};

    #[test]
    fn ranges_are_clamped_to_the_dimension() {
        assert_eq!(range(1, 1000, 2, 6).unwrap(), (1, 3));
        assert_eq!(range(-1, i64::MIN, -1, 4).unwrap(), (3, 4));
        assert_eq!(range(i64::MAX, i64::MIN, i64::MIN, 4).unwrap(), (3, 1));
        assert_eq!(range(i64::MIN, i64::MAX, i64::MAX, 4).unwrap(), (0, 1));
        assert_eq!(range(3, 1, 1, 4).unwrap(), (0, 0));
        assert_eq!(range(0, 5, -1, 0).unwrap(), (0, 0));
        assert_eq!(range(-1, i64::MIN, -1, 0).unwrap(), (0, 0));
        // Backwards, a start before the first element is the first.
        assert_eq!(range(-9, -9, -1, 4).unwrap(), (0, 1));
    }

    #[test]
    fn slices_go_forwards_and_backwards() {
        let values: Vec<u16> = (0..20).collect();
        let input = Array::of(&[4, 5], &values);
        let list = |values: &[i32]| Array::of(&[values.len() as i64], values);
        let (starts, ends, axes, steps) =
            (list(&[-1, 1]), list(&[-100, 100]), list(&[0, -1]), list(&[-2, 3]));
        let inputs = [Some(&input), Some(&starts), Some(&ends), Some(&axes), Some(&steps)];
        let results = run("Slice", 13, &[], &inputs, &[Some((Dtype::U16, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<u16>(), [16, 19, 6, 9]);
    }

    #[test]
    fn the_old_form_takes_attributes() {
        let input = Array::of(&[2, 3], &[1u8, 2, 3, 4, 5, 6]);
        let attributes = [
            ("starts", Attribute::Ints(&[1])),
            ("ends", Attribute::Ints(&[i64::MAX])),
            ("axes", Attribute::Ints(&[1])),
        ];
        let results = run("Slice", 1, &attributes, &[Some(&input)], &[Some((Dtype::U8, &[2, 2]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().bytes(), [2, 3, 5, 6]);
    }

    #[test]
    fn a_step_of_zero_and_lists_that_do_not_match_are_refused() {
        let input = Array::of(&[3], &[1u8, 2, 3]);
        let (one, two) = (Array::of(&[1], &[0i64]), Array::of(&[2], &[0i64, 0]));
        for steps in [&one, &two] {
            let inputs = [Some(&input), Some(&one), Some(&one), Some(&one), Some(steps)];
            assert!(run("Slice", 13, &[], &inputs, &[Some((Dtype::U8, &[0]))]).is_err());
        }
    }
}
