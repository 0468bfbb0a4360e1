//! Normalisations of lines along one axis: `Softmax`, `LogSoftmax`, `Hardmax` and `LpNormalization`.

use oarlock_sdk::{Call, Error, Kernel, KernelFlags, Result, dispatch};

use super::moments::sum;
use super::real;
use crate::device::Cpu;
use crate::isa::Target;
use crate::kernels::reduce::fold;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Lines, LinesPart, in_parallel};
use crate::kernels::rows::vector::with_isa;

/// How many lines that lie side by side are gathered together, which makes use of whole cache lines.
const SIDE_BY_SIDE: usize = 16;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = Vec::new();
    kernels.extend(rows("Softmax", Softmax));
    kernels.extend(rows("LogSoftmax", LogSoftmax));
    kernels.extend(rows("Hardmax", Hardmax));
    let norm = kernel("LpNormalization", norm_plan, |cpu, (axis, norm), operands| {
        run(cpu, Along::Axis(*axis), *norm, operands)
    });
    kernels.push(finished(norm, "input", "output"));
    kernels
}

/// What is normalised together: a line along an axis, or all dimensions from one on.
#[derive(Clone, Copy)]
enum Along {
    Axis(i64),
    AllFrom(i64),
}

/// What becomes of one line.
pub(crate) trait Line: Copy + Send + Sync + 'static {
    fn apply<T: Target, F: Float>(self, input: &[F], output: &mut [F]);
}

/// The row of the versions that flatten the dimensions, and the row of those that take one axis.
fn rows<L: Line>(op: &'static str, line: L) -> [Kernel<Cpu>; 2] {
    let flattened = kernel(
        op,
        |call| Ok(Along::AllFrom(call.int("axis")?.unwrap_or(1))),
        move |cpu, along, operands| run(cpu, *along, line, operands),
    );
    let one = kernel(
        op,
        |call| Ok(Along::Axis(call.int("axis")?.unwrap_or(-1))),
        move |cpu, along, operands| run(cpu, *along, line, operands),
    );
    [finished(flattened, "input", "output").until(12), finished(one, "input", "output").since(13)]
}

fn finished(kernel: Kernel<Cpu>, input: &'static str, output: &'static str) -> Kernel<Cpu> {
    kernel.flags(KernelFlags::DETERMINISTIC).inputs([real(input)]).outputs([real(output)])
}

fn run<L: Line>(cpu: &Cpu, along: Along, line: L, operands: &Operands<'_, '_>) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    let axis = match along {
        // A scalar is a line of one element.
        Along::Axis(-1 | 0) if input.dims().is_empty() => Axis { outer: 1, length: 1, inner: 1 },
        Along::Axis(axis) => Axis::new(input.dims(), axis)?,
        Along::AllFrom(axis) if axis == input.dims().len() as i64 || input.dims().is_empty() => {
            Axis { outer: input.element_count()?, length: 1, inner: 1 }
        }
        Along::AllFrom(axis) => Axis::flattened(input.dims(), axis)?,
    };
    dispatch!(input.dtype(), floating_and_half + bf16, T => {
        apply::<T, L>(cpu, axis, line, operands.read(0)?, operands.write(0)?);
        Ok(())
    })
}

/// Applies a normalisation to all lines along an axis.
pub(crate) fn apply<T: Real, L: Line>(cpu: &Cpu, axis: Axis, line: L, input: &[T], output: &mut [T]) {
    if output.is_empty() {
        return;
    }
    let lines = Lines::new(output, axis.length, axis.inner);
    in_parallel(cpu, axis.lines(), grain(axis.length), lines, |begin, mut part| {
        with_isa!(cpu.isa(), Level => || {
            if axis.inner > 1 {
                return side_by_side::<Level, T, L>(axis, line, input, part);
            }
            let inputs = input[begin * axis.length..].chunks(axis.length);
            for ((index, _), input) in part.groups(1).zip(inputs) {
                T::write_floats(part.line(index), |output| line.apply::<Level, _>(&T::floats(input), output));
            }
        });
    });
}

