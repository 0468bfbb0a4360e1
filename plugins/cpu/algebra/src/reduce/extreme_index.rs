//! `ArgMax` and `ArgMin`: the position of the largest or smallest element of each line. NaN counts as both, as in NumPy.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::axis::{self, AxisLayout};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::line_bundle::{
    BUNDLE_WIDTH, MAX_SHORT_LINE, are_lines_short, for_transposed_blocks, is_transposable, transpose_back,
};
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result, dispatch, ensure, family};

use super::reduction::{Maximum, Minimum, Reducer};
use super::shape::expect_reduced_dims;

const ARG_EXTREME_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::I16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

/// The minimum number of neighboring lines that are processed together: 8 `f32` fill a ymm register.
const LINES_ABREAST: usize = 8;
/// Elements that are searched together for the extreme.
const SCAN_BLOCK: usize = 64;
/// Elements whose extreme is found at once. Of a long line, only the chunk with the extreme is read again, to find its place.
const LINE_CHUNK: usize = 2048;
/// Elements of a long line that a thread searches, where there are fewer lines than threads.
const LINE_PIECE: usize = 1 << 16;

pub(super) fn arg_extreme_kernels() -> Vec<Kernel<Cpu>> {
    vec![arg_extreme_kernel::<false>("ArgMax"), arg_extreme_kernel::<true>("ArgMin")]
}

struct ArgExtremeOptions {
    axis: i64,
    keeps_dims: bool,
    takes_last: bool,
}

impl ArgExtremeOptions {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            axis: call.int_attribute("axis")?.unwrap_or(0),
            keeps_dims: call.int_attribute("keepdims")?.unwrap_or(1) != 0,
            takes_last: call.int_attribute("select_last_index")?.unwrap_or(0) != 0,
        })
    }
}

fn arg_extreme_kernel<const LEAST: bool>(op: &str) -> Kernel<Cpu> {
    operand_kernel(op, ArgExtremeOptions::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64, T => run_arg_extreme::<T, LEAST>(cpu, options, operands))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([OperandSpec::new(ARG_EXTREME_DTYPES).with_name("data")])
    .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("reduced")])
}

fn run_arg_extreme<T: ComputeElement, const LEAST: bool>(
    cpu: &Cpu,
    options: &ArgExtremeOptions,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (data, reduced) = (operands.call().input(0)?, operands.call().output(0)?);
    let is_reduced = axis::axes_mask(&[options.axis], data.dims().len())?;
    expect_reduced_dims(data.dims(), &is_reduced, options.keeps_dims, reduced.dims())?;
    let axis = AxisLayout::new(data.dims(), options.axis)?;
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<i64>(0)?);
    // No index can stand for an empty line; NumPy refuses it too.
    ensure!(
        axis.length > 0 || output.is_empty(),
        invalid_argument,
        "expected at least one element along the axis, found the shape {:?}",
        data.dims()
    );
    if const { is_transposable::<T>() } && axis.inner < LINES_ABREAST && are_lines_short(axis, MAX_SHORT_LINE)
    {
        // With at least `LINES_ABREAST` neighbors, `find_in_lines` reads lines side by side in place and needs no transpose.
        find_in_short_lines::<T, LEAST>(cpu, axis, options.takes_last, input, output);
        return Ok(());
    }
    let count = output.len();
    if axis.inner == 1 && count < cpu.worker_count() && axis.length >= 2 * LINE_PIECE {
        for (line, place) in input.chunks(axis.length).zip(output) {
            *place = find_in_pieces::<T, LEAST>(cpu, line, options.takes_last)? as i64;
        }
        return Ok(());
    }
    parallel_for_parts(cpu, count, grain_for(axis.length), OutputRows::new(output, 1), |begin, part| {
        with_isa!(cpu.isa(), || {
            if axis.inner == 1 {
                for (line, place) in input[begin * axis.length..].chunks(axis.length).zip(part) {
                    *place = find_in_line::<T, LEAST>(line, options.takes_last) as i64;
                }
            } else {
                find_in_lines::<T, LEAST>(input, axis, options.takes_last, begin, part);
            }
        });
    });
    Ok(())
}

/// Transposes lines of a few elements, so that they lie side by side.
fn find_in_short_lines<T: ComputeElement, const LEAST: bool>(
    cpu: &Cpu,
    axis: AxisLayout,
    takes_last: bool,
    input: &[T],
    output: &mut [i64],
) {
    let (block, isa) = (axis.length * axis.inner, cpu.isa());
    // Transposed, each of the `inner` lines of a block has become `BUNDLE_WIDTH` neighbors.
    let side_by_side = AxisLayout { outer: 1, length: axis.length, inner: axis.inner * BUNDLE_WIDTH };
    parallel_for_parts(
        cpu,
        axis.outer,
        grain_for(block),
        OutputRows::new(output, axis.inner),
        |begin, part| {
            let mut found = vec![[0; BUNDLE_WIDTH]; axis.inner];
            for_transposed_blocks(
                isa,
                &input[begin * block..][..part.len() * axis.length],
                block,
                |first, tile: &[[T; BUNDLE_WIDTH]]| {
                    with_isa!(isa, || {
                        let tile = tile.as_flattened();
                        find_in_lines::<T, LEAST>(
                            tile,
                            side_by_side,
                            takes_last,
                            0,
                            found.as_flattened_mut(),
                        );
                    });
                    transpose_back(isa, &found, first, part);
                },
            );
        },
    );
}

