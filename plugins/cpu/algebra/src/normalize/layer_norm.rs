//! `LayerNormalization` and `RMSNormalization`: over all axes from one on.

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
use oarlock_sdk::shape;
use oarlock_sdk::{
    DtypeSet, Element, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result,
    dispatch, family,
};

use super::L1_ELEMENTS;
use super::moments::{inverse_deviation, mean_and_variance, sum_values};
use super::parameters::read_broadcast;
use super::{REALS, real_operand};

const STATISTICS_DTYPES: DtypeSet = family::FLOATING.union(DtypeSet::BF16);

/// The most rows normalized together.
const ROWS_AT_ONCE: usize = 16;

pub(super) fn layer_normalization_kernels() -> Vec<Kernel<Cpu>> {
    let optional = OperandFlags::OPTIONAL;
    let statistic = OperandSpec::new(STATISTICS_DTYPES).with_dtype_group(2).with_flags(optional);
    let layer = operand_kernel("LayerNormalization", LayerNormOptions::new, |cpu, options, operands| {
        dispatch_layer_norm(cpu, options, operands, true)
    })
    .since_version(17)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([real_operand("X"), real_operand("Scale"), real_operand("B").with_flags(optional)])
    .with_outputs([real_operand("Y"), statistic.with_name("Mean"), statistic.with_name("InvStdDev")]);
    let root_mean_square =
        operand_kernel("RMSNormalization", LayerNormOptions::new, |cpu, options, operands| {
            dispatch_layer_norm(cpu, options, operands, false)
        })
        .since_version(23)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([real_operand("X"), OperandSpec::new(REALS).with_dtype_group(1).with_name("scale")])
        .with_outputs([real_operand("Y")]);
    vec![layer, root_mean_square]
}

struct LayerNormOptions {
    axis: i64,
    epsilon: f64,
}

