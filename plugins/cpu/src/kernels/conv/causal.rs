//! `CausalConvWithState`: each channel of a sequence is convolved with a filter of its own that looks back only, and what the
//! next call has to look back at is handed on.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, bf16, dtype_set,
    ensure, f16,
};

use crate::device::Cpu;
use crate::isa::{Target, Vectorized};
use crate::kernels::elementwise::math::{self, Float};
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Number, Real};
use crate::kernels::rows::operands::{Operands, on_operands};
use crate::kernels::rows::parts::{Rows, in_parallel};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn kernel() -> Kernel<Cpu> {
    let float = Operand::new(FLOATS).group(1);
    let optional = float.flags(OperandFlags::OPTIONAL);
    Kernel::prepared("CausalConvWithState", |_: &Cpu, call| {
        let is_swish = is_swish(call)?;
        Ok(on_operands(move |cpu, operands| match operands.call().input(0)?.dtype() {
            Dtype::F32 => run::<f32>(cpu, is_swish, operands),
            Dtype::F16 => run::<f16>(cpu, is_swish, operands),
            _ => run::<bf16>(cpu, is_swish, operands),
        }))
    })
    .since(27)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        float.named("input").rank(3, 3),
        float.named("weight").rank(3, 3),
        optional.named("bias").rank(1, 1),
        optional.named("past_state").rank(3, 3),
    ])
    .outputs([float.named("output").rank(3, 3), float.named("present_state").rank(3, 3)])
}

fn is_swish(call: &Call<'_>) -> Result<bool> {
    match call.string("activation")?.unwrap_or("none") {
        "none" => Ok(false),
        "silu" | "swish" => Ok(true),
        other => Err(Error::invalid_argument(format!(
            "expected `activation` to be `none`, `silu` or `swish`, found `{other}`"
        ))),
    }
}

fn run<E: Real + Number<Float = f32>>(cpu: &Cpu, is_swish: bool, operands: &Operands<'_, '_>) -> Result<()> {
    let call = operands.call();
    let (&[batches, channels, length], &[_, _, taps]) = (call.input(0)?.dims(), call.input(1)?.dims()) else {
        return Err(Error::invalid_argument(
            "expected `input` and `weight` of three dimensions, found others",
        ));
    };
    ensure!(taps > 0, invalid_argument, "expected `weight` with at least one element a channel, found none");
    let state = [batches, channels, taps - 1];
    operands.expect_dims(&call.input(1)?, "weight", &[channels, 1, taps])?;
    if let Some(bias) = call.optional_input(2)? {
        operands.expect_dims(&bias, "bias", &[channels])?;
    }
    if let Some(past) = call.optional_input(3)? {
        operands.expect_dims(&past, "past_state", &state)?;
    }
    operands.expect_dims(&call.output(0)?, "output", &[batches, channels, length])?;
    operands.expect_dims(&call.output(1)?, "present_state", &state)?;
    let floats = |elements| E::floats(cpu.isa(), elements);
    let (x, weights) = (floats(operands.read(0)?), floats(operands.read(1)?));
    let (bias, past) = (operands.read_optional(2)?.map(floats), operands.read_optional(3)?.map(floats));
    let (rows, length, taps) = (count(&[batches, channels])?, count(&[length])?, count(&[taps])?);
    let filters = Filters {
        channels: count(&[channels])?,
        length,
        taps,
        is_swish,
        x: &x,
        weights: &weights,
        bias: bias.as_deref(),
        past: past.as_deref(),
    };
    let (output, present) = (operands.write::<E>(0)?, operands.write::<E>(1)?);
    E::write_floats(cpu.isa(), output, |output| {
        E::write_floats(cpu.isa(), present, |present| {
            let outputs = (Rows::new(output, length), Rows::new(present, taps - 1));
            in_parallel(
                cpu,
                rows,
                grain(length.saturating_mul(taps)),
                outputs,
                |first, (output, present)| {
                    cpu.isa().vectorize(Lines { filters: &filters, first, output, present });
                },
            );
        });
    });
    Ok(())
}

/// The operands of a call. A line is one channel of one sequence.
struct Filters<'a> {
    channels: usize,
    length: usize,
    taps: usize,
    is_swish: bool,
    x: &'a [f32],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    past: Option<&'a [f32]>,
}

