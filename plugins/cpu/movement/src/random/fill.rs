//! `RandomUniform`, `RandomNormal`, their `Like` forms and `Bernoulli`: an independent number for each element.

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::element_bytes_mut;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, Result, dispatch, ensure, family,
};

use super::philox::PhiloxSource;
use super::{cell_of_one, random_source, read_seed};

/// All dtypes: only the shape of the input matters.
pub(super) const ANY_DTYPE: DtypeSet = DtypeSet((1 << (Dtype::STRING.0 + 1)) - 2);
const RANDOM_FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);
const BERNOULLI_DTYPES: DtypeSet = RANDOM_FLOATS
    .union(family::INTEGRAL)
    .union(DtypeSet::I16)
    .union(DtypeSet::U16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64)
    .union(DtypeSet::BOOL);

pub(super) fn fill_kernels() -> Vec<Kernel<Cpu>> {
    let output = OperandSpec::new(RANDOM_FLOATS).with_name("output");
    // Only the shape of the operand matters, so it may be of any dtype and have strides.
    let like = OperandSpec::new(ANY_DTYPE).with_name("input").with_flags(OperandFlags::STRIDED);
    let (uniform, normal) = (
        |call: &KernelCall<'_>| RandomFill::new(call, RandomDistribution::UNIFORM),
        |call: &KernelCall<'_>| RandomFill::new(call, RandomDistribution::NORMAL),
    );
    vec![
        operand_kernel("RandomUniform", uniform, fill_output).with_outputs([output]),
        operand_kernel("RandomNormal", normal, fill_output).with_outputs([output]),
        operand_kernel("RandomUniformLike", uniform, fill_like).with_inputs([like]).with_outputs([output]),
        operand_kernel("RandomNormalLike", normal, fill_like).with_inputs([like]).with_outputs([output]),
        operand_kernel("Bernoulli", read_seed, run_bernoulli)
            .since_version(15)
            .with_inputs([OperandSpec::new(RANDOM_FLOATS).with_name("input")])
            .with_outputs([OperandSpec::new(BERNOULLI_DTYPES).with_name("output")]),
    ]
}

/// A distribution: the names of its two attributes, and their defaults.
struct RandomDistribution {
    is_normal: bool,
    names: [&'static str; 2],
    defaults: [f64; 2],
}

impl RandomDistribution {
    const UNIFORM: Self = Self { is_normal: false, names: ["low", "high"], defaults: [0.0, 1.0] };
    const NORMAL: Self = Self { is_normal: true, names: ["mean", "scale"], defaults: [0.0, 1.0] };
}

struct RandomFill {
    seed: Option<u64>,
    is_normal: bool,
    /// Added to a number of the unit distribution after it was scaled.
    start: f64,
    factor: f64,
}

impl RandomFill {
    fn new(call: &KernelCall<'_>, shape: RandomDistribution) -> Result<Self> {
        let start = call.float_attribute(shape.names[0])?.unwrap_or(shape.defaults[0]);
        let second = call.float_attribute(shape.names[1])?.unwrap_or(shape.defaults[1]);
        let factor = if shape.is_normal { second } else { second - start };
        Ok(Self { seed: read_seed(call)?, is_normal: shape.is_normal, start, factor })
    }
}

fn fill_like(cpu: &Cpu, plan: &RandomFill, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    fill_output(cpu, plan, operands)
}

fn fill_output(cpu: &Cpu, plan: &RandomFill, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let output = operands.call().output(0)?;
    let source = random_source(operands.call(), plan.seed);
    dispatch!(output.dtype(), floating_and_half + bf16, T => {
        let output = operands.write_output::<T>(0)?;
        let (start, factor) = (<T as ComputeElement>::Float::from_f64(plan.start), <T as ComputeElement>::Float::from_f64(plan.factor));
        let count = output.len();
        parallel_for_parts(cpu, count, grain_for(8), OutputRows::new(output, 1), |begin, part| {
            for (index, element) in part.iter_mut().enumerate() {
                let unit = sample_unit::<T>(source, begin + index, plan.is_normal);
                *element = T::from_float(unit * factor + start);
            }
        });
        Ok(())
    })
}

/// A number of the uniform distribution from 0 to 1, or of the normal one around 0.
fn sample_unit<T: FloatElement>(source: PhiloxSource, index: usize, is_normal: bool) -> T::Float {
    let uniform = |index| match T::DTYPE {
        Dtype::F64 => source.f64_at(index),
        // Narrow floats round the number of `f32`, so a seed gives about the same numbers in all of them.
        _ => f64::from(source.f32_at(index)),
    };
    if !is_normal {
        return T::Float::from_f64(uniform(index));
    }
    // Box-Muller: a pair of uniform numbers is a random point, whose coordinates are both normal. 1 - u is never 0.
    // Both elements of a pair compute it, so that neither depends on how threads cut the output.
    let (radius, angle) = (1.0 - uniform(index & !1), uniform(index | 1) * std::f64::consts::TAU);
    let radius = (-2.0 * radius.ln()).sqrt();
    T::Float::from_f64(radius * if index.is_multiple_of(2) { angle.cos() } else { angle.sin() })
}

fn run_bernoulli(cpu: &Cpu, seed: &Option<u64>, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    let is_hit = dispatch!(input.dtype(), floating_and_half + bf16, P => {
        probability_test(operands.read_input::<P>(0)?)
    })?;
    let source = random_source(operands.call(), *seed);
    let (dtype, count) = (output.dtype(), element_count(output.dims())?);
    by_size!(dtype, N => {
        let one = cell_of_one::<N>(dtype);
        let output = OutputRows::new(element_bytes_mut::<N>(&output)?, 1);
        parallel_for_parts(cpu, count, grain_for(8), output, |begin, part| {
            for (index, element) in (begin..).zip(part) {
                *element = if is_hit(source, index) { one } else { [0; N] };
            }
        });
    });
    Ok(())
}

/// True if the random number of an element is below its probability.
type ProbabilityTest<'a> = dyn Fn(PhiloxSource, usize) -> bool + Sync + 'a;

/// A test by probabilities of one dtype. It is a `dyn`, so that outputs are not written by code for every pair of dtypes.
fn probability_test<P: FloatElement>(probabilities: &[P]) -> Result<Box<ProbabilityTest<'_>>> {
    let is_valid = |p: &P| (0.0..=1.0).contains(&p.to_float().to_f64());
    ensure!(
        probabilities.iter().all(is_valid),
        invalid_argument,
        "expected probabilities from 0 to 1, found others"
    );
    // Numbers are below 1, so a probability of 1 always hits and one of 0 never.
    Ok(Box::new(|source, index| f64::from(source.f32_at(index)) < probabilities[index].to_float().to_f64()))
}
