//! `HannWindow`, `HammingWindow` and `BlackmanWindow`: sums of cosines.

use std::f64::consts::TAU;

use oarlock_sdk::{DtypeSet, Error, Kernel, Operand, Result, dispatch, family};

use super::length;
use super::transform::integer;
use crate::device::Cpu;
use crate::kernels::rows::number::{Float, Number};
use crate::kernels::rows::operands::{Operands, kernel};

/// What windows may be made of.
pub(super) const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

/// What the cosines of 0, 1 and 2 turns count.
type Weights = [f64; 3];

const HANN: Weights = [0.5, -0.5, 0.0];
const HAMMING: Weights = [25.0 / 46.0, -21.0 / 46.0, 0.0];
const BLACKMAN: Weights = [0.42, -0.5, 0.08];

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let row = |op: &str, weights: Weights| {
        let plan = move |call: &oarlock_sdk::Call<'_>| Ok((weights, call.int("periodic")?.unwrap_or(1) != 0));
        kernel(op, plan, |_, (weights, is_periodic), operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => {
                write::<T>(weights, *is_periodic, operands)
            })
        })
        .since(17)
        .inputs([length("size")])
        .outputs([Operand::new(NUMBERS).named("output").rank(1, 1)])
    };
    vec![row("HannWindow", HANN), row("HammingWindow", HAMMING), row("BlackmanWindow", BLACKMAN)]
}

fn write<T: Number>(weights: &Weights, is_periodic: bool, operands: &Operands<'_, '_>) -> Result<()> {
    let size = integer(operands, 0)?.filter(|size| *size >= 0);
    let size = size.ok_or_else(|| Error::invalid_argument("expected `size` of at least 0, found another"))?;
    operands.expect_dims(&operands.call().output(0)?, "output", &[size])?;
    // A symmetric window ends where the next period would begin.
    let period = if is_periodic { size } else { size - 1 }.max(1) as f64;
    for (index, out) in operands.write::<T>(0)?.iter_mut().enumerate() {
        let turn = TAU * index as f64 / period;
        let value = weights[0] + weights[1] * turn.cos() + weights[2] * (2.0 * turn).cos();
        // A window of one element has nothing to fade to.
        let value = if size == 1 { 1.0 } else { value };
        *out = T::of_float(T::Float::of(value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    #[test]
    fn windows_are_symmetric_or_part_of_a_period() {
        let (size, symmetric) = (Array::of(&[], &[3i64]), [("periodic", Attribute::Int(0))]);
        check("HannWindow", 17, &symmetric, &[Some(&size)], &[Array::of(&[3], &[0f32, 1., 0.])]);
        check("HannWindow", 17, &[], &[Some(&size)], &[Array::of(&[3], &[0f32, 0.75, 0.75])]);
        let one = Array::of(&[1], &[1i32]);
        check("BlackmanWindow", 17, &symmetric, &[Some(&one)], &[Array::of(&[1], &[1f64])]);
    }

    #[test]
    fn a_window_of_less_than_nothing_is_refused() {
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[0]))];
        for size in [-1, i64::MIN] {
            refusal("HannWindow", 17, &[], &[Some(&Array::of(&[], &[size]))], &outputs);
        }
    }
}
