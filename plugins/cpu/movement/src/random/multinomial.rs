//! `Multinomial`: draws classes whose weights are given by their logarithms.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, Result, dispatch, ensure, family};

use super::philox::PhiloxSource;
use super::{random_source, read_seed};

pub(super) fn multinomial_kernels() -> Vec<Kernel<Cpu>> {
    let reals = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
    vec![
        operand_kernel("Multinomial", MultinomialAttributes::new, run_multinomial)
            .since_version(7)
            .with_inputs([OperandSpec::new(reals).with_name("input").with_rank(2, 2)])
            .with_outputs([OperandSpec::new(DtypeSet::I32.union(DtypeSet::I64))
                .with_name("output")
                .with_rank(2, 2)]),
    ]
}

struct MultinomialAttributes {
    samples: i64,
    seed: Option<u64>,
}

impl MultinomialAttributes {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let samples = call.int_attribute("sample_size")?.unwrap_or(1);
        ensure!(samples >= 0, invalid_argument, "expected `sample_size` of at least 0, found {samples}");
        Ok(Self { samples, seed: read_seed(call)? })
    }
}

fn run_multinomial(cpu: &Cpu, plan: &MultinomialAttributes, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    ensure!(
        input.dims().len() == 2,
        invalid_argument,
        "expected an input of 2 dimensions, found {:?}",
        input.dims()
    );
    operands.expect_dims(&output, "output", &[input.dims()[0], plan.samples])?;
    let source = random_source(operands.call(), plan.seed);
    let classes = input.dims()[1] as usize;
    let sums_of_row = dispatch!(input.dtype(), floating_and_half + bf16, T => {
        Ok(row_sums(operands.read_input::<T>(0)?, classes))
    })?;
    let drawing =
        ClassDrawing { source, rows: input.dims()[0] as usize, classes, samples: plan.samples as usize };
    dispatch!(output.dtype(), integral, I => {
        drawing.draw_classes::<I>(cpu, &*sums_of_row, operands.write_output(0)?)
    })
}

/// The running sums of the weights in a row.
type RowSums<'a> = dyn Fn(usize) -> Vec<f64> + Sync + 'a;

/// The sums of logarithms of one dtype. It is a `dyn`, so that classes are not drawn by code for every pair of dtypes.
fn row_sums<T: FloatElement>(logarithms: &[T], classes: usize) -> Box<RowSums<'_>> {
    Box::new(move |row| cumulative_weights(&logarithms[row * classes..][..classes]))
}

struct ClassDrawing {
    source: PhiloxSource,
    rows: usize,
    classes: usize,
    samples: usize,
}

impl ClassDrawing {
    fn draw_classes<I: ComputeElement>(
        &self,
        cpu: &Cpu,
        sums_of_row: &RowSums<'_>,
        output: &mut [I],
    ) -> Result<()> {
        let Self { source, rows, classes, samples } = *self;
        if output.is_empty() {
            return Ok(());
        }
        let is_drawable = |row| {
            let sum = sums_of_row(row).last().copied();
            // A logarithm that is NaN or +∞ makes the sum NaN. So does a row of -∞ alone.
            sum.is_some_and(|sum| sum > 0.0 && sum.is_finite())
        };
        ensure!(
            (0..rows).all(is_drawable),
            invalid_argument,
            "expected logarithms of probabilities with at least one class that can be drawn, found none"
        );
        let grain = grain_for(classes + 8 * samples);
        parallel_for_parts(cpu, rows, grain, OutputRows::new(output, samples), |begin, part| {
            for (row, drawn) in (begin..).zip(part.chunks_mut(samples)) {
                let sums = sums_of_row(row);
                let total = sums[classes - 1];
                let last_drawable = sums.partition_point(|sum| *sum < total);
                for (sample, class) in drawn.iter_mut().enumerate() {
                    // Classes without weight have the sum of the class before and are never the first to exceed the level. If that
                    // is rounded up to the total, it takes the last class that has weight.
                    let level = source.f64_at(row * samples + sample) * total;
                    let found = sums.partition_point(|sum| *sum <= level).min(last_drawable);
                    *class = I::from_float(I::Float::from_f64(found as f64));
                }
            }
        });
        Ok(())
    }
}

/// The running sums of the weights, scaled so that the largest weight is 1.
fn cumulative_weights<T: FloatElement>(logarithms: &[T]) -> Vec<f64> {
    let value = |logarithm: &T| logarithm.to_float().to_f64();
    let greatest = logarithms.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    let running = |sum: &mut f64, logarithm: &T| {
        *sum += (value(logarithm) - greatest).exp();
        Some(*sum)
    };
    logarithms.iter().scan(0.0, running).collect()
}
