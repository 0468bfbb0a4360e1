//! `CausalConvWithState`: convolves each channel of a sequence with a separate filter, which looks back only. The elements that the
//! next call looks back at are returned as state.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::math::{self, MathFloat};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, run_on_operands};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, bf16,
    dtype_set, ensure, f16,
};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

pub(super) fn causal_conv_kernel() -> Kernel<Cpu> {
    let float = OperandSpec::new(FLOATS).with_dtype_group(1);
    let optional = float.with_flags(OperandFlags::OPTIONAL);
    Kernel::new_prepared("CausalConvWithState", |_: &Cpu, call| {
        let is_swish = is_swish(call)?;
        Ok(run_on_operands(move |cpu, operands| match operands.call().input(0)?.dtype() {
            Dtype::F32 => run_causal_conv::<f32>(cpu, is_swish, operands),
            Dtype::F16 => run_causal_conv::<f16>(cpu, is_swish, operands),
            _ => run_causal_conv::<bf16>(cpu, is_swish, operands),
        }))
    })
    .since_version(27)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        float.with_name("input").with_rank(3, 3),
        float.with_name("weight").with_rank(3, 3),
        optional.with_name("bias").with_rank(1, 1),
        optional.with_name("past_state").with_rank(3, 3),
    ])
    .with_outputs([
        float.with_name("output").with_rank(3, 3),
        float.with_name("present_state").with_rank(3, 3),
    ])
}

fn is_swish(call: &KernelCall<'_>) -> Result<bool> {
    match call.string_attribute("activation")?.unwrap_or("none") {
        "none" => Ok(false),
        "silu" | "swish" => Ok(true),
        other => Err(PluginError::invalid_argument(format!(
            "expected `activation` to be `none`, `silu` or `swish`, found `{other}`"
        ))),
    }
}

fn run_causal_conv<E: FloatElement + ComputeElement<Float = f32>>(
    cpu: &Cpu,
    is_swish: bool,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let call = operands.call();
    let (&[batches, channels, length], &[_, _, taps]) = (call.input(0)?.dims(), call.input(1)?.dims()) else {
        return Err(PluginError::invalid_argument(
            "expected `input` and `weight` of three dimensions, found others",
        ));
    };
    // Without a tap, the state would have -1 elements.
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
    let floats = |elements| E::to_floats(cpu.isa(), elements);
    let (x, weights) = (floats(operands.read_input(0)?), floats(operands.read_input(1)?));
    let (bias, past) =
        (operands.read_optional_input(2)?.map(floats), operands.read_optional_input(3)?.map(floats));
    let (rows, length, taps) =
        (element_count(&[batches, channels])?, element_count(&[length])?, element_count(&[taps])?);
    let filters = CausalFilters {
        channels: element_count(&[channels])?,
        length,
        taps,
        is_swish,
        x: &x,
        weights: &weights,
        bias: bias.as_deref(),
        past: past.as_deref(),
    };
    let (output, present) = (operands.write_output::<E>(0)?, operands.write_output::<E>(1)?);
    // Both outputs are written in `f32` and rounded at the end; for `f32` this writes in place.
    E::write_floats(cpu.isa(), output, |output| {
        E::write_floats(cpu.isa(), present, |present| {
            let outputs = (OutputRows::new(output, length), OutputRows::new(present, taps - 1));
            parallel_for_parts(
                cpu,
                rows,
                grain_for(length.saturating_mul(taps)),
                outputs,
                |first, (output, present)| {
                    cpu.isa().vectorize(CausalLines { filters: &filters, first, output, present });
                },
            );
        });
    });
    Ok(())
}

/// The operands of a call. A line is one channel of one sequence.
struct CausalFilters<'a> {
    channels: usize,
    length: usize,
    taps: usize,
    is_swish: bool,
    x: &'a [f32],
    weights: &'a [f32],
    bias: Option<&'a [f32]>,
    past: Option<&'a [f32]>,
}

/// Some lines, and memory for their results.
struct CausalLines<'a> {
    filters: &'a CausalFilters<'a>,
    first: usize,
    output: &'a mut [f32],
    present: &'a mut [f32],
}

