//! `Multinomial`: classes drawn with the probabilities that logarithms of weights give.

use oarlock_sdk::{Call, DtypeSet, Element, Kernel, Operand, Result, dispatch, ensure, family};

use super::philox::Source;
use super::{seed, source};
use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let reals = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
    vec![
        kernel("Multinomial", Plan::new, run)
            .since(7)
            .inputs([Operand::new(reals).named("input").rank(2, 2)])
            .outputs([Operand::new(DtypeSet::I32.union(DtypeSet::I64)).named("output").rank(2, 2)]),
    ]
}

struct Plan {
    samples: i64,
    seed: Option<u64>,
}

impl Plan {
    fn new(call: &Call<'_>) -> Result<Self> {
        let samples = call.int("sample_size")?.unwrap_or(1);
        ensure!(samples >= 0, invalid_argument, "expected `sample_size` of at least 0, found {samples}");
        Ok(Self { samples, seed: seed(call)? })
    }
}

fn run(cpu: &Cpu, plan: &Plan, operands: &Operands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    ensure!(
        input.dims().len() == 2,
        invalid_argument,
        "expected an input of 2 dimensions, found {:?}",
        input.dims()
    );
    operands.expect_dims(&output, "output", &[input.dims()[0], plan.samples])?;
    let source = source(operands.call(), plan.seed);
    let classes = input.dims()[1] as usize;
    dispatch!(input.dtype(), floating_and_half + bf16, T => {
        dispatch!(output.dtype(), integral, I => draw::<T, I>(cpu, source, classes, plan.samples as usize, operands))
    })
}

fn draw<T: Real, I: Number + Element>(
    cpu: &Cpu,
    source: Source,
    classes: usize,
    samples: usize,
    operands: &Operands<'_, '_>,
) -> Result<()> {
    let (logarithms, output) = (operands.read::<T>(0)?, operands.write::<I>(0)?);
    if output.is_empty() {
        return Ok(());
    }
    let is_drawable = |row: &[T]| {
        let sum = weights(row).last().copied();
        sum.is_some_and(|sum| sum > 0.0 && sum.is_finite())
    };
    ensure!(
        classes > 0 && logarithms.chunks(classes).all(is_drawable),
        invalid_argument,
        "expected logarithms of probabilities with at least one class that can be drawn, found none"
    );
    let rows = output.len() / samples;
    in_parallel(cpu, rows, grain(classes + 8 * samples), Rows::new(output, samples), |begin, part| {
        for (index, drawn) in part.chunks_mut(samples).enumerate() {
            let row = begin + index;
            let sums = weights(&logarithms[row * classes..][..classes]);
            let total = sums[classes - 1];
            for (sample, class) in drawn.iter_mut().enumerate() {
                let level = source.double(row * samples + sample) * total;
                let found = sums.partition_point(|sum| *sum <= level).min(classes - 1);
                *class = I::of_float(I::Float::of(found as f64));
            }
        }
    });
    Ok(())
}

/// The running sums of the weights, the greatest of which is 1.
fn weights<T: Real>(logarithms: &[T]) -> Vec<f64> {
    let value = |logarithm: &T| logarithm.float().to_f64();
    let greatest = logarithms.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    let running = |sum: &mut f64, logarithm: &T| {
        *sum += (value(logarithm) - greatest).exp();
        Some(*sum)
    };
    logarithms.iter().scan(0.0, running).collect()
}
