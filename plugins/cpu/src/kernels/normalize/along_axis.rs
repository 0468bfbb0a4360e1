//! Normalisations of lines along one axis: `Softmax`, `LogSoftmax`, `Hardmax` and `LpNormalization`.

use oarlock_sdk::{Call, Error, Kernel, KernelFlags, Result, dispatch};

use super::real;
use crate::device::Cpu;
use crate::isa::{Isa, Target};
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::bundle::{
    Bundle, Results, SHORT, WIDTH, are_short, are_turned, fill_registers, turn_back, turned,
};
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Lines, LinesPart, Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

/// How many lines that lie side by side are gathered together, which makes use of whole cache lines.
const SIDE_BY_SIDE: usize = 16;
/// How many lines that lie one after the other are normalised together, at most.
const IN_TURN: usize = 8;
/// How many elements of lines stay in the nearest cache while they are normalised together.
const NEAR: usize = 2048;

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

/// What becomes of each of some lines.
pub(crate) trait Line: Copy + Send + Sync + 'static {
    fn apply<T: Target, F: Float, const LINES: usize>(
        self,
        input: Bundle<'_, F, LINES>,
        output: Results<'_, F, LINES>,
    );
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
    if const { are_turned::<T>() } && are_short(axis, SHORT) && !fill_registers(axis) {
        return short_lines(cpu, axis, line, input, output);
    }
    if axis.inner > 1 {
        let lines = Lines::new(output, axis.length, axis.inner);
        return in_parallel(cpu, axis.lines(), grain(axis.length), lines, |_, part| {
            if const { are_turned::<T>() } && axis.inner >= WIDTH {
                return where_they_lie(cpu.isa(), axis, line, input, part);
            }
            side_by_side(cpu.isa(), axis, line, input, part);
        });
    }
    in_parallel(cpu, axis.outer, grain(axis.length), Rows::new(output, axis.length), |begin, part| {
        let input = &input[begin * axis.length..][..part.len()];
        apply_in_turn(cpu.isa(), line, axis.length, input, part);
    });
}

/// Applies to lines that lie one after the other.
fn apply_in_turn<T: Real, L: Line>(isa: Isa, line: L, length: usize, input: &[T], output: &mut [T]) {
    let near = (NEAR / length).max(1) * length;
    for (output, input) in output.chunks_mut(near).zip(input.chunks(near)) {
        T::write_floats(isa, output, |output| {
            apply_to_near(isa, line, length, &T::floats(isa, input), output);
        });
    }
}

/// The same in what is calculated in.
fn apply_to_near<F: Float, L: Line>(isa: Isa, line: L, length: usize, input: &[F], output: &mut [F]) {
    with_isa!(isa, Level => || apply_in_groups::<Level, F, L>(line, length, input, output));
}

#[inline(always)]
fn apply_in_groups<I: Target, F: Float, L: Line>(line: L, length: usize, input: &[F], output: &mut [F]) {
    let width = (NEAR / length).clamp(1, IN_TURN) * length;
    for (output, input) in output.chunks_mut(width).zip(input.chunks(width)) {
        let (input, output) = (Bundle::in_turn(input, length), Results::in_turn(output, length));
        line.apply::<I, F, IN_TURN>(input, output);
    }
}

/// Lines of a few elements are turned to lie side by side, and their results turned back.
fn short_lines<T: Real, L: Line>(cpu: &Cpu, axis: Axis, line: L, input: &[T], output: &mut [T]) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    in_parallel(cpu, axis.outer, grain(block), Rows::new(output, block), |begin, part| {
        let mut results = vec![[T::of_float(T::Float::ZERO); WIDTH]; block];
        turned(isa, &input[begin * block..][..part.len()], block, |first, tile: &[[T; WIDTH]]| {
            apply_to_tile(isa, line, axis.inner, tile, &mut results);
            turn_back(isa, &results, first, part);
        });
    });
}

/// Applies to lines that lie side by side in a tile, to whose next elements there are so many steps.
fn apply_to_tile<T: Real, L: Line>(
    isa: Isa,
    line: L,
    step: usize,
    tile: &[[T; WIDTH]],
    results: &mut [[T; WIDTH]],
) {
    T::write_floats(isa, results.as_flattened_mut(), |results| {
        let floats = T::floats(isa, tile.as_flattened());
        apply_side_by_side(isa, line, step, floats.as_chunks().0, results.as_chunks_mut().0);
    });
}

/// The same for what is calculated in.
fn apply_side_by_side<F: Float, L: Line>(
    isa: Isa,
    line: L,
    step: usize,
    tile: &[[F; WIDTH]],
    results: &mut [[F; WIDTH]],
) {
    with_isa!(isa, Level => || {
        for start in 0..step {
            line.apply::<Level, F, WIDTH>(
                Bundle::new(&tile[start..], step),
                Results::new(&mut results[start..], step),
            );
        }
    });
}

