//! `RandomSample` of the domain `oarlock`: numbers of a distribution that depend on a state, their index and their parameters alone, so
//! they are the same on every device, whatever the number of threads.

use std::ops::RangeInclusive;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, dtype_set,
    ensure,
};

use super::fill::ANY_DTYPE;
use super::lanes::{MAX_NUMBERS, SampleFloat, exponentials};
use super::philox::{LANES, PhiloxSource, WordBlock, word_pair};
use super::trials::{
    FEW_EVENTS, MakeFirstTrials, TrialWords, poisson_chances, sample_binomial, sample_few_events,
    sample_gamma, sample_poisson,
};

const PARAMETERS: DtypeSet = dtype_set(&[Dtype::F64, Dtype::I64, Dtype::U64]);
/// The largest mean of a number of events, which an `i64` has to hold.
const MOST_EVENTS: f64 = (1u64 << 62) as f64;
/// The largest number of trials: beyond it, an `f64` does not hold every integer.
const MOST_TRIALS: f64 = (1u64 << 53) as f64;
const NUMBERS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64, Dtype::I64, Dtype::U64, Dtype::U32]);

pub(super) fn sample_kernels() -> Vec<Kernel<Cpu>> {
    let parameter = OperandSpec::new(PARAMETERS).with_dtype_group(1);
    // Only the shape of the first operand matters, so it may be of any dtype and have strides.
    let like = OperandSpec::new(ANY_DTYPE).with_name("X").with_flags(OperandFlags::STRIDED);
    vec![
        operand_kernel("RandomSample", SampleDistribution::new, run_sample)
            .with_domain(OARLOCK_DOMAIN)
            .with_inputs([
                like,
                OperandSpec::new(DtypeSet::U64).with_name("state").with_rank(1, 1),
                parameter.with_name("a").with_flags(OperandFlags::OPTIONAL),
                parameter.with_name("b").with_flags(OperandFlags::OPTIONAL),
            ])
            .with_outputs([OperandSpec::new(NUMBERS).with_name("Y")]),
    ]
}

/// The attribute `distribution`, with what its parameters mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SampleDistribution {
    /// Random bits.
    Bits,
    /// From a on and below b.
    Uniform,
    /// Around a, with deviation b.
    Normal,
    /// With mean a.
    Exponential,
    /// Integers from a to b.
    Integers,
    /// Of shape a and scale b.
    Gamma,
    /// Numbers of events with mean a.
    Poisson,
    /// Successes among a trials with probability b.
    Binomial,
    /// The numbers below the number of elements, each once.
    Permutation,
}

impl SampleDistribution {
    const ALL: [(&str, Self); 9] = [
        ("bits", Self::Bits),
        ("uniform", Self::Uniform),
        ("normal", Self::Normal),
        ("exponential", Self::Exponential),
        ("integers", Self::Integers),
        ("gamma", Self::Gamma),
        ("poisson", Self::Poisson),
        ("binomial", Self::Binomial),
        ("permutation", Self::Permutation),
    ];

    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let name = call.string_attribute("distribution")?.unwrap_or_default();
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, found)| *found).ok_or_else(|| {
            let known = Self::ALL.map(|(known, _)| format!("`{known}`")).join(", ");
            PluginError::invalid_argument(format!("expected {known} as `distribution`, found `{name}`"))
        })
    }
}

/// One parameter for all numbers, or one for each.
#[derive(Clone, Copy)]
enum SampleParameter<'a, T> {
    Shared(T),
    Each(&'a [T]),
}

impl<'a, T: Element + Copy> SampleParameter<'a, T> {
    /// Reads the parameter `index`, or takes the default.
    fn read(operands: &KernelOperands<'_, 'a>, index: usize, count: usize, default: T) -> Result<Self> {
        let Some(elements) = operands.read_optional_input::<T>(index)? else {
            return Ok(Self::Shared(default));
        };
        ensure!(
            elements.len() == 1 || elements.len() == count,
            invalid_argument,
            "expected one parameter or {count} in input {index}, found {}",
            elements.len()
        );
        Ok(if let [only] = elements { Self::Shared(*only) } else { Self::Each(elements) })
    }

    #[inline(always)]
    fn at(self, index: usize) -> T {
        match self {
            Self::Shared(value) => value,
            Self::Each(values) => values[index],
        }
    }
}

