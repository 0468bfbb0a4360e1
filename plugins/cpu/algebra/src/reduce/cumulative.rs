//! `CumSum` and `CumProd`: running sums and products along an axis.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{AxisLines, AxisLinesPart, parallel_for_parts};
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, KernelFlags, MemoryKind, OperandSpec, PluginError, Result,
    dispatch, dtype_set, ensure,
};

use super::reduction::{Product, Reducer, Sum};

const CUMULATIVE_DTYPES: DtypeSet = dtype_set(&[
    Dtype::U32,
    Dtype::U64,
    Dtype::I32,
    Dtype::I64,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
]);
/// Lines that are processed side by side: enough to read memory in long runs, and few enough that the running results stay in L1.
/// 1024 `f32` are 4 KiB.
const LINES_ABREAST: usize = 1024;

pub(super) fn cumulative_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        cumulative_kernel::<Sum>("CumSum").since_version(11),
        cumulative_kernel::<Product>("CumProd").since_version(26),
    ]
}

#[derive(Clone, Copy)]
struct CumulativeOptions {
    is_exclusive: bool,
    is_reverse: bool,
}

impl CumulativeOptions {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let flag = |name| call.int_attribute(name).map(|flag| flag.unwrap_or(0) != 0);
        Ok(Self { is_exclusive: flag("exclusive")?, is_reverse: flag("reverse")? })
    }
}

fn cumulative_kernel<R>(op: &str) -> Kernel<Cpu>
where
    R: Reducer<f32> + Reducer<f64> + Reducer<oarlock_sdk::f16> + Reducer<oarlock_sdk::bf16>,
    R: Reducer<i32> + Reducer<i64> + Reducer<u32> + Reducer<u64>,
{
    let number = OperandSpec::new(CUMULATIVE_DTYPES).with_dtype_group(1);
    let axis = OperandSpec::new(DtypeSet::I32.union(DtypeSet::I64)).with_name("axis").with_rank(0, 1);
    operand_kernel(op, CumulativeOptions::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating + f16 + bf16 + i32 + i64 + u32 + u64, T => run_cumulative::<T, R>(cpu, *options, operands))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([number.with_name("x"), axis.in_memory(MemoryKind::HOST)])
    .with_outputs([number.with_name("y")])
}

/// The one number in the operand `axis`.
fn read_axis(operands: &KernelOperands<'_, '_>) -> Result<i64> {
    let axis = operands.call().input(1)?;
    let found = if axis.dtype() == Dtype::I32 {
        operands.read_input::<i32>(1)?.iter().map(|axis| i64::from(*axis)).collect()
    } else {
        operands.read_input::<i64>(1)?.to_vec()
    };
    match found[..] {
        [axis] => Ok(axis),
        _ => Err(PluginError::invalid_argument(format!("expected one axis, found {found:?}"))),
    }
}

fn run_cumulative<T: Element, R: Reducer<T>>(
    cpu: &Cpu,
    options: CumulativeOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "y", x.dims())?;
    let axis = AxisLayout::new(x.dims(), read_axis(operands)?)?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    ensure!(
        input.len() == output.len(),
        out_of_range,
        "expected as many elements in `y` as in `x`, found fewer"
    );
    if input.is_empty() {
        return Ok(());
    }
    // Threads share out whole lines, so each line is added in one order, however many threads there are.
    let lines = AxisLines::new(output, axis.length, axis.inner);
    parallel_for_parts(cpu, axis.line_count(), grain_for(axis.length), lines, |_, part| {
        with_isa!(cpu.isa(), || accumulate_lines::<T, R>(input, axis, options, part));
    });
    Ok(())
}

#[inline(always)]
fn accumulate_lines<T: Element, R: Reducer<T>>(
    input: &[T],
    axis: AxisLayout,
    options: CumulativeOptions,
    mut part: AxisLinesPart<'_, T>,
) {
    let place = |step| if options.is_reverse { axis.length - 1 - step } else { step };
    // Narrow floats are added in `f32` and rounded once per output, so that rounding errors of 16 bits do not add up.
    let advance = |partial: &mut R::Partial, element: T| {
        let next = R::add_element(*partial, element);
        R::to_element(if options.is_exclusive {
            std::mem::replace(partial, next)
        } else {
            *partial = next;
            next
        })
    };
    // Made once for all groups; no group has more lines.
    let mut partials = vec![R::NONE; LINES_ABREAST.min(axis.inner)];
    for (line, lines) in part.line_groups(LINES_ABREAST) {
        // A group ends where the inner dimension does, so its lines lie side by side from `start` on.
        let start = line / axis.inner * axis.length * axis.inner + line % axis.inner;
        if axis.inner == 1 {
            let (elements, results) = (&input[start..start + axis.length], part.contiguous_line(line));
            // A running sum along a line is one dependency chain: it cannot vectorize without changing the order of additions.
            let mut partial = R::NONE;
            for position in (0..axis.length).map(place) {
                results[position] = advance(&mut partial, elements[position]);
            }
            continue;
        }
        partials.fill(R::NONE);
        for position in (0..axis.length).map(place) {
            // Neighboring lines are independent chains, so a position of all of them is vector code.
            let elements = &input[start + position * axis.inner..][..lines];
            let results = part.lines_at(line, lines, position);
            for ((partial, element), result) in partials.iter_mut().zip(elements).zip(results) {
                *result = advance(partial, *element);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::f16;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn lines_side_by_side_are_added_up_on_their_own_from_either_end() {
        let (outer, length) = (2, 5);
        for inner in [1usize, 3, 1024, 1025, 2500] {
            let element = |at: usize| f16::from_f32((at * 7 % 13) as f32);
            let values: Vec<_> = (0..outer * length * inner).map(element).collect();
            for (is_exclusive, is_reverse) in [(false, false), (false, true), (true, false), (true, true)] {
                let sum = |at: usize| {
                    let (position, line) = (at / inner % length, at - at / inner % length * inner);
                    let steps = (0..length).filter(|step| {
                        (*step == position && !is_exclusive)
                            || (*step != position && (*step > position) == is_reverse)
                    });
                    f16::from_f32(steps.map(|step| values[line + step * inner].to_f32()).sum())
                };
                let sums: Vec<_> = (0..values.len()).map(sum).collect();
                let dims = [outer as i64, length as i64, inner as i64];
                let attributes = [
                    ("exclusive", TestAttribute::Int(is_exclusive.into())),
                    ("reverse", TestAttribute::Int(is_reverse.into())),
                ];
                let (input, axis) =
                    (TestArray::from_values(&dims, &values), TestArray::from_values(&[], &[1i64]));
                let expected = [TestArray::from_values(&dims, &sums)];
                KERNELS.check_kernel("CumSum", 14, &attributes, &[Some(&input), Some(&axis)], &expected);
            }
        }
    }
}
