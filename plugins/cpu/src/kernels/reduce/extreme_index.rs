//! `ArgMax` and `ArgMin`: where the greatest or least element of each line is. What is not a number counts as both, as in NumPy.

use oarlock_sdk::{Call, DtypeSet, Kernel, KernelFlags, Operand, Result, dispatch, ensure, family};

use super::reduction::{Maximum, Minimum, Reduction};
use super::shape::expect_reduced;
use crate::device::Cpu;
use crate::kernels::rows::axis::{self, Axis};
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Number};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::vector::with_isa;

const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::I16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![row::<false>("ArgMax"), row::<true>("ArgMin")]
}

struct Options {
    axis: i64,
    keeps_dims: bool,
    takes_last: bool,
}

impl Options {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            axis: call.int("axis")?.unwrap_or(0),
            keeps_dims: call.int("keepdims")?.unwrap_or(1) != 0,
            takes_last: call.int("select_last_index")?.unwrap_or(0) != 0,
        })
    }
}

fn row<const LEAST: bool>(op: &str) -> Kernel<Cpu> {
    kernel(op, Options::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => run::<T, LEAST>(cpu, options, operands))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([Operand::new(NUMBERS).named("data")])
    .outputs([Operand::new(DtypeSet::I64).named("reduced")])
}

fn run<T: Number, const LEAST: bool>(
    cpu: &Cpu,
    options: &Options,
    operands: &Operands<'_, '_>,
) -> Result<()> {
    let (data, reduced) = (operands.call().input(0)?, operands.call().output(0)?);
    let is_reduced = axis::mask(&[options.axis], data.dims().len())?;
    expect_reduced(data.dims(), &is_reduced, options.keeps_dims, reduced.dims())?;
    let axis = Axis::new(data.dims(), options.axis)?;
    let (input, output) = (operands.read::<T>(0)?, operands.write::<i64>(0)?);
    ensure!(
        axis.length > 0 || output.is_empty(),
        invalid_argument,
        "expected at least one element along the axis, found the shape {:?}",
        data.dims()
    );
    let count = output.len();
    in_parallel(cpu, count, grain(axis.length), Rows::new(output, 1), |begin, part| {
        with_isa!(cpu.isa(), || {
            if axis.inner == 1 {
                for (line, place) in input[begin * axis.length..].chunks(axis.length).zip(part) {
                    *place = place_in_line::<T, LEAST>(line, options.takes_last) as i64;
                }
            } else {
                across::<T, LEAST>(input, axis, options.takes_last, begin, part);
            }
        });
    });
    Ok(())
}

/// Finds the extreme, then where it is: both are loops without a dependency from one element to the next.
#[inline(always)]
fn place_in_line<T: Number, const LEAST: bool>(line: &[T], takes_last: bool) -> usize {
    let extreme = if LEAST {
        <Minimum as Reduction<T>>::of_slice(line)
    } else {
        <Maximum as Reduction<T>>::of_slice(line)
    };
    let is_extreme = |element: &T| {
        let element = element.exact();
        if extreme.is_unordered() { element.is_unordered() } else { element == extreme }
    };
    let place = if takes_last { line.iter().rposition(is_extreme) } else { line.iter().position(is_extreme) };
    place.unwrap_or(0)
}

/// Several lines that lie side by side, element by element.
#[inline(always)]
fn across<T: Number, const LEAST: bool>(
    input: &[T],
    axis: Axis,
    takes_last: bool,
    begin: usize,
    places: &mut [i64],
) {
    for (index, place) in places.iter_mut().enumerate() {
        let item = begin + index;
        let start = item / axis.inner * axis.length * axis.inner + item % axis.inner;
        let mut best = input[start].exact();
        *place = 0;
        for position in 1..axis.length {
            let element = input[start + position * axis.inner].exact();
            let is_beyond = if LEAST { element < best } else { element > best };
            let is_same = element == best || element.is_unordered() && best.is_unordered();
            let is_better =
                is_beyond && !best.is_unordered() || element.is_unordered() && !best.is_unordered();
            if is_better || takes_last && is_same {
                (best, *place) = (element, position as i64);
            }
        }
    }
}
