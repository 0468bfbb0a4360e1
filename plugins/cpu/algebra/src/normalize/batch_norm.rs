//! `BatchNormalization`: with running statistics, or in training with those of the batch, which update the running ones.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{
    Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure,
};

use super::moments::{inverse_deviation, sum_values};
use super::parameters::read_per_channel;
use super::{REALS, real_operand};

pub(super) fn batch_normalization_kernels() -> Vec<Kernel<Cpu>> {
    let old_inputs = || {
        [
            real_operand("X"),
            real_operand("scale"),
            real_operand("B"),
            real_operand("mean"),
            real_operand("var"),
        ]
    };
    let any = |name| OperandSpec::new(REALS).with_name(name);
    let statistic = OperandSpec::new(REALS).with_dtype_group(2);
    let running = statistic.with_flags(OperandFlags::OPTIONAL);
    let row = |plan: fn(&KernelCall<'_>) -> Result<BatchNormOptions>| {
        operand_kernel("BatchNormalization", plan, dispatch_batch_norm).with_flags(KernelFlags::DETERMINISTIC)
    };
    vec![
        row(BatchNormOptions::first_version_options)
            .until_version(6)
            .with_inputs(old_inputs())
            .with_outputs([real_operand("Y")]),
        row(BatchNormOptions::inference_options)
            .since_version(7)
            .until_version(13)
            .with_inputs(old_inputs())
            .with_outputs([real_operand("Y")]),
        row(BatchNormOptions::new)
            .since_version(14)
            .with_inputs([
                real_operand("X"),
                any("scale").with_dtype_group(3),
                any("B").with_dtype_group(3),
                statistic.with_name("input_mean"),
                statistic.with_name("input_var"),
            ])
            .with_outputs([
                real_operand("Y"),
                running.with_name("running_mean"),
                running.with_name("running_var"),
            ]),
    ]
}

struct BatchNormOptions {
    is_training: bool,
    momentum: f64,
    epsilon: f64,
}

impl BatchNormOptions {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            is_training: call.int_attribute("training_mode")?.unwrap_or(0) != 0,
            momentum: call.float_attribute("momentum")?.unwrap_or(f64::from(0.9f32)),
            epsilon: call.float_attribute("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }

    fn inference_options(call: &KernelCall<'_>) -> Result<Self> {
        let spatial = call.int_attribute("spatial")?.unwrap_or(1);
        // Otherwise each element of an image would have statistics of its own.
        if spatial != 1 {
            return Err(PluginError::unimplemented(format!("expected `spatial` to be 1, found {spatial}")));
        }
        Self::new(call)
    }

    fn first_version_options(call: &KernelCall<'_>) -> Result<Self> {
        let is_test = call.int_attribute("is_test")?.unwrap_or(0);
        if is_test == 0 {
            return Err(PluginError::unimplemented("expected `is_test` to be 1 before version 14, found 0"));
        }
        Self::inference_options(call)
    }
}

fn dispatch_batch_norm(
    cpu: &Cpu,
    options: &BatchNormOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => run_batch_norm::<T>(cpu, options, operands))
}

fn run_batch_norm<T: FloatElement>(
    cpu: &Cpu,
    options: &BatchNormOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let axis = match x.dims() {
        [] => {
            return Err(PluginError::invalid_argument(
                "expected `X` of at least 1 dimension, found a scalar",
            ));
        }
        // Without a dimension of channels, all elements are of one channel.
        [images] => AxisLayout::new(&[*images, 1], 1)?,
        dims => AxisLayout::new(dims, 1)?,
    };
    let channels = axis.length;
    let scale = read_per_channel::<T::Float>(operands, 1, channels)?;
    let bias = read_per_channel::<T::Float>(operands, 2, channels)?;
    let mut mean = read_per_channel::<T::Float>(operands, 3, channels)?;
    let mut variance = read_per_channel::<T::Float>(operands, 4, channels)?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    if options.is_training {
        ensure!(
            !input.is_empty() || channels == 0,
            invalid_argument,
            "expected a batch to train on, found the shape {:?}",
            x.dims()
        );
        let (batch_mean, batch_variance) = batch_moments(cpu, axis, input);
        for (index, running, batch) in [(1, &mean, &batch_mean), (2, &variance, &batch_variance)] {
            update_statistic(operands, index, T::Float::from_f64(options.momentum), running, batch)?;
        }
        (mean, variance) = (batch_mean, batch_variance);
    } else {
        ensure!(
            operands.call().optional_output(1)?.is_none() && operands.call().optional_output(2)?.is_none(),
            invalid_argument,
            "expected no running statistics as outputs without `training_mode`, found some"
        );
    }
    let epsilon = T::Float::from_f64(options.epsilon);
    // Scale and deviation become one factor per channel: the loop over elements has neither a root nor a division.
    let factor: Vec<_> = scale
        .iter()
        .zip(&variance)
        .map(|(scale, variance)| *scale * inverse_deviation(*variance, epsilon))
        .collect();
    apply_affine(cpu, axis, input, output, [&mean, &factor, &bias]);
    Ok(())
}

