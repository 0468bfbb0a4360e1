//! `ArgMax` and `ArgMin`: where the greatest or least element of each line is. What is not a number counts as both, as in NumPy.

use oarlock_sdk::{Call, DtypeSet, Kernel, KernelFlags, Operand, Result, dispatch, ensure, family};

use super::reduction::{Maximum, Minimum, Reduction};
use super::shape::expect_reduced;
use crate::device::Cpu;
use crate::kernels::rows::axis::{self, Axis};
use crate::kernels::rows::bundle::{SHORT, WIDTH, are_short, are_turned, turn_back, turned};
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

/// How many lines that lie side by side are looked at together, at least.
const SIDE_BY_SIDE: usize = 8;
/// Elements that are looked at together for the extreme.
const BLOCK: usize = 64;
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
    if const { are_turned::<T>() } && axis.inner < SIDE_BY_SIDE && are_short(axis, SHORT) {
        short_lines::<T, LEAST>(cpu, axis, options.takes_last, input, output);
        return Ok(());
    }
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

/// Lines of a few elements are turned to lie side by side.
fn short_lines<T: Number, const LEAST: bool>(
    cpu: &Cpu,
    axis: Axis,
    takes_last: bool,
    input: &[T],
    output: &mut [i64],
) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    let side_by_side = Axis { outer: 1, length: axis.length, inner: axis.inner * WIDTH };
    in_parallel(cpu, axis.outer, grain(block), Rows::new(output, axis.inner), |begin, part| {
        let mut found = vec![[0; WIDTH]; axis.inner];
        turned(
            isa,
            &input[begin * block..][..part.len() * axis.length],
            block,
            |first, tile: &[[T; WIDTH]]| {
                with_isa!(isa, || {
                    let tile = tile.as_flattened();
                    across::<T, LEAST>(tile, side_by_side, takes_last, 0, found.as_flattened_mut());
                });
                turn_back(isa, &found, first, part);
            },
        );
    });
}

/// Finds the extreme, then the block it is in: both are loops without a dependency from one element to the next.
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
    let has_extreme = |block: &[T]| block.iter().fold(false, |any, element| any | is_extreme(element));
    let mut blocks = line.chunks(BLOCK);
    let block = if takes_last { blocks.rposition(has_extreme) } else { blocks.position(has_extreme) };
    let start = block.unwrap_or(0) * BLOCK;
    let block = &line[start..line.len().min(start + BLOCK)];
    let place =
        if takes_last { block.iter().rposition(is_extreme) } else { block.iter().position(is_extreme) };
    start + place.unwrap_or(0)
}

/// Lines that lie side by side, many at a time: their extremes and places stay in registers.
#[inline(always)]
fn across<T: Number, const LEAST: bool>(
    input: &[T],
    axis: Axis,
    takes_last: bool,
    begin: usize,
    mut places: &mut [i64],
) {
    let mut item = begin;
    while !places.is_empty() {
        let (outer, column) = (item / axis.inner, item % axis.inner);
        let input = &input[outer * axis.length * axis.inner + column..];
        let lines = match (axis.inner - column).min(places.len()) {
            64.. => 64,
            SIDE_BY_SIDE.. => SIDE_BY_SIDE,
            _ => 1,
        };
        let (found, rest) = places.split_at_mut(lines);
        match lines {
            64 => places_in::<T, LEAST, 64>(input, axis, takes_last, found),
            SIDE_BY_SIDE => places_in::<T, LEAST, SIDE_BY_SIDE>(input, axis, takes_last, found),
            _ => places_in::<T, LEAST, 1>(input, axis, takes_last, found),
        }
        (item, places) = (item + lines, rest);
    }
}

#[inline(always)]
fn places_in<T: Number, const LEAST: bool, const LINES: usize>(
    input: &[T],
    axis: Axis,
    takes_last: bool,
    places: &mut [i64],
) {
    let Some(places) = places.first_chunk_mut::<LINES>() else { return };
    if takes_last {
        places_across::<T, LEAST, true, LINES>(input, axis, places);
    } else {
        places_across::<T, LEAST, false, LINES>(input, axis, places);
    }
}

#[inline(always)]
fn places_across<T: Number, const LEAST: bool, const LAST: bool, const LINES: usize>(
    input: &[T],
    axis: Axis,
    places: &mut [i64; LINES],
) {
    let mut best: [T::Exact; LINES] = std::array::from_fn(|line| input[line].exact());
    let mut found = [0; LINES];
    for position in 1..axis.length {
        let Some((elements, _)) = input[position * axis.inner..].split_first_chunk::<LINES>() else { return };
        for line in 0..LINES {
            let (element, so_far) = (elements[line].exact(), best[line]);
            // What is not a number is neither less nor greater.
            let is_better = if LAST {
                (if LEAST { element <= so_far } else { element >= so_far }) | element.is_unordered()
            } else {
                (if LEAST { element < so_far } else { element > so_far })
                    | (element.is_unordered() & !so_far.is_unordered())
            };
            best[line] = if is_better { element } else { so_far };
            found[line] = if is_better { position as i64 } else { found[line] };
        }
    }
    *places = found;
}
