//! `GroupNormalization` and `InstanceNormalization`: over groups of channels of one image.

use oarlock_sdk::{Call, Error, Kernel, KernelFlags, Result, dispatch, ensure};

use super::moments::{inverse_deviation, moments};
use super::parameters::read_for_each;
use super::real;
use crate::device::Cpu;
use crate::isa::Isa;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

/// How many elements of groups stay in the nearest cache while they are normalised together.
const NEAR: usize = 2048;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let finish = |kernel: Kernel<Cpu>, names: [&'static str; 4]| {
        let [x, scale, bias, y] = names.map(real);
        kernel.flags(KernelFlags::DETERMINISTIC).inputs([x, scale, bias]).outputs([y])
    };
    let groups = |scales_groups: bool| {
        let plan = move |call: &Call<'_>| Options::new(call, true, scales_groups);
        finish(kernel("GroupNormalization", plan, dispatch_real), ["X", "scale", "bias", "Y"])
    };
    let instances =
        kernel("InstanceNormalization", |call: &Call<'_>| Options::new(call, false, false), dispatch_real);
    vec![
        groups(true).since(18).until(20),
        groups(false).since(21),
        finish(instances, ["input", "scale", "B", "output"]),
    ]
}

struct Options {
    /// Every channel is a group of its own without a number.
    groups: Option<i64>,
    /// There is a scale for each group instead of each channel.
    scales_groups: bool,
    epsilon: f64,
}

impl Options {
    fn new(call: &Call<'_>, has_groups: bool, scales_groups: bool) -> Result<Self> {
        let groups = has_groups.then(|| {
            call.int("num_groups")?
                .ok_or_else(|| Error::invalid_argument("expected the attribute `num_groups`, found none"))
        });
        Ok(Self {
            groups: groups.transpose()?,
            scales_groups,
            epsilon: call.float("epsilon")?.unwrap_or(f64::from(1e-5f32)),
        })
    }
}

fn dispatch_real(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating_and_half + bf16, T => run::<T>(cpu, options, operands))
}

fn run<T: Real>(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "the output", x.dims())?;
    let Axis { outer: images, length: channels, inner: size } = Axis::new(x.dims(), 1)?;
    let groups = options.groups.unwrap_or(channels as i64);
    let divides = groups == channels as i64 || groups > 0 && channels as i64 % groups == 0;
    ensure!(
        divides,
        invalid_argument,
        "expected `num_groups` to divide the {channels} channels, found {groups}"
    );
    let groups = groups as usize;
    let scales = if options.scales_groups { groups } else { channels };
    let scale = read_for_each::<T::Float>(operands, 1, scales)?;
    let bias = read_for_each::<T::Float>(operands, 2, scales)?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let rule = Rule {
        groups,
        channels: channels / groups,
        size,
        scales_groups: options.scales_groups,
        epsilon: T::Float::of(options.epsilon),
        scale: &scale,
        bias: &bias,
    };
    let width = rule.channels * size;
    let (near, isa) = ((NEAR / width).max(1) * width, cpu.isa());
    in_parallel(cpu, images * groups, grain(width), Rows::new(output, width), |begin, part| {
        let input = &input[begin * width..][..part.len()];
        let mut first = begin;
        for (results, elements) in part.chunks_mut(near).zip(input.chunks(near)) {
            T::write_floats(isa, results, |results| {
                rule.apply(isa, first, &T::floats(isa, elements), results);
            });
            first += near / width;
        }
    });
    Ok(())
}

/// What becomes of groups of channels.
struct Rule<'a, F> {
    /// How many groups an image has, and how many channels of so many elements each of them has.
    groups: usize,
    channels: usize,
    size: usize,
    scales_groups: bool,
    epsilon: F,
    scale: &'a [F],
    bias: &'a [F],
}

impl<F: Float> Rule<'_, F> {
    /// Normalises groups from one on, counted over all images.
    fn apply(&self, isa: Isa, first: usize, elements: &[F], results: &mut [F]) {
        with_isa!(isa, || self.apply_at_level(first, elements, results));
    }

    #[inline(always)]
    fn apply_at_level(&self, first: usize, elements: &[F], results: &mut [F]) {
        let Self { groups, channels, size, scales_groups, epsilon, scale, bias } = *self;
        let items = results.chunks_mut(channels * size).zip(elements.chunks(channels * size));
        for (index, (results, elements)) in items.enumerate() {
            let group = (first + index) % groups;
            let (mean, variance) = moments(elements);
            let factor = inverse_deviation(variance, epsilon);
            let channels_of_group = results.chunks_mut(size).zip(elements.chunks(size)).enumerate();
            for (channel, (results, elements)) in channels_of_group {
                let at = if scales_groups { group } else { group * channels + channel };
                let (factor, bias) = (factor * scale[at], bias[at]);
                for (result, element) in results.iter_mut().zip(elements) {
                    *result = (*element - mean) * factor + bias;
                }
            }
        }
    }
}