fn apply_affine<T: FloatElement>(
    cpu: &Cpu,
    axis: AxisLayout,
    input: &[T],
    output: &mut [T],
    [mean, factor, bias]: [&[T::Float]; 3],
) {
    if output.is_empty() {
        return;
    }
    let (channels, size) = (axis.length, axis.inner);
    // The mean is subtracted first: as part of the bias, it would cancel with the product and lose digits if it is large.
    let normal =
        |element: T, at: usize| T::from_float((element.to_float() - mean[at]) * factor[at] + bias[at]);
    parallel_for_parts(
        cpu,
        axis.outer * channels,
        grain_for(size),
        OutputRows::new(output, size),
        |begin, part| {
            with_isa!(cpu.isa(), || {
                let rows = part.chunks_mut(size).zip(input[begin * size..].chunks(size));
                for (row, (results, elements)) in rows.enumerate() {
                    let at = (begin + row) % channels;
                    for (result, element) in results.iter_mut().zip(elements) {
                        *result = normal(*element, at);
                    }
                }
            });
        },
    );
}

/// Mean and variance of each channel over all images.
fn batch_moments<T: FloatElement>(
    cpu: &Cpu,
    axis: AxisLayout,
    input: &[T],
) -> (Vec<T::Float>, Vec<T::Float>) {
    let (channels, size) = (axis.length, axis.inner);
    // Images without elements may be too many to iterate over.
    let images = if input.is_empty() { 0 } else { axis.outer };
    let (mut means, mut variances) = (vec![T::Float::ZERO; channels], vec![T::Float::ZERO; channels]);
    let outputs = (OutputRows::new(&mut means, 1), OutputRows::new(&mut variances, 1));
    // One thread adds up a channel, image by image, so the number of threads does not change a bit.
    parallel_for_parts(
        cpu,
        channels,
        grain_for(images.saturating_mul(size)),
        outputs,
        |begin, (means, variances)| {
            let isa = cpu.isa();
            for (index, (mean, variance)) in means.iter_mut().zip(variances).enumerate() {
                let count = T::Float::from_f64((images * size) as f64);
                let total = |value: DeviationSum<T::Float>, mean| {
                    let rows = (0..images).map(|image| (image * channels + begin + index) * size);
                    rows.fold(T::Float::ZERO, |total, row| {
                        total + value(isa, &T::to_floats(isa, &input[row..row + size]), mean)
                    })
                };
                // Two passes, because the difference of two sums of squares would lose digits. ONNX divides the variance by the
                // count, not by one less.
                *mean = total(sum_distances, T::Float::ZERO) / count;
                *variance = total(sum_squares, *mean) / count;
            }
        },
    );
    (means, variances)
}

/// A sum over a function of elements and a number.
type DeviationSum<F> = fn(Isa, &[F], F) -> F;

/// The sum of the differences from a number.
fn sum_distances<F: ComputeFloat>(isa: Isa, elements: &[F], from: F) -> F {
    with_isa!(isa, || sum_values(elements, |x| x - from))
}

/// The sum of the squared differences from a number.
fn sum_squares<F: ComputeFloat>(isa: Isa, elements: &[F], from: F) -> F {
    with_isa!(isa, || sum_values(elements, |x| (x - from) * (x - from)))
}

/// Stores the new running statistic, if it is an output.
fn update_statistic<F: ComputeFloat>(
    operands: &KernelOperands<'_, '_>,
    index: usize,
    momentum: F,
    running: &[F],
    batch: &[F],
) -> Result<()> {
    let Some(output) = operands.call().optional_output(index)? else { return Ok(()) };
    operands.expect_dims(&output, "the running statistic", &[running.len() as i64])?;
    dispatch!(output.dtype(), floating_and_half + bf16, S => {
        for ((new, running), batch) in operands.write_output::<S>(index)?.iter_mut().zip(running).zip(batch) {
            // In ONNX the momentum is the weight of the old value; in PyTorch it is that of the new one.
            let value = *running * momentum + *batch * (F::ONE - momentum);
            *new = S::from_float(<S as ComputeElement>::Float::from_f64(value.to_f64()));
        }
        Ok(())
    })
}
