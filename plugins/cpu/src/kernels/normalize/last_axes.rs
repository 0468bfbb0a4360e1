//! `LayerNormalization` and `RMSNormalization`: over all axes from one on.

use oarlock_sdk::{
    Call, DtypeSet, Element, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, dispatch, family,
};

use super::moments::{inverse_deviation, moments, sum};
use super::parameters::read_repeated;
use super::{REALS, real};
use crate::device::Cpu;
use crate::isa::Isa;
use crate::kernels::rows::axis::{self, Axis};
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

const STATISTICS: DtypeSet = family::FLOATING.union(DtypeSet::BF16);

/// How many rows are normalised together, at most.
const TOGETHER: usize = 16;
/// How many elements of rows stay in the nearest cache while they are normalised together.
const NEAR: usize = 2048;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let optional = OperandFlags::OPTIONAL;
    let statistic = Operand::new(STATISTICS).group(2).flags(optional);
    let layer = kernel("LayerNormalization", Options::new, |cpu, options, operands| {
        dispatch_real(cpu, options, operands, true)
    })
    .since(17)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([real("X"), real("Scale"), real("B").flags(optional)])
    .outputs([real("Y"), statistic.named("Mean"), statistic.named("InvStdDev")]);
    let root_mean_square = kernel("RMSNormalization", Options::new, |cpu, options, operands| {
        dispatch_real(cpu, options, operands, false)
    })
    .since(23)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([real("X"), Operand::new(REALS).group(1).named("scale")])
    .outputs([real("Y")]);
    vec![layer, root_mean_square]
}

struct Options {
    axis: i64,
    epsilon: f64,
}

impl Options {
    /// The type that `stash_type` names is a lower bound: narrow floats are calculated in `f32`, `f64` stays `f64`.
    fn new(call: &Call<'_>) -> Result<Self> {
        let stash_type = call.int("stash_type")?.unwrap_or(1);
        oarlock_sdk::ensure!(
            [1, 10, 11, 16].contains(&stash_type),
            invalid_argument,
            "expected `stash_type` to be 1, 10, 11 or 16, the number of a float type, found {stash_type}"
        );
        Ok(Self {
            axis: call.int("axis")?.unwrap_or(-1),
            epsilon: call.float("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }
}

fn dispatch_real(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>, is_centred: bool) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => match operands.call().optional_output(1)? {
        Some(mean) => with_statistics::<T>(cpu, options, operands, mean.dtype()),
        None => match operands.call().optional_output(2)? {
            Some(deviation) => with_statistics::<T>(cpu, options, operands, deviation.dtype()),
            None => run::<T, f32>(cpu, options, operands, is_centred),
        },
    })
}

fn with_statistics<T: Real>(
    cpu: &Cpu,
    options: &Options,
    operands: &Operands<'_, '_>,
    dtype: oarlock_sdk::Dtype,
) -> Result<()> {
    dispatch!(dtype, floating + bf16, S => run::<T, S>(cpu, options, operands, true))
}

fn run<T: Real, S: Number + Element>(
    cpu: &Cpu,
    options: &Options,
    operands: &Operands<'_, '_>,
    is_centred: bool,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let first = axis::index(options.axis, x.dims().len())?;
    let Axis { outer, length, .. } = Axis::flattened(x.dims(), first as i64)?;
    if outer == 0 || length == 0 {
        // There is nothing to normalise, and the statistics of nothing are not numbers.
        for index in 1..3 {
            let statistic = operands.write_optional::<S>(index)?;
            statistic.into_iter().for_each(|values| values.fill(S::of_float(S::Float::of(f64::NAN))));
        }
        return Ok(());
    }
    let scale = read_repeated::<T::Float>(operands, 1, &x.dims()[first..])?
        .ok_or_else(|| Error::invalid_argument("expected a scale, found none"))?;
    let bias = read_repeated::<T::Float>(operands, 2, &x.dims()[first..])?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    let mut statistics = [None, None];
    for (index, statistic) in statistics.iter_mut().enumerate() {
        let Some(found) = operands.call().optional_output(index + 1)? else { continue };
        let dims: Vec<i64> =
            (0..x.dims().len()).map(|index| if index < first { x.dims()[index] } else { 1 }).collect();
        operands.expect_dims(&found, "the statistic", &dims)?;
        *statistic = Some(Rows::new(operands.write::<S>(index + 1)?, 1));
    }
    let [means, deviations] = statistics;
    let rule =
        Rule { is_centred, epsilon: T::Float::of(options.epsilon), scale: &scale, bias: bias.as_deref() };
    let (together, isa) = ((NEAR / length).clamp(1, TOGETHER), cpu.isa());
    let outputs = (Rows::new(output, length), means, deviations);
    in_parallel(cpu, outer, grain(length), outputs, |begin, (output, mut means, mut deviations)| {
        let mut found = [(T::Float::ZERO, T::Float::ZERO); TOGETHER];
        let (mut next, rows) = (0, output.len() / length);
        while next < rows {
            let found = &mut found[..together.min(rows - next)];
            let input = &input[(begin + next) * length..][..found.len() * length];
            T::write_floats(isa, &mut output[next * length..][..input.len()], |results| {
                rule.apply(isa, &T::floats(isa, input), results, found);
            });
            for (statistic, is_mean) in [(&mut means, true), (&mut deviations, false)] {
                let Some(statistic) = statistic else { continue };
                for (statistic, (mean, deviation)) in statistic[next..].iter_mut().zip(&*found) {
                    let value = if is_mean { *mean } else { *deviation };
                    *statistic = S::of_float(S::Float::of(value.to_f64()));
                }
            }
            next += found.len();
        }
    });
    Ok(())
}

/// What becomes of rows of as many elements as the scale has.
struct Rule<'a, F> {
    is_centred: bool,
    epsilon: F,
    scale: &'a [F],
    bias: Option<&'a [F]>,
}

impl<F: Float> Rule<'_, F> {
    /// Normalises rows. Of each the mean is found, and what its elements are multiplied by.
    fn apply(&self, isa: Isa, elements: &[F], results: &mut [F], found: &mut [(F, F)]) {
        with_isa!(isa, || self.apply_at_level(elements, results, found));
    }

    #[inline(always)]
    fn apply_at_level(&self, elements: &[F], results: &mut [F], found: &mut [(F, F)]) {
        let Self { is_centred, epsilon, scale, bias } = *self;
        let rows = results.chunks_exact_mut(scale.len()).zip(elements.chunks_exact(scale.len()));
        for ((results, elements), found) in rows.zip(found) {
            let (mean, variance) = if is_centred {
                moments(elements)
            } else {
                (F::ZERO, sum(elements, |x| x * x) / F::of(scale.len() as f64))
            };
            let factor = inverse_deviation(variance, epsilon);
            scaled(results, elements, mean, factor, scale, bias);
            *found = (mean, factor);
        }
    }
}

#[inline(always)]
fn scaled<F: Float>(results: &mut [F], elements: &[F], mean: F, factor: F, scale: &[F], bias: Option<&[F]>) {
    let triples = results.iter_mut().zip(elements).zip(scale);
    match bias {
        Some(bias) => {
            for (((result, element), scale), bias) in triples.zip(bias) {
                *result = (*element - mean) * factor * *scale + *bias;
            }
        }
        None => {
            for ((result, element), scale) in triples {
                *result = (*element - mean) * factor * *scale;
            }
        }
    }
}