impl SampleParameter<'_, f64> {
    fn expect_within(self, name: &str, range: &RangeInclusive<f64>) -> Result<()> {
        let values = match &self {
            Self::Shared(value) => std::slice::from_ref(value),
            Self::Each(values) => values,
        };
        match values.iter().find(|value| !range.contains(value)) {
            None => Ok(()),
            Some(found) => Err(PluginError::invalid_argument(format!(
                "expected `{name}` from {} to {}, found {found}",
                range.start(),
                range.end()
            ))),
        }
    }
}

fn run_sample(cpu: &Cpu, distribution: &SampleDistribution, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (like, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", like.dims())?;
    let count = element_count(output.dims())?;
    let state = operands.read_input::<u64>(1)?;
    ensure!(
        state.len() == 2,
        invalid_argument,
        "expected a key and an offset as state, found {} numbers",
        state.len()
    );
    let sampling = SampleOutput { cpu, operands, source: PhiloxSource::new(state[0], state[1]), count };
    match (output.dtype(), *distribution) {
        (Dtype::U32, SampleDistribution::Bits) => sampling.fill_bits::<u32>(),
        (Dtype::U64, SampleDistribution::Bits) => sampling.fill_bits::<u64>(),
        (Dtype::I64, SampleDistribution::Integers) => sampling.fill_integers::<i64>(),
        (Dtype::U64, SampleDistribution::Integers) => sampling.fill_integers::<u64>(),
        (Dtype::I64, SampleDistribution::Permutation) => sampling.fill_permutation(),
        (Dtype::F32, SampleDistribution::Gamma) => sampling.fill_trials::<f32>(*distribution),
        (Dtype::F64, SampleDistribution::Gamma) => sampling.fill_trials::<f64>(*distribution),
        (Dtype::I64, SampleDistribution::Poisson | SampleDistribution::Binomial) => {
            sampling.fill_trials::<i64>(*distribution)
        }
        (Dtype::F32, distribution) => sampling.fill_floats::<f32>(distribution),
        (Dtype::F64, distribution) => sampling.fill_floats::<f64>(distribution),
        (dtype, _) => Err(PluginError::invalid_argument(format!(
            "expected a dtype that the distribution has, found {}",
            dtype.name().unwrap_or("another")
        ))),
    }
}

/// The output of a call, which is filled with numbers.
struct SampleOutput<'s, 'c, 'a> {
    cpu: &'s Cpu,
    operands: &'s KernelOperands<'c, 'a>,
    source: PhiloxSource,
    count: usize,
}