impl SimdTask for CausalLines<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let &CausalFilters { channels, length, taps, is_swish, x, weights, bias, past } = self.filters;
        let (back, has_output) = (taps - 1, length > 0);
        // An empty sequence must still return its state.
        let count = if has_output { self.output.len() / length } else { self.present.len() / back.max(1) };
        // State and input are joined in one line, so that taps need not check which of the two they read. Without a past, the state
        // is zeros.
        let mut line = vec![0.0; back + length];
        for index in 0..count {
            let (number, channel) = (self.first + index, (self.first + index) % channels);
            if let Some(past) = past {
                line[..back].copy_from_slice(&past[number * back..][..back]);
            }
            line[back..].copy_from_slice(&x[number * length..][..length]);
            let output = &mut self.output[index * length..][..length];
            output.fill(bias.map_or(0.0, |bias| bias[channel]));
            // Tap by tap over the whole line: loads have unit stride, and the weight stays in a register.
            for (offset, weight) in weights[channel * taps..][..taps].iter().enumerate() {
                for (sum, x) in output.iter_mut().zip(&line[offset..]) {
                    *sum = weight.multiply_add::<T>(*x, *sum);
                }
            }
            if is_swish {
                output.iter_mut().for_each(|value| *value = *value * math::sigmoid::<T, f32>(*value));
            }
            // The state is the end of the joined line, so a short input keeps part of the old state.
            self.present[index * back..][..back].copy_from_slice(&line[length..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn a_sequence_in_two_calls_is_the_same_as_in_one() {
        let (weights, bias) = (
            TestArray::from_values(&[2, 1, 3], &[1f32, 2., 3., -1., 0., 1.]),
            TestArray::from_values(&[2], &[0.5f32, -1.]),
        );
        let x = TestArray::from_values(&[1, 2, 4], &[1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let all = [3.5f32, 8.5, 14.5, 20.5, 4., 5., 1., 1.];
        let last = TestArray::from_values(&[1, 2, 2], &[3f32, 4., 7., 8.]);
        let inputs = [Some(&x), Some(&weights), Some(&bias)];
        KERNELS.check_kernel(
            "CausalConvWithState",
            27,
            &[],
            &inputs,
            &[TestArray::from_values(&[1, 2, 4], &all), last.clone()],
        );
        // The first call is shorter than the filter's look-back.
        let (first, second) = (
            TestArray::from_values(&[1, 2, 1], &[1f32, 5.]),
            TestArray::from_values(&[1, 2, 3], &[2f32, 3., 4., 6., 7., 8.]),
        );
        let between = TestArray::from_values(&[1, 2, 2], &[0f32, 1., 0., 5.]);
        let inputs = [Some(&first), Some(&weights), Some(&bias)];
        let begun = TestArray::from_values(&[1, 2, 1], &[3.5f32, 4.]);
        KERNELS.check_kernel("CausalConvWithState", 27, &[], &inputs, &[begun, between.clone()]);
        let inputs = [Some(&second), Some(&weights), Some(&bias), Some(&between)];
        let rest = TestArray::from_values(&[1, 2, 3], &[8.5f32, 14.5, 20.5, 5., 1., 1.]);
        KERNELS.check_kernel("CausalConvWithState", 27, &[], &inputs, &[rest, last]);
    }

    #[test]
    fn an_empty_sequence_hands_its_state_on() {
        let (x, weights) =
            (TestArray::from_values::<f32>(&[1, 1, 0], &[]), TestArray::from_values(&[1, 1, 2], &[1f32, 1.]));
        let past = TestArray::from_values(&[1, 1, 1], &[7f32]);
        KERNELS.check_kernel(
            "CausalConvWithState",
            27,
            &[("activation", TestAttribute::Text("silu"))],
            &[Some(&x), Some(&weights), None, Some(&past)],
            &[TestArray::from_values::<f32>(&[1, 1, 0], &[]), past.clone()],
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let (x, weights) =
            (TestArray::from_values(&[1, 1, 2], &[1f32; 2]), TestArray::from_values(&[1, 1, 2], &[1f32; 2]));
        let outputs = [Some((x.dtype, &[1i64, 1, 2][..])), Some((x.dtype, &[1, 1, 1]))];
        let inputs = [Some(&x), Some(&weights), None, Some(&x)];
        let message = KERNELS.refusal_message("CausalConvWithState", 27, &[], &inputs, &outputs);
        assert!(message.contains("`past_state` of shape [1, 1, 1]"), "{message}");
        let attributes = [("activation", TestAttribute::Text("relu"))];
        let message = KERNELS.refusal_message("CausalConvWithState", 27, &attributes, &inputs[..2], &outputs);
        assert!(message.contains("`silu` or `swish`, found `relu`"), "{message}");
    }
}
