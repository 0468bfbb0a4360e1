//! `Add`, with the broadcasting of ONNX.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::ops::Add;

use oarlock_sdk::{
    Call, DtypeSet, Element, Error, Kernel, KernelFlags, Operand, Result, Tensor, dispatch, ensure, family,
};

use crate::device::Cpu;

const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

pub(crate) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(NUMBERS).group(1);
    Kernel::new("Add", |_: &Cpu, call| {
        let dtype = call.output(0)?.dtype();
        dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => add::<T>(call))
    })
    .since(7)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([number.named("A"), number.named("B")])
    .outputs([number.named("C")])
    .in_place(0, 0)
    .in_place(0, 1)
}

/// Integers wrap around, as in NumPy.
trait Sum: Element {
    fn sum(self, other: Self) -> Self;
}

macro_rules! sums {
    ($($integer:ty)*; $($float:ty)*) => {
        $(impl Sum for $integer { fn sum(self, other: Self) -> Self { self.wrapping_add(other) } })*
        $(impl Sum for $float { fn sum(self, other: Self) -> Self { self.add(other) } })*
    };
}

sums!(i8 u8 i16 u16 i32 u32 i64 u64; f32 f64 oarlock_sdk::f16 oarlock_sdk::bf16);

fn add<T: Sum>(call: &Call<'_>) -> Result<()> {
    let (a, b, c) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let steps = Steps::new(&a, &b, &c)?;
    // An output may be the very memory of an input, so elements are read and written through pointers, each once.
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (left, right, out) =
        unsafe { (a.elements::<T>()?.as_ptr(), b.elements::<T>()?.as_ptr(), c.elements_mut::<T>()?) };
    let (out, count) = (out.as_mut_ptr(), out.len());
    let (mut left_index, mut right_index) = (0, 0);
    let mut counter = vec![0; steps.dims.len()];
    for index in 0..count {
        // SAFETY: the steps keep each index inside its operand, as their dims fit the output's.
        unsafe { out.add(index).write((*left.add(left_index)).sum(*right.add(right_index))) };
        steps.advance(&mut counter, &mut left_index, &mut right_index);
    }
    Ok(())
}

/// How far apart the elements of each input lie along each dimension of the output; 0 where an input is repeated.
struct Steps {
    dims: Vec<usize>,
    left: Vec<usize>,
    right: Vec<usize>,
}

impl Steps {
    fn new(a: &Tensor<'_>, b: &Tensor<'_>, c: &Tensor<'_>) -> Result<Self> {
        let broadcast = broadcast(a.dims(), b.dims())?;
        ensure!(
            broadcast == c.dims(),
            invalid_argument,
            "expected an output of shape {broadcast:?} for inputs of {:?} and {:?}, found {:?}",
            a.dims(),
            b.dims(),
            c.dims()
        );
        c.element_count()?;
        let dims: Vec<usize> = broadcast.iter().map(|dim| *dim as usize).collect();
        let (left, right) = (steps(a.dims(), dims.len()), steps(b.dims(), dims.len()));
        Ok(Self { dims, left, right })
    }

    fn advance(&self, counter: &mut [usize], left: &mut usize, right: &mut usize) {
        for axis in (0..counter.len()).rev() {
            counter[axis] += 1;
            *left += self.left[axis];
            *right += self.right[axis];
            if counter[axis] < self.dims[axis] {
                return;
            }
            *left -= self.left[axis] * counter[axis];
            *right -= self.right[axis] * counter[axis];
            counter[axis] = 0;
        }
    }
}

/// The shape two shapes become together: dimensions of 1 are repeated, missing leading ones are 1.
fn broadcast(a: &[i64], b: &[i64]) -> Result<Vec<i64>> {
    let rank = a.len().max(b.len());
    let dim = |dims: &[i64], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |at| dims[at]);
    (0..rank)
        .map(|axis| match (dim(a, axis), dim(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            _ => Err(Error::invalid_argument(format!(
                "expected shapes that are equal or 1 from the last dimension on, found {a:?} and {b:?}"
            ))),
        })
        .collect()
}

fn steps(dims: &[i64], rank: usize) -> Vec<usize> {
    let mut steps = vec![0; rank];
    let mut step = 1;
    for (axis, dim) in dims.iter().enumerate().rev() {
        if *dim != 1 {
            steps[rank - dims.len() + axis] = step;
        }
        step *= *dim as usize;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_dimension() {
        assert_eq!(broadcast(&[2, 1, 3], &[4, 1]).unwrap(), [2, 4, 3]);
        assert_eq!(broadcast(&[], &[5]).unwrap(), [5]);
        assert_eq!(broadcast(&[0, 3], &[1]).unwrap(), [0, 3]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let error = broadcast(&[2, 3], &[2]).unwrap_err();
        assert!(error.message().contains("[2, 3] and [2]"), "{error}");
    }

    #[test]
    fn a_repeated_dimension_has_no_step() {
        assert_eq!(steps(&[2, 1, 3], 4), [0, 3, 0, 1]);
    }
}
