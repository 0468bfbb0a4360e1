//! Normalizations of lines along one axis: `Softmax`, `LogSoftmax`, `Hardmax` and `LpNormalization`.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::{ComputeFloat, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{Isa, SimdTarget};
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::line_bundle::{
    BUNDLE_WIDTH, BundleResults, LineBundle, MAX_SHORT_LINE, are_lines_short, fills_registers,
    for_transposed_blocks, is_transposable, transpose_back,
};
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{AxisLines, AxisLinesPart, OutputRows, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{Kernel, KernelCall, KernelFlags, PluginError, Result, dispatch};

use super::L1_ELEMENTS;
use super::real_operand;

/// Adjacent lines gathered together: 16 of f32 use a whole cache line per step.
const GATHERED_LINES: usize = 16;
/// The most consecutive lines normalized together.
const CONSECUTIVE_LINES: usize = 8;

pub(super) fn axis_normalization_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = Vec::new();
    kernels.extend(versioned_kernels("Softmax", SoftmaxLine));
    kernels.extend(versioned_kernels("LogSoftmax", LogSoftmaxLine));
    kernels.extend(versioned_kernels("Hardmax", HardmaxLine));
    let norm = operand_kernel("LpNormalization", lp_norm_plan, |cpu, (axis, norm), operands| {
        run_normalization(cpu, NormalizedAxes::Axis(*axis), *norm, operands)
    });
    kernels.push(declare_operands(norm, "input", "output"));
    kernels
}

/// The lines of a normalization: along one axis, or over all dimensions from one on.
#[derive(Clone, Copy)]
enum NormalizedAxes {
    Axis(i64),
    AllFrom(i64),
}

/// A normalization of lines.
pub(crate) trait LineNormalization: Copy + Send + Sync + 'static {
    fn normalize_lines<T: SimdTarget, F: ComputeFloat, const LINES: usize>(
        self,
        input: LineBundle<'_, F, LINES>,
        output: BundleResults<'_, F, LINES>,
    );
}

/// The kernel of the versions that flatten dimensions, and the kernel of those with one axis.
fn versioned_kernels<L: LineNormalization>(op: &'static str, line: L) -> [Kernel<Cpu>; 2] {
    let flattened = operand_kernel(
        op,
        |call| Ok(NormalizedAxes::AllFrom(call.int_attribute("axis")?.unwrap_or(1))),
        move |cpu, along, operands| run_normalization(cpu, *along, line, operands),
    );
    let one = operand_kernel(
        op,
        |call| Ok(NormalizedAxes::Axis(call.int_attribute("axis")?.unwrap_or(-1))),
        move |cpu, along, operands| run_normalization(cpu, *along, line, operands),
    );
    [
        declare_operands(flattened, "input", "output").until_version(12),
        declare_operands(one, "input", "output").since_version(13),
    ]
}

fn declare_operands(kernel: Kernel<Cpu>, input: &'static str, output: &'static str) -> Kernel<Cpu> {
    kernel
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([real_operand(input)])
        .with_outputs([real_operand(output)])
}

fn run_normalization<L: LineNormalization>(
    cpu: &Cpu,
    along: NormalizedAxes,
    line: L,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", input.dims())?;
    let axis = match along {
        // A scalar is a line of one element.
        NormalizedAxes::Axis(-1 | 0) if input.dims().is_empty() => {
            AxisLayout { outer: 1, length: 1, inner: 1 }
        }
        NormalizedAxes::Axis(axis) => AxisLayout::new(input.dims(), axis)?,
        // Before version 13 the input is seen as two dimensions; if nothing is left for the second, each element is a line.
        NormalizedAxes::AllFrom(axis) if axis == input.dims().len() as i64 || input.dims().is_empty() => {
            AxisLayout { outer: input.element_count()?, length: 1, inner: 1 }
        }
        NormalizedAxes::AllFrom(axis) => AxisLayout::from_flattened(input.dims(), axis)?,
    };
    dispatch!(input.dtype(), floating_and_half + bf16, T => {
        normalize_axis::<T, L>(cpu, axis, line, operands.read_input(0)?, operands.write_output(0)?);
        Ok(())
    })
}