/// Applies to lines of which at least as many lie side by side as in a tile.
fn where_they_lie<T: Real, L: Line>(isa: Isa, axis: Axis, line: L, input: &[T], mut part: LinesPart<'_, T>) {
    let Axis { length, inner, .. } = axis;
    let mut tile = vec![[T::of_float(T::Float::ZERO); WIDTH]; length];
    let mut results = tile.clone();
    for (first, lines) in part.groups(WIDTH) {
        let start = first / inner * length * inner + first % inner;
        for (elements, input) in tile.iter_mut().zip(input[start..].chunks(inner)) {
            elements[..lines].copy_from_slice(&input[..lines]);
        }
        apply_to_tile(isa, line, 1, &tile, &mut results);
        for (position, results) in results.iter().enumerate() {
            part.across(first, lines, position).copy_from_slice(&results[..lines]);
        }
    }
}

/// Gathers each line into one piece, applies, and scatters the result.
fn side_by_side<T: Real, L: Line>(isa: Isa, axis: Axis, line: L, input: &[T], mut part: LinesPart<'_, T>) {
    let Axis { length, inner, .. } = axis;
    let mut gathered = vec![T::of_float(T::Float::ZERO); length * SIDE_BY_SIDE];
    let mut results = gathered.clone();
    for (first, lines) in part.groups(SIDE_BY_SIDE) {
        let start = first / inner * length * inner + first % inner;
        for position in 0..length {
            for (index, element) in input[start + position * inner..][..lines].iter().enumerate() {
                gathered[index * length + position] = *element;
            }
        }
        let results = &mut results[..lines * length];
        apply_in_turn(isa, line, length, &gathered[..lines * length], results);
        for position in 0..length {
            for (index, element) in part.across(first, lines, position).iter_mut().enumerate() {
                *element = results[index * length + position];
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Softmax;

impl Line for Softmax {
    #[inline(always)]
    fn apply<T: Target, F: Float, const LINES: usize>(
        self,
        input: Bundle<'_, F, LINES>,
        mut output: Results<'_, F, LINES>,
    ) {
        let greatest = input.greatest();
        output.write(
            input,
            #[inline(always)]
            |x, line| (x - greatest[line]).decay::<T>(),
        );
        let mut factors = output.written().sum(|x, _| x);
        for factor in &mut factors {
            *factor = F::ONE / *factor;
        }
        output.scale(&factors);
    }
}

/// The logarithm of the softmax.
#[derive(Clone, Copy)]
pub(crate) struct LogSoftmax;

impl Line for LogSoftmax {
    #[inline(always)]
    fn apply<T: Target, F: Float, const LINES: usize>(
        self,
        input: Bundle<'_, F, LINES>,
        mut output: Results<'_, F, LINES>,
    ) {
        let greatest = input.greatest();
        let mut logarithms = input.sum(
            #[inline(always)]
            |x, line| (x - greatest[line]).decay::<T>(),
        );
        for sum in &mut logarithms {
            *sum = sum.logarithm();
        }
        output.write(input, |x, line| x - greatest[line] - logarithms[line]);
    }
}

/// 1 at the first of the greatest elements, 0 elsewhere. What is not a number counts as the greatest.
#[derive(Clone, Copy)]
struct Hardmax;

impl Line for Hardmax {
    #[inline(always)]
    fn apply<T: Target, F: Float, const LINES: usize>(
        self,
        input: Bundle<'_, F, LINES>,
        mut output: Results<'_, F, LINES>,
    ) {
        let greatest = input.fold(F::LOWEST, |a, b, _| F::maximum(a, b), F::maximum);
        let is_greatest = |x: F, line: usize| (x == greatest[line]) | x.is_unordered();
        output.write(input, |x, line| if is_greatest(x, line) { F::ONE } else { F::ZERO });
        if output.written().sum(|x, _| x).iter().any(|sum| *sum > F::ONE) {
            let mut is_found = [false; LINES];
            output.change(|x, line| {
                let is_first = (x == F::ONE) & !is_found[line];
                is_found[line] |= is_first;
                if is_first { F::ONE } else { F::ZERO }
            });
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
    fn apply<T: Target, F: Float, const LINES: usize>(
        self,
        input: Bundle<'_, F, LINES>,
        mut output: Results<'_, F, LINES>,
    ) {
        let mut divisors = match self {
            Self::L1 => input.sum(|x, _| x.magnitude()),
            Self::L2 => input.sum(|x, _| x * x),
        };
        for divisor in &mut divisors {
            let norm = if matches!(self, Self::L2) { divisor.root() } else { *divisor };
            *divisor = if norm == F::ZERO { F::ONE } else { norm };
        }
        output.write(input, |x, line| x / divisors[line]);
    }
}