/// Finds the extreme of a line with several threads.
fn find_in_pieces<T: ComputeElement, const LEAST: bool>(
    cpu: &Cpu,
    line: &[T],
    takes_last: bool,
) -> Result<usize> {
    let mut places = try_filled_vec(0, line.len().div_ceil(LINE_PIECE))?;
    let count = places.len();
    let outputs = OutputRows::new(&mut places, 1);
    parallel_for_parts(cpu, count, grain_for(LINE_PIECE), outputs, |begin, part| {
        with_isa!(cpu.isa(), || {
            for (piece, place) in line.chunks(LINE_PIECE).skip(begin).zip(part) {
                *place = find_in_line::<T, LEAST>(piece, takes_last);
            }
        });
    });
    let places = places.into_iter().enumerate().map(|(piece, place)| piece * LINE_PIECE + place);
    let element = |place: usize| line[place].to_accumulator();
    let best = places.reduce(|best, place| {
        if is_better::<_, LEAST>(element(place), element(best), takes_last) { place } else { best }
    });
    Ok(best.unwrap_or(0))
}

/// True if an element takes the place of the best one before it.
#[inline(always)]
fn is_better<E: ArithmeticElement, const LEAST: bool>(element: E, so_far: E, takes_last: bool) -> bool {
    // `|` and `&` instead of short-circuit operators, whose branches would keep loops from vectorizing.
    // NaN is neither less nor greater.
    if takes_last {
        (if LEAST { element <= so_far } else { element >= so_far }) | element.is_nan()
    } else {
        (if LEAST { element < so_far } else { element > so_far }) | (element.is_nan() & !so_far.is_nan())
    }
}

/// Finds the chunk with the extreme, then the block in it, and then the element: no loop has a dependency from one element to the
/// next, so all vectorize, and only one chunk is read twice.
#[inline(always)]
fn find_in_line<T: ComputeElement, const LEAST: bool>(line: &[T], takes_last: bool) -> usize {
    let extreme_of = |chunk: &[T]| {
        if LEAST {
            <Minimum as Reducer<T>>::reduce_slice(chunk)
        } else {
            <Maximum as Reducer<T>>::reduce_slice(chunk)
        }
    };
    let mut chunks = line.chunks(LINE_CHUNK).enumerate();
    let Some((_, mut best_chunk)) = chunks.next() else { return 0 };
    let (mut start, mut extreme) = (0, extreme_of(best_chunk));
    for (index, chunk) in chunks {
        let found = extreme_of(chunk);
        if is_better::<_, LEAST>(found, extreme, takes_last) {
            (start, extreme, best_chunk) = (index * LINE_CHUNK, found, chunk);
        }
    }
    // These reducers keep NaN, so the extreme is NaN if any element is. NaN equals nothing and is found by another test.
    let is_extreme = |element: &T| {
        let element = element.to_accumulator();
        if extreme.is_nan() { element.is_nan() } else { element == extreme }
    };
    // `|` instead of `any`: without an early exit, a block is compared in whole registers.
    let has_extreme = |block: &[T]| block.iter().fold(false, |any, element| any | is_extreme(element));
    let mut blocks = best_chunk.chunks(SCAN_BLOCK);
    let block = if takes_last { blocks.rposition(has_extreme) } else { blocks.position(has_extreme) };
    let first = block.unwrap_or(0) * SCAN_BLOCK;
    let block = &best_chunk[first..best_chunk.len().min(first + SCAN_BLOCK)];
    let place =
        if takes_last { block.iter().rposition(is_extreme) } else { block.iter().position(is_extreme) };
    start + first + place.unwrap_or(0)
}

/// Neighboring lines, many at a time: their extremes and positions stay in registers.
#[inline(always)]
fn find_in_lines<T: ComputeElement, const LEAST: bool>(
    input: &[T],
    axis: AxisLayout,
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
            LINES_ABREAST.. => LINES_ABREAST,
            _ => 1,
        };
        let (found, rest) = places.split_at_mut(lines);
        match lines {
            64 => find_in_bundle::<T, LEAST, 64>(input, axis, takes_last, found),
            LINES_ABREAST => find_in_bundle::<T, LEAST, LINES_ABREAST>(input, axis, takes_last, found),
            _ => find_in_bundle::<T, LEAST, 1>(input, axis, takes_last, found),
        }
        (item, places) = (item + lines, rest);
    }
}

#[inline(always)]
fn find_in_bundle<T: ComputeElement, const LEAST: bool, const LINES: usize>(
    input: &[T],
    axis: AxisLayout,
    takes_last: bool,
    places: &mut [i64],
) {
    let Some(places) = places.first_chunk_mut::<LINES>() else { return };
    if takes_last {
        find_in_columns::<T, LEAST, true, LINES>(input, axis, places);
    } else {
        find_in_columns::<T, LEAST, false, LINES>(input, axis, places);
    }
}

#[inline(always)]
fn find_in_columns<T: ComputeElement, const LEAST: bool, const LAST: bool, const LINES: usize>(
    input: &[T],
    axis: AxisLayout,
    places: &mut [i64; LINES],
) {
    let mut best: [T::Accumulator; LINES] = std::array::from_fn(|line| input[line].to_accumulator());
    let mut found = [0; LINES];
    for position in 1..axis.length {
        let Some((elements, _)) = input[position * axis.inner..].split_first_chunk::<LINES>() else { return };
        for line in 0..LINES {
            let (element, so_far) = (elements[line].to_accumulator(), best[line]);
            let is_better = is_better::<_, LEAST>(element, so_far, LAST);
            best[line] = if is_better { element } else { so_far };
            found[line] = if is_better { position as i64 } else { found[line] };
        }
    }
    *places = found;
}