/// Normalizes all lines along an axis.
pub(crate) fn normalize_axis<T: FloatElement, L: LineNormalization>(
    cpu: &Cpu,
    axis: AxisLayout,
    line: L,
    input: &[T],
    output: &mut [T],
) {
    // Below, lengths divide, and they may be 0 here.
    if output.is_empty() {
        return;
    }
    if const { is_transposable::<T>() } && are_lines_short(axis, MAX_SHORT_LINE) && !fills_registers(axis) {
        return normalize_short_lines(cpu, axis, line, input, output);
    }
    if axis.inner > 1 {
        let lines = AxisLines::new(output, axis.length, axis.inner);
        return parallel_for_parts(cpu, axis.line_count(), grain_for(axis.length), lines, |_, part| {
            // With a whole tile of neighbors, vectors run across lines. With fewer, lines are gathered, and vectors run along them.
            if const { is_transposable::<T>() } && axis.inner >= BUNDLE_WIDTH {
                return normalize_adjacent(cpu.isa(), axis, line, input, part);
            }
            normalize_gathered(cpu.isa(), axis, line, input, part);
        });
    }
    parallel_for_parts(
        cpu,
        axis.outer,
        grain_for(axis.length),
        OutputRows::new(output, axis.length),
        |begin, part| {
            let input = &input[begin * axis.length..][..part.len()];
            normalize_consecutive(cpu.isa(), line, axis.length, input, part);
        },
    );
}

/// Normalizes consecutive lines.
fn normalize_consecutive<T: FloatElement, L: LineNormalization>(
    isa: Isa,
    line: L,
    length: usize,
    input: &[T],
    output: &mut [T],
) {
    // Narrow floats are widened and rounded in portions that stay in L1 in between.
    let near = (L1_ELEMENTS / length).max(1) * length;
    for (output, input) in output.chunks_mut(near).zip(input.chunks(near)) {
        T::write_floats(isa, output, |output| {
            normalize_floats(isa, line, length, &T::to_floats(isa, input), output);
        });
    }
}

/// The same, in the compute type.
fn normalize_floats<F: ComputeFloat, L: LineNormalization>(
    isa: Isa,
    line: L,
    length: usize,
    input: &[F],
    output: &mut [F],
) {
    with_isa!(isa, Level => || normalize_groups::<Level, F, L>(line, length, input, output));
}

#[inline(always)]
fn normalize_groups<I: SimdTarget, F: ComputeFloat, L: LineNormalization>(
    line: L,
    length: usize,
    input: &[F],
    output: &mut [F],
) {
    // The normalization takes several passes over these lines, which stay in L1 meanwhile.
    let width = (L1_ELEMENTS / length).clamp(1, CONSECUTIVE_LINES) * length;
    for (output, input) in output.chunks_mut(width).zip(input.chunks(width)) {
        let (input, output) =
            (LineBundle::from_consecutive(input, length), BundleResults::from_consecutive(output, length));
        line.normalize_lines::<I, F, CONSECUTIVE_LINES>(input, output);
    }
}

/// Transposes lines of a few elements to make them adjacent, so that vectors run across lines, and transposes the results back.
fn normalize_short_lines<T: FloatElement, L: LineNormalization>(
    cpu: &Cpu,
    axis: AxisLayout,
    line: L,
    input: &[T],
    output: &mut [T],
) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    parallel_for_parts(cpu, axis.outer, grain_for(block), OutputRows::new(output, block), |begin, part| {
        let mut results = vec![[T::from_float(T::Float::ZERO); BUNDLE_WIDTH]; block];
        for_transposed_blocks(
            isa,
            &input[begin * block..][..part.len()],
            block,
            |first, tile: &[[T; BUNDLE_WIDTH]]| {
                normalize_tile(isa, line, axis.inner, tile, &mut results);
                transpose_back(isa, &results, first, part);
            },
        );
    });
}