/// Gathers each line into one piece, applies, and scatters the result.
#[inline(always)]
fn side_by_side<I: Target, T: Real, L: Line>(axis: Axis, line: L, input: &[T], mut part: LinesPart<'_, T>) {
    let Axis { length, inner, .. } = axis;
    let mut gathered = vec![T::Float::ZERO; length * SIDE_BY_SIDE];
    let mut results = gathered.clone();
    for (first, lines) in part.groups(SIDE_BY_SIDE) {
        let start = first / inner * length * inner + first % inner;
        for position in 0..length {
            for (index, element) in input[start + position * inner..][..lines].iter().enumerate() {
                gathered[index * length + position] = element.float();
            }
        }
        for index in 0..lines {
            let range = index * length..(index + 1) * length;
            line.apply::<I, _>(&gathered[range.clone()], &mut results[range]);
        }
        for position in 0..length {
            for (index, element) in part.across(first, lines, position).iter_mut().enumerate() {
                *element = T::of_float(results[index * length + position]);
            }
        }
    }
}

/// The greatest number of a line. What is not a number makes itself felt in the sum.
#[inline(always)]
fn greatest<F: Float>(line: &[F]) -> F {
    fold(line, F::LOWEST, F::greater, F::greater)
}

#[derive(Clone, Copy)]
struct Softmax;

impl Line for Softmax {
    #[inline(always)]
    fn apply<T: Target, F: Float>(self, input: &[F], output: &mut [F]) {
        let greatest = greatest(input);
        for (result, element) in output.iter_mut().zip(input) {
            *result = (*element - greatest).decay::<T>();
        }
        let factor = F::ONE / sum(output, |x| x);
        for result in output {
            *result = *result * factor;
        }
    }
}

/// The logarithm of the softmax.
#[derive(Clone, Copy)]
pub(crate) struct LogSoftmax;

impl Line for LogSoftmax {
    #[inline(always)]
    fn apply<T: Target, F: Float>(self, input: &[F], output: &mut [F]) {
        let greatest = greatest(input);
        let logarithm = sum(input, |x| (x - greatest).decay::<T>()).logarithm();
        for (result, element) in output.iter_mut().zip(input) {
            *result = *element - greatest - logarithm;
        }
    }
}

/// 1 at the first of the greatest elements, 0 elsewhere. What is not a number counts as the greatest.
#[derive(Clone, Copy)]
struct Hardmax;

impl Line for Hardmax {
    #[inline(always)]
    fn apply<T: Target, F: Float>(self, input: &[F], output: &mut [F]) {
        let greatest = fold(input, F::LOWEST, F::maximum, F::maximum);
        let is_greatest = |x: &F| *x == greatest || x.is_unordered();
        output.fill(F::ZERO);
        if let Some(place) = input.iter().position(is_greatest) {
            output[place] = F::ONE;
        }
    }
}

/// Divides by the sum of magnitudes or by the root of the sum of squares. Zeros stay zeros.
#[derive(Clone, Copy)]
enum Norm {
    L1,
    L2,
}

fn norm_plan(call: &Call<'_>) -> Result<(i64, Norm)> {
    let norm = match call.int("p")?.unwrap_or(2) {
        1 => Norm::L1,
        2 => Norm::L2,
        p => return Err(Error::invalid_argument(format!("expected `p` to be 1 or 2, found {p}"))),
    };
    Ok((call.int("axis")?.unwrap_or(-1), norm))
}

impl Line for Norm {
    #[inline(always)]
    fn apply<T: Target, F: Float>(self, input: &[F], output: &mut [F]) {
        let norm = match self {
            Self::L1 => sum(input, F::magnitude),
            Self::L2 => sum(input, |x| x * x).root(),
        };
        let divisor = if norm == F::ZERO { F::ONE } else { norm };
        for (result, element) in output.iter_mut().zip(input) {
            *result = *element / divisor;
        }
    }
}