impl LayerNormOptions {
    /// The attribute `stash_type` is a lower bound of precision: narrow floats compute in `f32`, `f64` stays `f64`.
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let stash_type = call.int_attribute("stash_type")?.unwrap_or(1);
        oarlock_sdk::ensure!(
            [1, 10, 11, 16].contains(&stash_type),
            invalid_argument,
            "expected `stash_type` to be 1, 10, 11 or 16, the number of a float type, found {stash_type}"
        );
        Ok(Self {
            axis: call.int_attribute("axis")?.unwrap_or(-1),
            epsilon: call.float_attribute("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }
}

fn dispatch_layer_norm(
    cpu: &Cpu,
    options: &LayerNormOptions,
    operands: &KernelOperands<'_, '_>,
    is_centred: bool,
) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => match operands.call().optional_output(1)? {
        Some(mean) => run_with_statistics::<T>(cpu, options, operands, mean.dtype()),
        None => match operands.call().optional_output(2)? {
            Some(deviation) => run_with_statistics::<T>(cpu, options, operands, deviation.dtype()),
            // Without statistics their type is never used.
            None => run_layer_norm::<T, f32>(cpu, options, operands, is_centred),
        },
    })
}

fn run_with_statistics<T: FloatElement>(
    cpu: &Cpu,
    options: &LayerNormOptions,
    operands: &KernelOperands<'_, '_>,
    dtype: oarlock_sdk::Dtype,
) -> Result<()> {
    dispatch!(dtype, floating + bf16, S => run_layer_norm::<T, S>(cpu, options, operands, true))
}

fn run_layer_norm<T: FloatElement, S: ComputeElement + Element>(
    cpu: &Cpu,
    options: &LayerNormOptions,
    operands: &KernelOperands<'_, '_>,
    is_centred: bool,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    let first = shape::resolve_axis(options.axis, x.dims().len())?;
    let AxisLayout { outer, length, .. } = AxisLayout::from_flattened(x.dims(), first as i64)?;
    if outer == 0 || length == 0 {
        // Nothing to normalize; the statistics of nothing are NaN.
        for index in 1..3 {
            let statistic = operands.write_optional_output::<S>(index)?;
            statistic.into_iter().for_each(|values| values.fill(S::from_float(S::Float::from_f64(f64::NAN))));
        }
        return Ok(());
    }
    // Repeated to the size of a row once, so that rows are scaled without broadcasting.
    let scale = read_broadcast::<T::Float>(operands, 1, &x.dims()[first..])?
        .ok_or_else(|| PluginError::invalid_argument("expected a scale, found none"))?;
    let bias = read_broadcast::<T::Float>(operands, 2, &x.dims()[first..])?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    let mut statistics = [None, None];
    for (index, statistic) in statistics.iter_mut().enumerate() {
        let Some(found) = operands.call().optional_output(index + 1)? else { continue };
        let dims: Vec<i64> =
            (0..x.dims().len()).map(|index| if index < first { x.dims()[index] } else { 1 }).collect();
        operands.expect_dims(&found, "the statistic", &dims)?;
        *statistic = Some(OutputRows::new(operands.write_output::<S>(index + 1)?, 1));
    }
    let [means, deviations] = statistics;
    let rule = LayerNormRule {
        is_centred,
        epsilon: T::Float::from_f64(options.epsilon),
        scale: &scale,
        bias: bias.as_deref(),
    };
    // Narrow floats are converted for several short rows at once, as many as stay in L1.
    let (together, isa) = ((L1_ELEMENTS / length).clamp(1, ROWS_AT_ONCE), cpu.isa());
    let outputs = (OutputRows::new(output, length), means, deviations);
    parallel_for_parts(
        cpu,
        outer,
        grain_for(length),
        outputs,
        |begin, (output, mut means, mut deviations)| {
            let mut found = [(T::Float::ZERO, T::Float::ZERO); ROWS_AT_ONCE];
            let (mut next, rows) = (0, output.len() / length);
            while next < rows {
                let found = &mut found[..together.min(rows - next)];
                let input = &input[(begin + next) * length..][..found.len() * length];
                T::write_floats(isa, &mut output[next * length..][..input.len()], |results| {
                    rule.normalize_rows(isa, &T::to_floats(isa, input), results, found);
                });
                for (statistic, is_mean) in [(&mut means, true), (&mut deviations, false)] {
                    let Some(statistic) = statistic else { continue };
                    for (statistic, (mean, deviation)) in statistic[next..].iter_mut().zip(&*found) {
                        // By way of `f64`, which holds every value of the compute type.
                        let value = if is_mean { *mean } else { *deviation };
                        *statistic = S::from_float(S::Float::from_f64(value.to_f64()));
                    }
                }
                next += found.len();
            }
        },
    );
    Ok(())
}

/// The normalization of rows with as many elements as the scale.
struct LayerNormRule<'a, F> {
    is_centred: bool,
    epsilon: F,
    scale: &'a [F],
    bias: Option<&'a [F]>,
}

impl<F: ComputeFloat> LayerNormRule<'_, F> {
    /// Normalizes rows, and returns mean and factor of each in `found`.
    fn normalize_rows(&self, isa: Isa, elements: &[F], results: &mut [F], found: &mut [(F, F)]) {
        with_isa!(isa, || self.normalize_at_level(elements, results, found));
    }

    #[inline(always)]
    fn normalize_at_level(&self, elements: &[F], results: &mut [F], found: &mut [(F, F)]) {
        let Self { is_centred, epsilon, scale, bias } = *self;
        let rows = results.chunks_exact_mut(scale.len()).zip(elements.chunks_exact(scale.len()));
        for ((results, elements), found) in rows.zip(found) {
            let (mean, variance) = if is_centred {
                mean_and_variance(elements)
            } else {
                // RMSNormalization divides by the root of the mean square and subtracts no mean.
                (F::ZERO, sum_values(elements, |x| x * x) / F::from_f64(scale.len() as f64))
            };
            let factor = inverse_deviation(variance, epsilon);
            apply_scale(results, elements, mean, factor, scale, bias);
            *found = (mean, factor);
        }
    }
}

#[inline(always)]
fn apply_scale<F: ComputeFloat>(
    results: &mut [F],
    elements: &[F],
    mean: F,
    factor: F,
    scale: &[F],
    bias: Option<&[F]>,
) {
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