/// Normalizes adjacent lines of a tile, whose consecutive elements are `step` tiles apart.
fn normalize_tile<T: FloatElement, L: LineNormalization>(
    isa: Isa,
    line: L,
    step: usize,
    tile: &[[T; BUNDLE_WIDTH]],
    results: &mut [[T; BUNDLE_WIDTH]],
) {
    T::write_floats(isa, results.as_flattened_mut(), |results| {
        let floats = T::to_floats(isa, tile.as_flattened());
        normalize_float_tile(isa, line, step, floats.as_chunks().0, results.as_chunks_mut().0);
    });
}

/// The same, in the compute type.
fn normalize_float_tile<F: ComputeFloat, L: LineNormalization>(
    isa: Isa,
    line: L,
    step: usize,
    tile: &[[F; BUNDLE_WIDTH]],
    results: &mut [[F; BUNDLE_WIDTH]],
) {
    with_isa!(isa, Level => || {
        for start in 0..step {
            line.normalize_lines::<Level, F, BUNDLE_WIDTH>(
                LineBundle::new(&tile[start..], step),
                BundleResults::new(&mut results[start..], step),
            );
        }
    });
}

/// Normalizes lines, at least a tile of which are adjacent.
fn normalize_adjacent<T: FloatElement, L: LineNormalization>(
    isa: Isa,
    axis: AxisLayout,
    line: L,
    input: &[T],
    mut part: AxisLinesPart<'_, T>,
) {
    let AxisLayout { length, inner, .. } = axis;
    let mut tile = vec![[T::from_float(T::Float::ZERO); BUNDLE_WIDTH]; length];
    let mut results = tile.clone();
    for (first, lines) in part.line_groups(BUNDLE_WIDTH) {
        let start = first / inner * length * inner + first % inner;
        for (elements, input) in tile.iter_mut().zip(input[start..].chunks(inner)) {
            // Lanes past the last line keep what was there before, and their results are not stored.
            elements[..lines].copy_from_slice(&input[..lines]);
        }
        normalize_tile(isa, line, 1, &tile, &mut results);
        for (position, results) in results.iter().enumerate() {
            part.lines_at(first, lines, position).copy_from_slice(&results[..lines]);
        }
    }
}

/// Gathers each line, normalizes it, and scatters the result.
fn normalize_gathered<T: FloatElement, L: LineNormalization>(
    isa: Isa,
    axis: AxisLayout,
    line: L,
    input: &[T],
    mut part: AxisLinesPart<'_, T>,
) {
    let AxisLayout { length, inner, .. } = axis;
    let mut gathered = vec![T::from_float(T::Float::ZERO); length * GATHERED_LINES];
    let mut results = gathered.clone();
    for (first, lines) in part.line_groups(GATHERED_LINES) {
        let start = first / inner * length * inner + first % inner;
        for position in 0..length {
            for (index, element) in input[start + position * inner..][..lines].iter().enumerate() {
                gathered[index * length + position] = *element;
            }
        }
        let results = &mut results[..lines * length];
        normalize_consecutive(isa, line, length, &gathered[..lines * length], results);
        for position in 0..length {
            for (index, element) in part.lines_at(first, lines, position).iter_mut().enumerate() {
                *element = results[index * length + position];
            }
        }
    }
}

#[derive(Clone, Copy)]
struct SoftmaxLine;

impl LineNormalization for SoftmaxLine {
    #[inline(always)]
    fn normalize_lines<T: SimdTarget, F: ComputeFloat, const LINES: usize>(
        self,
        input: LineBundle<'_, F, LINES>,
        mut output: BundleResults<'_, F, LINES>,
    ) {
        // Relative to the maximum, no exponential overflows. NaN is skipped here, but reaches all results through the sum.
        let greatest = input.max_of_lines();
        // No difference is above 0, so the cheaper exponential is enough.
        output.write_mapped(
            input,
            #[inline(always)]
            |x, line| (x - greatest[line]).exp_of_negative::<T>(),
        );
        // One division per line instead of one per element, for one more rounding.
        let mut factors = output.as_bundle().sum_lines(|x, _| x);
        for factor in &mut factors {
            *factor = F::ONE / *factor;
        }
        output.scale_lines(&factors);
    }
}

