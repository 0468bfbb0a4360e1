//! `CumSum` and `CumProd`: running sums and products along an axis.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Element, Error, Kernel, KernelFlags, MemoryKind, Operand, Result, dispatch,
    dtype_set, ensure,
};

use super::reduction::{Product, Reduction, Sum};
use crate::device::Cpu;
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::grain;
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Lines, LinesPart, in_parallel};
use crate::kernels::rows::vector::with_isa;

const NUMBERS: DtypeSet = dtype_set(&[
    Dtype::U32,
    Dtype::U64,
    Dtype::I32,
    Dtype::I64,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
]);
/// How many lines are walked side by side: so many that memory is read in long pieces, and not more than stay in the nearest
/// cache.
const SIDE_BY_SIDE: usize = 1024;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![row::<Sum>("CumSum").since(11), row::<Product>("CumProd").since(26)]
}

#[derive(Clone, Copy)]
struct Options {
    is_exclusive: bool,
    is_reverse: bool,
}

impl Options {
    fn new(call: &Call<'_>) -> Result<Self> {
        let flag = |name| call.int(name).map(|flag| flag.unwrap_or(0) != 0);
        Ok(Self { is_exclusive: flag("exclusive")?, is_reverse: flag("reverse")? })
    }
}

fn row<R>(op: &str) -> Kernel<Cpu>
where
    R: Reduction<f32> + Reduction<f64> + Reduction<oarlock_sdk::f16> + Reduction<oarlock_sdk::bf16>,
    R: Reduction<i32> + Reduction<i64> + Reduction<u32> + Reduction<u64>,
{
    let number = Operand::new(NUMBERS).group(1);
    let axis = Operand::new(DtypeSet::I32.union(DtypeSet::I64)).named("axis").rank(0, 1);
    kernel(op, Options::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating + f16 + bf16 + i32 + i64 + u32 + u64, T => run::<T, R>(cpu, *options, operands))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([number.named("x"), axis.on(MemoryKind::HOST)])
    .outputs([number.named("y")])
}

/// The one number in the operand `axis`.
fn axis_operand(operands: &Operands<'_, '_>) -> Result<i64> {
    let axis = operands.call().input(1)?;
    let found = if axis.dtype() == Dtype::I32 {
        operands.read::<i32>(1)?.iter().map(|axis| i64::from(*axis)).collect()
    } else {
        operands.read::<i64>(1)?.to_vec()
    };
    match found[..] {
        [axis] => Ok(axis),
        _ => Err(Error::invalid_argument(format!("expected one axis, found {found:?}"))),
    }
}

fn run<T: Element, R: Reduction<T>>(cpu: &Cpu, options: Options, operands: &Operands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "y", x.dims())?;
    let axis = Axis::new(x.dims(), axis_operand(operands)?)?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    ensure!(
        input.len() == output.len(),
        out_of_range,
        "expected as many elements in `y` as in `x`, found fewer"
    );
    if input.is_empty() {
        return Ok(());
    }
    let lines = Lines::new(output, axis.length, axis.inner);
    in_parallel(cpu, axis.lines(), grain(axis.length), lines, |_, part| {
        with_isa!(cpu.isa(), || walk::<T, R>(input, axis, options, part));
    });
    Ok(())
}

#[inline(always)]
fn walk<T: Element, R: Reduction<T>>(input: &[T], axis: Axis, options: Options, mut part: LinesPart<'_, T>) {
    let place = |step| if options.is_reverse { axis.length - 1 - step } else { step };
    let advance = |partial: &mut R::Partial, element: T| {
        let next = R::add(*partial, element);
        R::element(if options.is_exclusive {
            std::mem::replace(partial, next)
        } else {
            *partial = next;
            next
        })
    };
    let mut partials = vec![R::NONE; SIDE_BY_SIDE.min(axis.inner)];
    for (line, lines) in part.groups(SIDE_BY_SIDE) {
        let start = line / axis.inner * axis.length * axis.inner + line % axis.inner;
        if axis.inner == 1 {
            let (elements, results) = (&input[start..start + axis.length], part.line(line));
            let mut partial = R::NONE;
            for position in (0..axis.length).map(place) {
                results[position] = advance(&mut partial, elements[position]);
            }
            continue;
        }
        partials.fill(R::NONE);
        for position in (0..axis.length).map(place) {
            let elements = &input[start + position * axis.inner..][..lines];
            let results = part.across(line, lines, position);
            for ((partial, element), result) in partials.iter_mut().zip(elements).zip(results) {
                *result = advance(partial, *element);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::f16;

    use crate::kernels::rows::checking::check;
    use crate::testing::{Array, Attribute};

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
                    ("exclusive", Attribute::Int(is_exclusive.into())),
                    ("reverse", Attribute::Int(is_reverse.into())),
                ];
                let (input, axis) = (Array::of(&dims, &values), Array::of(&[], &[1i64]));
                let expected = [Array::of(&dims, &sums)];
                check("CumSum", 14, &attributes, &[Some(&input), Some(&axis)], &expected);
            }
        }
    }
}
