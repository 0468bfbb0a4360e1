//! `BatchNormalization`: by running statistics, or in training by those of the batch, which then update the running ones.

use oarlock_sdk::{Call, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dispatch, ensure};

use super::moments::{inverse_deviation, sum};
use super::parameters::read_for_each;
use super::{REALS, real};
use crate::device::Cpu;
use crate::isa::Isa;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let old_inputs = || [real("X"), real("scale"), real("B"), real("mean"), real("var")];
    let any = |name| Operand::new(REALS).named(name);
    let statistic = Operand::new(REALS).group(2);
    let running = statistic.flags(OperandFlags::OPTIONAL);
    let row = |plan: fn(&Call<'_>) -> Result<Options>| {
        kernel("BatchNormalization", plan, dispatch_real).flags(KernelFlags::DETERMINISTIC)
    };
    vec![
        row(Options::of_first_versions).until(6).inputs(old_inputs()).outputs([real("Y")]),
        row(Options::without_training).since(7).until(13).inputs(old_inputs()).outputs([real("Y")]),
        row(Options::new)
            .since(14)
            .inputs([
                real("X"),
                any("scale").group(3),
                any("B").group(3),
                statistic.named("input_mean"),
                statistic.named("input_var"),
            ])
            .outputs([real("Y"), running.named("running_mean"), running.named("running_var")]),
    ]
}

struct Options {
    is_training: bool,
    momentum: f64,
    epsilon: f64,
}

impl Options {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            is_training: call.int("training_mode")?.unwrap_or(0) != 0,
            momentum: call.float("momentum")?.unwrap_or(f64::from(0.9f32)),
            epsilon: call.float("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }

    fn without_training(call: &Call<'_>) -> Result<Self> {
        let spatial = call.int("spatial")?.unwrap_or(1);
        if spatial != 1 {
            return Err(Error::unimplemented(format!("expected `spatial` to be 1, found {spatial}")));
        }
        Self::new(call)
    }

    fn of_first_versions(call: &Call<'_>) -> Result<Self> {
        let is_test = call.int("is_test")?.unwrap_or(0);
        if is_test == 0 {
            return Err(Error::unimplemented("expected `is_test` to be 1 before version 14, found 0"));
        }
        Self::without_training(call)
    }
}

fn dispatch_real(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => run::<T>(cpu, options, operands))
}

fn run<T: Real>(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let axis = match x.dims() {
        [] => return Err(Error::invalid_argument("expected `X` of at least 1 dimension, found a scalar")),
        [images] => Axis::new(&[*images, 1], 1)?,
        dims => Axis::new(dims, 1)?,
    };
    let channels = axis.length;
    let scale = read_for_each::<T::Float>(operands, 1, channels)?;
    let bias = read_for_each::<T::Float>(operands, 2, channels)?;
    let mut mean = read_for_each::<T::Float>(operands, 3, channels)?;
    let mut variance = read_for_each::<T::Float>(operands, 4, channels)?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    if options.is_training {
        ensure!(
            !input.is_empty() || channels == 0,
            invalid_argument,
            "expected a batch to train on, found the shape {:?}",
            x.dims()
        );
        let (batch_mean, batch_variance) = batch_moments(cpu, axis, input);
        for (index, running, batch) in [(1, &mean, &batch_mean), (2, &variance, &batch_variance)] {
            update(operands, index, T::Float::of(options.momentum), running, batch)?;
        }
        (mean, variance) = (batch_mean, batch_variance);
    } else {
        ensure!(
            operands.call().optional_output(1)?.is_none() && operands.call().optional_output(2)?.is_none(),
            invalid_argument,
            "expected no running statistics as outputs without `training_mode`, found some"
        );
    }
    let epsilon = T::Float::of(options.epsilon);
    let factor: Vec<_> = scale
        .iter()
        .zip(&variance)
        .map(|(scale, variance)| *scale * inverse_deviation(*variance, epsilon))
        .collect();
    apply(cpu, axis, input, output, [&mean, &factor, &bias]);
    Ok(())
}

fn apply<T: Real>(
    cpu: &Cpu,
    axis: Axis,
    input: &[T],
    output: &mut [T],
    [mean, factor, bias]: [&[T::Float]; 3],
) {
    if output.is_empty() {
        return;
    }
    let (channels, size) = (axis.length, axis.inner);
    let normal = |element: T, at: usize| T::of_float((element.float() - mean[at]) * factor[at] + bias[at]);
    in_parallel(cpu, axis.outer * channels, grain(size), Rows::new(output, size), |begin, part| {
        with_isa!(cpu.isa(), || {
            let rows = part.chunks_mut(size).zip(input[begin * size..].chunks(size));
            for (row, (results, elements)) in rows.enumerate() {
                let at = (begin + row) % channels;
                for (result, element) in results.iter_mut().zip(elements) {
                    *result = normal(*element, at);
                }
            }
        });
    });
}

/// Mean and variance of each channel over all images.
fn batch_moments<T: Real>(cpu: &Cpu, axis: Axis, input: &[T]) -> (Vec<T::Float>, Vec<T::Float>) {
    let (channels, size) = (axis.length, axis.inner);
    // Of images without elements there may be more than anybody could go through.
    let images = if input.is_empty() { 0 } else { axis.outer };
    let (mut means, mut variances) = (vec![T::Float::ZERO; channels], vec![T::Float::ZERO; channels]);
    let outputs = (Rows::new(&mut means, 1), Rows::new(&mut variances, 1));
    in_parallel(cpu, channels, grain(images.saturating_mul(size)), outputs, |begin, (means, variances)| {
        let isa = cpu.isa();
        for (index, (mean, variance)) in means.iter_mut().zip(variances).enumerate() {
            let count = T::Float::of((images * size) as f64);
            let total = |value: Sum<T::Float>, mean| {
                let rows = (0..images).map(|image| (image * channels + begin + index) * size);
                rows.fold(T::Float::ZERO, |total, row| {
                    total + value(isa, &T::floats(isa, &input[row..row + size]), mean)
                })
            };
            *mean = total(distances, T::Float::ZERO) / count;
            *variance = total(squares, *mean) / count;
        }
    });
    (means, variances)
}

/// A sum of what elements become by a number.
type Sum<F> = fn(Isa, &[F], F) -> F;

/// The sum of the distances to a number.
fn distances<F: Float>(isa: Isa, elements: &[F], from: F) -> F {
    with_isa!(isa, || sum(elements, |x| x - from))
}

/// The sum of the squares of the distances to a number.
fn squares<F: Float>(isa: Isa, elements: &[F], from: F) -> F {
    with_isa!(isa, || sum(elements, |x| (x - from) * (x - from)))
}

/// Writes the new running statistic, where it is asked for.
fn update<F: Float>(
    operands: &Operands<'_, '_>,
    index: usize,
    momentum: F,
    running: &[F],
    batch: &[F],
) -> Result<()> {
    let Some(output) = operands.call().optional_output(index)? else { return Ok(()) };
    operands.expect_dims(&output, "the running statistic", &[running.len() as i64])?;
    dispatch!(output.dtype(), floating_and_half + bf16, S => {
        for ((new, running), batch) in operands.write::<S>(index)?.iter_mut().zip(running).zip(batch) {
            let value = *running * momentum + *batch * (F::ONE - momentum);
            *new = S::of_float(<S as Number>::Float::of(value.to_f64()));
        }
        Ok(())
    })
}