/// The logarithm of the softmax.
#[derive(Clone, Copy)]
pub(crate) struct LogSoftmaxLine;

impl LineNormalization for LogSoftmaxLine {
    #[inline(always)]
    fn normalize_lines<T: SimdTarget, F: ComputeFloat, const LINES: usize>(
        self,
        input: LineBundle<'_, F, LINES>,
        mut output: BundleResults<'_, F, LINES>,
    ) {
        // A logarithm of the softmax itself would be -∞ where the softmax underflows.
        let greatest = input.max_of_lines();
        let mut logarithms = input.sum_lines(
            #[inline(always)]
            |x, line| (x - greatest[line]).exp_of_negative::<T>(),
        );
        for sum in &mut logarithms {
            *sum = sum.logarithm();
        }
        // The maximum goes first: if it is large, its sum with the logarithm would round the logarithm away.
        output.write_mapped(input, |x, line| x - greatest[line] - logarithms[line]);
    }
}

/// 1 at the first of the greatest elements, 0 elsewhere. NaN counts as the greatest.
#[derive(Clone, Copy)]
struct HardmaxLine;

impl LineNormalization for HardmaxLine {
    #[inline(always)]
    fn normalize_lines<T: SimdTarget, F: ComputeFloat, const LINES: usize>(
        self,
        input: LineBundle<'_, F, LINES>,
        mut output: BundleResults<'_, F, LINES>,
    ) {
        let greatest = input.fold_lines(F::LOWEST, |a, b, _| F::maximum(a, b), F::maximum);
        let is_greatest = |x: F, line: usize| (x == greatest[line]) | x.is_nan();
        output.write_mapped(input, |x, line| if is_greatest(x, line) { F::ONE } else { F::ZERO });
        // Equal maxima are rare, so all but the first are only cleared where some line has several.
        if output.as_bundle().sum_lines(|x, _| x).iter().any(|sum| *sum > F::ONE) {
            let mut is_found = [false; LINES];
            output.map_in_place(|x, line| {
                let is_first = (x == F::ONE) & !is_found[line];
                is_found[line] |= is_first;
                if is_first { F::ONE } else { F::ZERO }
            });
        }
    }
}

/// Divides by the sum of magnitudes or by the root of the sum of squares. Zeros stay zeros.
#[derive(Clone, Copy)]
enum LpNormLine {
    L1,
    L2,
}

fn lp_norm_plan(call: &KernelCall<'_>) -> Result<(i64, LpNormLine)> {
    let norm = match call.int_attribute("p")?.unwrap_or(2) {
        1 => LpNormLine::L1,
        2 => LpNormLine::L2,
        p => return Err(PluginError::invalid_argument(format!("expected `p` to be 1 or 2, found {p}"))),
    };
    Ok((call.int_attribute("axis")?.unwrap_or(-1), norm))
}

impl LineNormalization for LpNormLine {
    #[inline(always)]
    fn normalize_lines<T: SimdTarget, F: ComputeFloat, const LINES: usize>(
        self,
        input: LineBundle<'_, F, LINES>,
        mut output: BundleResults<'_, F, LINES>,
    ) {
        let mut divisors = match self {
            Self::L1 => input.sum_lines(|x, _| x.magnitude()),
            Self::L2 => input.sum_lines(|x, _| x * x),
        };
        for divisor in &mut divisors {
            let norm = if matches!(self, Self::L2) { divisor.square_root() } else { *divisor };
            *divisor = if norm == F::ZERO { F::ONE } else { norm };
        }
        output.write_mapped(input, |x, line| x / divisors[line]);
    }
}