impl SampleOutput<'_, '_, '_> {
    fn fill_floats<F: SampleFloat + Element + Default>(
        &self,
        distribution: SampleDistribution,
    ) -> Result<()> {
        // Numbers without parameters, and the parameters that leave them as they are.
        let (make, defaults) = match distribution {
            SampleDistribution::Uniform => (UnitDistribution::Uniform, (0.0, 1.0)),
            SampleDistribution::Normal => (UnitDistribution::Normal, (0.0, 1.0)),
            SampleDistribution::Exponential => (UnitDistribution::Exponential, (1.0, 0.0)),
            _ => {
                return Err(PluginError::invalid_argument(
                    "expected a distribution of floats for an output of floats, found another",
                ));
            }
        };
        let a = SampleParameter::<f64>::read(self.operands, 2, self.count, defaults.0)?;
        let b = SampleParameter::<f64>::read(self.operands, 3, self.count, defaults.1)?;
        let is_unit =
            matches!((a, b), (SampleParameter::Shared(a), SampleParameter::Shared(b)) if (a, b) == defaults);
        let (cpu, source, count) = (self.cpu, self.source, self.count);
        let output = OutputRows::new(self.operands.write_output::<F>(0)?, 1);
        parallel_for_parts(cpu, count, grain_for(8), output, |begin, part| {
            cpu.isa().vectorize(FillFloats { source, make, begin, part: &mut *part });
            if is_unit {
                return;
            }
            for (index, number) in (begin..).zip(part) {
                let (a, b) = (F::from_f64(a.at(index)), F::from_f64(b.at(index)));
                *number = match make {
                    UnitDistribution::Uniform => below(*number * (b - a) + a, a, b),
                    UnitDistribution::Normal => *number * b + a,
                    UnitDistribution::Exponential => *number * a,
                };
            }
        });
        Ok(())
    }

    fn fill_bits<W: RandomWord>(&self) -> Result<()> {
        let (cpu, source, count) = (self.cpu, self.source, self.count);
        let output = OutputRows::new(self.operands.write_output::<W>(0)?, 1);
        parallel_for_parts(cpu, count, grain_for(4), output, |begin, part| {
            cpu.isa().vectorize(FillWords { source, begin, part });
        });
        Ok(())
    }

    fn fill_integers<I: BoundedInteger>(&self) -> Result<()> {
        let low = SampleParameter::<I>::read(self.operands, 2, self.count, I::default())?;
        let high = SampleParameter::<I>::read(self.operands, 3, self.count, I::default())?;
        let (cpu, source, count) = (self.cpu, self.source, self.count);
        let output = OutputRows::new(self.operands.write_output::<I>(0)?, 1);
        parallel_for_parts(cpu, count, grain_for(8), output, |begin, part: &mut [I]| {
            let mut words = [0; <u64 as RandomWord>::NUMBERS];
            for (block, first, part) in block_parts(begin, part, words.len()) {
                let begin = block * words.len();
                cpu.isa().vectorize(FillWords { source, begin, part: &mut words });
                for (place, integer) in (first..).zip(part) {
                    *integer = I::between(low.at(begin + place), high.at(begin + place), words[place]);
                }
            }
        });
        Ok(())
    }

    /// Fisher and Yates' shuffle, which one thread does: each exchange follows from those before.
    fn fill_permutation(&self) -> Result<()> {
        let places = self.operands.write_output::<i64>(0)?;
        for (place, element) in (0..).zip(places.iter_mut()) {
            *element = place;
        }
        let mut words = [0; <u64 as RandomWord>::NUMBERS];
        // From the last place on, so that each is exchanged with any before it or with itself.
        for (at, last) in (1..self.count).rev().enumerate() {
            if at.is_multiple_of(words.len()) {
                self.cpu.isa().vectorize(FillWords { source: self.source, begin: at, part: &mut words });
            }
            places.swap(last, u64::between(0, last as u64, words[at % words.len()]) as usize);
        }
        Ok(())
    }

    fn fill_trials<N: TrialNumber>(&self, distribution: SampleDistribution) -> Result<()> {
        let a = SampleParameter::<f64>::read(self.operands, 2, self.count, 1.0)?;
        let b = SampleParameter::<f64>::read(self.operands, 3, self.count, 1.0)?;
        // Outside of these, no trial would ever be accepted.
        let (first, second) = match distribution {
            SampleDistribution::Gamma => (0.0..=f64::INFINITY, f64::NEG_INFINITY..=f64::INFINITY),
            SampleDistribution::Poisson => (0.0..=MOST_EVENTS, f64::NEG_INFINITY..=f64::INFINITY),
            _ => (0.0..=MOST_TRIALS, 0.0..=1.0),
        };
        a.expect_within("a", &first)?;
        b.expect_within("b", &second)?;
        // All numbers share these if they share the mean.
        let chances: Option<Vec<f64>> = match (distribution, a) {
            (SampleDistribution::Poisson, SampleParameter::Shared(mean)) if mean < FEW_EVENTS => {
                Some(poisson_chances(mean).collect())
            }
            _ => None,
        };
        // For a small shape, the first trial draws a uniform number.
        let normal_trial = match (distribution, a) {
            (SampleDistribution::Gamma, SampleParameter::Shared(shape)) => Some(u32::from(shape < 1.0)),
            (SampleDistribution::Gamma, SampleParameter::Each(_)) => Some(0),
            _ => None,
        };
        let (cpu, source, count) = (self.cpu, self.source, self.count);
        let output = OutputRows::new(self.operands.write_output::<N>(0)?, 1);
        parallel_for_parts(cpu, count, grain_for(64), output, |begin, part| {
            for (block, first, part) in block_parts(begin, part, LANES) {
                let make = MakeFirstTrials { source, block: block as u64, normal_trial };
                let trials = cpu.isa().vectorize(make);
                for (index, number) in (block * LANES + first..).zip(part) {
                    let (a, b) = (a.at(index), b.at(index));
                    let mut words = TrialWords::new(source, index as u64, &trials);
                    *number = N::from_f64(match distribution {
                        SampleDistribution::Gamma => sample_gamma(&mut words, a) * b,
                        SampleDistribution::Poisson => match &chances {
                            Some(chances) => sample_few_events(&mut words, chances.iter().copied()),
                            None => sample_poisson(&mut words, a),
                        },
                        _ => sample_binomial(&mut words, a, b),
                    });
                }
            }
        });
        Ok(())
    }
}

/// The number, or `a` if rounding made it `b`, which is outside.
#[inline(always)]
fn below<F: SampleFloat>(number: F, a: F, b: F) -> F {
    if number < b || a >= b { number } else { a }
}