/// Some lines, and where what they become is written.
struct Lines<'a> {
    filters: &'a Filters<'a>,
    first: usize,
    output: &'a mut [f32],
    present: &'a mut [f32],
}

impl Vectorized for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let &Filters { channels, length, taps, is_swish, x, weights, bias, past } = self.filters;
        let (back, has_output) = (taps - 1, length > 0);
        let count = if has_output { self.output.len() / length } else { self.present.len() / back.max(1) };
        let mut line = vec![0.0; back + length];
        for index in 0..count {
            let (number, channel) = (self.first + index, (self.first + index) % channels);
            if let Some(past) = past {
                line[..back].copy_from_slice(&past[number * back..][..back]);
            }
            line[back..].copy_from_slice(&x[number * length..][..length]);
            let output = &mut self.output[index * length..][..length];
            output.fill(bias.map_or(0.0, |bias| bias[channel]));
            for (offset, weight) in weights[channel * taps..][..taps].iter().enumerate() {
                for (sum, x) in output.iter_mut().zip(&line[offset..]) {
                    *sum = weight.times_plus::<T>(*x, *sum);
                }
            }
            if is_swish {
                output.iter_mut().for_each(|value| *value = *value * math::sigmoid::<T, f32>(*value));
            }
            self.present[index * back..][..back].copy_from_slice(&line[length..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    #[test]
    fn a_sequence_in_two_calls_is_the_same_as_in_one() {
        let (weights, bias) =
            (Array::of(&[2, 1, 3], &[1f32, 2., 3., -1., 0., 1.]), Array::of(&[2], &[0.5f32, -1.]));
        let x = Array::of(&[1, 2, 4], &[1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let all = [3.5f32, 8.5, 14.5, 20.5, 4., 5., 1., 1.];
        let last = Array::of(&[1, 2, 2], &[3f32, 4., 7., 8.]);
        let inputs = [Some(&x), Some(&weights), Some(&bias)];
        check("CausalConvWithState", 27, &[], &inputs, &[Array::of(&[1, 2, 4], &all), last.clone()]);
        // The first call is shorter than what the filter looks back at.
        let (first, second) =
            (Array::of(&[1, 2, 1], &[1f32, 5.]), Array::of(&[1, 2, 3], &[2f32, 3., 4., 6., 7., 8.]));
        let between = Array::of(&[1, 2, 2], &[0f32, 1., 0., 5.]);
        let inputs = [Some(&first), Some(&weights), Some(&bias)];
        let begun = Array::of(&[1, 2, 1], &[3.5f32, 4.]);
        check("CausalConvWithState", 27, &[], &inputs, &[begun, between.clone()]);
        let inputs = [Some(&second), Some(&weights), Some(&bias), Some(&between)];
        let rest = Array::of(&[1, 2, 3], &[8.5f32, 14.5, 20.5, 5., 1., 1.]);
        check("CausalConvWithState", 27, &[], &inputs, &[rest, last]);
    }

    #[test]
    fn an_empty_sequence_hands_its_state_on() {
        let (x, weights) = (Array::of::<f32>(&[1, 1, 0], &[]), Array::of(&[1, 1, 2], &[1f32, 1.]));
        let past = Array::of(&[1, 1, 1], &[7f32]);
        check(
            "CausalConvWithState",
            27,
            &[("activation", Attribute::Text("silu"))],
            &[Some(&x), Some(&weights), None, Some(&past)],
            &[Array::of::<f32>(&[1, 1, 0], &[]), past.clone()],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (x, weights) = (Array::of(&[1, 1, 2], &[1f32; 2]), Array::of(&[1, 1, 2], &[1f32; 2]));
        let outputs = [Some((x.dtype, &[1i64, 1, 2][..])), Some((x.dtype, &[1, 1, 1]))];
        let inputs = [Some(&x), Some(&weights), None, Some(&x)];
        let message = refusal("CausalConvWithState", 27, &[], &inputs, &outputs);
        assert!(message.contains("`past_state` of shape [1, 1, 1]"), "{message}");
        let attributes = [("activation", Attribute::Text("relu"))];
        let message = refusal("CausalConvWithState", 27, &attributes, &inputs[..2], &outputs);
        assert!(message.contains("`silu` or `swish`, found `relu`"), "{message}");
    }
}
