//! `GroupNormalization` and `InstanceNormalization`: over groups of channels of one image.

use oarlock_cpu_base::compute_element::{ComputeFloat, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Kernel, KernelCall, KernelFlags, PluginError, Result, dispatch, ensure};

use super::L1_ELEMENTS;
use super::moments::{inverse_deviation, mean_and_variance};
use super::parameters::read_per_channel;
use super::real_operand;

pub(super) fn group_normalization_kernels() -> Vec<Kernel<Cpu>> {
    let finish = |kernel: Kernel<Cpu>, names: [&'static str; 4]| {
        let [x, scale, bias, y] = names.map(real_operand);
        kernel.with_flags(KernelFlags::DETERMINISTIC).with_inputs([x, scale, bias]).with_outputs([y])
    };
    let groups = |scales_groups: bool| {
        let plan = move |call: &KernelCall<'_>| GroupNormOptions::new(call, true, scales_groups);
        finish(operand_kernel("GroupNormalization", plan, dispatch_group_norm), ["X", "scale", "bias", "Y"])
    };
    let instances = operand_kernel(
        "InstanceNormalization",
        |call: &KernelCall<'_>| GroupNormOptions::new(call, false, false),
        dispatch_group_norm,
    );
    vec![
        // Version 21 replaced a scale and bias per group by one per channel.
        groups(true).since_version(18).until_version(20),
        groups(false).since_version(21),
        finish(instances, ["input", "scale", "B", "output"]),
    ]
}

struct GroupNormOptions {
    /// `None` if every channel is a group.
    groups: Option<i64>,
    /// True if there is a scale per group instead of per channel.
    scales_groups: bool,
    epsilon: f64,
}

impl GroupNormOptions {
    fn new(call: &KernelCall<'_>, has_groups: bool, scales_groups: bool) -> Result<Self> {
        let groups = has_groups.then(|| {
            call.int_attribute("num_groups")?.ok_or_else(|| {
                PluginError::invalid_argument("expected the attribute `num_groups`, found none")
            })
        });
        Ok(Self {
            groups: groups.transpose()?,
            scales_groups,
            epsilon: call.float_attribute("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }
}

fn dispatch_group_norm(
    cpu: &Cpu,
    options: &GroupNormOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => run_group_norm::<T>(cpu, options, operands))
}

fn run_group_norm<T: FloatElement>(
    cpu: &Cpu,
    options: &GroupNormOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "the output", x.dims())?;
    let AxisLayout { outer: images, length: channels, inner: size } = AxisLayout::new(x.dims(), 1)?;
    let groups = options.groups.unwrap_or(channels as i64);
    // 0 channels in 0 groups are allowed; 0 must not divide.
    let divides = groups == channels as i64 || groups > 0 && channels as i64 % groups == 0;
    ensure!(
        divides,
        invalid_argument,
        "expected `num_groups` to divide the {channels} channels, found {groups}"
    );
    let groups = groups as usize;
    let scales = if options.scales_groups { groups } else { channels };
    let scale = read_per_channel::<T::Float>(operands, 1, scales)?;
    let bias = read_per_channel::<T::Float>(operands, 2, scales)?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    // Below, sizes divide that are 0 only if there are no elements.
    if output.is_empty() {
        return Ok(());
    }
    let rule = GroupNormRule {
        groups,
        channels: channels / groups,
        size,
        scales_groups: options.scales_groups,
        epsilon: T::Float::from_f64(options.epsilon),
        scale: &scale,
        bias: &bias,
    };
    let width = rule.channels * size;
    // Small groups are converted together; narrow floats would otherwise be widened and rounded in tiny pieces.
    let (near, isa) = ((L1_ELEMENTS / width).max(1) * width, cpu.isa());
    parallel_for_parts(
        cpu,
        images * groups,
        grain_for(width),
        OutputRows::new(output, width),
        |begin, part| {
            let input = &input[begin * width..][..part.len()];
            let mut first = begin;
            for (results, elements) in part.chunks_mut(near).zip(input.chunks(near)) {
                T::write_floats(isa, results, |results| {
                    rule.normalize_groups(isa, first, &T::to_floats(isa, elements), results);
                });
                first += near / width;
            }
        },
    );
    Ok(())
}

/// The normalization of groups of channels.
struct GroupNormRule<'a, F> {
    /// Groups of an image, channels of a group, and elements of a channel.
    groups: usize,
    channels: usize,
    size: usize,
    scales_groups: bool,
    epsilon: F,
    scale: &'a [F],
    bias: &'a [F],
}

impl<F: ComputeFloat> GroupNormRule<'_, F> {
    /// Normalizes groups from `first` on, counted over all images.
    fn normalize_groups(&self, isa: Isa, first: usize, elements: &[F], results: &mut [F]) {
        with_isa!(isa, || self.normalize_at_level(first, elements, results));
    }

    #[inline(always)]
    fn normalize_at_level(&self, first: usize, elements: &[F], results: &mut [F]) {
        let Self { groups, channels, size, scales_groups, epsilon, scale, bias } = *self;
        let items = results.chunks_mut(channels * size).zip(elements.chunks(channels * size));
        for (index, (results, elements)) in items.enumerate() {
            // Groups are counted over all images, but scales belong to those of one image.
            let group = (first + index) % groups;
            let (mean, variance) = mean_and_variance(elements);
            let factor = inverse_deviation(variance, epsilon);
            let channels_of_group = results.chunks_mut(size).zip(elements.chunks(size)).enumerate();
            for (channel, (results, elements)) in channels_of_group {
                let at = if scales_groups { group } else { group * channels + channel };
                // One product per element, because the scale joins the factor.
                let (factor, bias) = (factor * scale[at], bias[at]);
                for (result, element) in results.iter_mut().zip(elements) {
                    *result = (*element - mean) * factor + bias;
                }
            }
        }
    }
}