/// The parts of a range of numbers that lie in blocks: for each, the number of the block, the first place in it, and its elements.
fn block_parts<T>(
    begin: usize,
    part: &mut [T],
    numbers: usize,
) -> impl Iterator<Item = (usize, usize, &mut [T])> {
    let (mut rest, mut next) = (part, begin);
    std::iter::from_fn(move || {
        let (block, first) = (next / numbers, next % numbers);
        let length = rest.len().min(numbers - first);
        let (now, later) = std::mem::take(&mut rest).split_at_mut(length);
        (rest, next) = (later, next + length);
        (length > 0).then_some((block, first, now))
    })
}

/// Fills a part of the output by blocks, of which the first and the last may lie in it only partly.
#[inline(always)]
fn fill_blocks<E: Copy + Default>(
    source: PhiloxSource,
    (begin, part): (usize, &mut [E]),
    numbers: usize,
    make: impl Fn(&WordBlock, &mut [E; MAX_NUMBERS]),
) {
    for (block, first, part) in block_parts(begin, part, numbers) {
        let mut made = [E::default(); MAX_NUMBERS];
        make(&source.block(block as u64), &mut made);
        part.copy_from_slice(&made[first..first + part.len()]);
    }
}

#[derive(Clone, Copy)]
enum UnitDistribution {
    Uniform,
    Normal,
    Exponential,
}

/// Fills a part of the output with numbers of a distribution without parameters.
struct FillFloats<'p, F> {
    source: PhiloxSource,
    make: UnitDistribution,
    begin: usize,
    part: &'p mut [F],
}

impl<F: SampleFloat + Default> SimdTask for FillFloats<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let range = (self.begin, self.part);
        match self.make {
            UnitDistribution::Uniform => fill_blocks(self.source, range, F::NUMBERS, F::uniforms),
            UnitDistribution::Normal => fill_blocks(self.source, range, F::NUMBERS, F::normals),
            UnitDistribution::Exponential => fill_blocks(self.source, range, F::NUMBERS, exponentials::<F>),
        }
    }
}

/// An integer of random bits.
trait RandomWord: Element + Copy + Default {
    /// The integers of a block.
    const NUMBERS: usize;

    fn of_words(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]);
}

impl RandomWord for u32 {
    const NUMBERS: usize = 4 * LANES;

    #[inline(always)]
    fn of_words(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (row, numbers) in words.iter().zip(numbers.chunks_exact_mut(LANES)) {
            numbers.copy_from_slice(row);
        }
    }
}

impl RandomWord for u64 {
    const NUMBERS: usize = 2 * LANES;

    #[inline(always)]
    fn of_words(words: &WordBlock, numbers: &mut [Self; MAX_NUMBERS]) {
        for (rows, numbers) in words.chunks_exact(2).zip(numbers.chunks_exact_mut(LANES)) {
            for lane in 0..LANES {
                numbers[lane] = word_pair(rows[0][lane], rows[1][lane]);
            }
        }
    }
}

/// Fills a part of the output with random bits.
struct FillWords<'p, W> {
    source: PhiloxSource,
    begin: usize,
    part: &'p mut [W],
}

impl<W: RandomWord> SimdTask for FillWords<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        fill_blocks(self.source, (self.begin, self.part), W::NUMBERS, W::of_words);
    }
}

/// An integer between two others.
trait BoundedInteger: Element + Copy + Default {
    /// The integer from `low` to `high` that a random word chooses. The chance of each differs by less than 2^-64 of their number.
    fn between(low: Self, high: Self, word: u64) -> Self;
}

macro_rules! bounded_integer {
    ($($integer:ty)*) => {
        $(
            impl BoundedInteger for $integer {
                #[inline(always)]
                fn between(low: Self, high: Self, word: u64) -> Self {
                    let count = u128::from(high.wrapping_sub(low) as u64) + 1;
                    low.wrapping_add(((count * u128::from(word)) >> 64) as Self)
                }
            }
        )*
    };
}

bounded_integer!(i64 u64);

/// The dtype of a number that was drawn.
trait TrialNumber: Element {
    fn from_f64(number: f64) -> Self;
}

macro_rules! trial_number {
    ($($number:ty)*) => {
        $(
            impl TrialNumber for $number {
                fn from_f64(number: f64) -> Self {
                    number as Self
                }
            }
        )*
    };
}

trial_number!(f32 f64 i64);
