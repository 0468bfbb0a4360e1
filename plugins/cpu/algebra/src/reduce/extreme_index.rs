//! `ArgMax` and `ArgMin`: the position of the largest or smallest element of each line. NaN counts as both, as in NumPy.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::axis::{self, AxisLayout};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::line_bundle::{
    BUNDLE_WIDTH, MAX_SHORT_LINE, are_lines_short, for_transposed_blocks, is_transposable, transpose_back,
};
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result, dispatch, ensure, family};

use super::reduction::{Maximum, Minimum, Reducer, with_isa_of};
use super::shape::expect_reduced_dims;
use super::traversal::fold_lines;

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
/// Lines whose extremes are found before their places are.
const LINE_GROUP: usize = 64;
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
        // With at least `LINES_ABREAST` neighbors, `find_across_lines` reads lines side by side in place and needs no transpose.
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
    let grain = grain_for(axis.length);
    parallel_for_parts(cpu, count, grain, OutputRows::new(output, 1), |begin, part| match axis.inner {
        1 => {
            let lines = &input[begin * axis.length..];
            find_in_lines::<T, LEAST>(cpu.isa(), lines, axis.length, options.takes_last, part);
        }
        _ => find_across_lines::<T, LEAST>(cpu.isa(), input, axis, options.takes_last, begin, part),
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
                    let places = found.as_flattened_mut();
                    find_across_lines::<T, LEAST>(
                        isa,
                        tile.as_flattened(),
                        side_by_side,
                        takes_last,
                        0,
                        places,
                    );
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
        for (piece, place) in line.chunks(LINE_PIECE).skip(begin).zip(part) {
            *place = find_in_long_line::<T, LEAST>(cpu.isa(), piece, takes_last);
        }
    });
    let places = places.into_iter().enumerate().map(|(piece, place)| piece * LINE_PIECE + place);
    let element = |place: usize| line[place].to_accumulator();
    let best = places.reduce(|best, place| {
        if is_better::<_, LEAST>(element(place), element(best), takes_last) { place } else { best }
    });
    Ok(best.unwrap_or(0))
}

/// True if an element takes the place of the best one of those that were read before it. With `or_as_good`, an equal one does too.
#[inline(always)]
fn is_better<E: ArithmeticElement, const LEAST: bool>(element: E, so_far: E, or_as_good: bool) -> bool {
    // `|` and `&` instead of short-circuit operators, whose branches would keep loops from vectorizing.
    // NaN is neither less nor greater.
    if or_as_good {
        (if LEAST { element <= so_far } else { element >= so_far }) | element.is_nan()
    } else {
        (if LEAST { element < so_far } else { element > so_far }) | (element.is_nan() & !so_far.is_nan())
    }
}

/// Finds the extremes of contiguous lines first and then their places: no loop has a dependency from one element to the next, so all
/// vectorize.
fn find_in_lines<T: ComputeElement, const LEAST: bool>(
    isa: Isa,
    lines: &[T],
    length: usize,
    takes_last: bool,
    places: &mut [i64],
) {
    if length > LINE_CHUNK {
        for (line, place) in lines.chunks(length).zip(places) {
            *place = find_in_long_line::<T, LEAST>(isa, line, takes_last) as i64;
        }
        return;
    }
    let mut extremes = [T::Accumulator::ZERO; LINE_GROUP];
    // There may be more lines than places: those of other threads.
    for (lines, places) in lines.chunks(LINE_GROUP * length).zip(places.chunks_mut(LINE_GROUP)) {
        let extremes = &mut extremes[..places.len()];
        fold_extremes::<T, LEAST>(isa, lines, length, extremes);
        locate_extremes(isa, lines, length, extremes, takes_last, places);
    }
}

/// Finds the chunk with the extreme first, so that only this one is read twice.
fn find_in_long_line<T: ComputeElement, const LEAST: bool>(isa: Isa, line: &[T], takes_last: bool) -> usize {
    let (mut start, mut best) = (0, None);
    let mut extremes = [T::Accumulator::ZERO; LINE_GROUP];
    for (group, elements) in line.chunks(LINE_GROUP * LINE_CHUNK).enumerate() {
        let (whole, rest) = elements.as_chunks::<LINE_CHUNK>();
        let extremes = &mut extremes[..elements.len().div_ceil(LINE_CHUNK)];
        let (of_whole, of_rest) = extremes.split_at_mut(whole.len());
        fold_extremes::<T, LEAST>(isa, elements, LINE_CHUNK, of_whole);
        fold_extremes::<T, LEAST>(isa, rest, rest.len(), of_rest);
        for (chunk, found) in (group * LINE_GROUP..).zip(&*extremes) {
            if best.is_none_or(|best| is_better::<_, LEAST>(*found, best, takes_last)) {
                (start, best) = (chunk * LINE_CHUNK, Some(*found));
            }
        }
    }
    let Some(extreme) = best else { return 0 };
    let (chunk, mut place) = (&line[start..line.len().min(start + LINE_CHUNK)], [0]);
    locate_extremes(isa, chunk, chunk.len(), &[extreme], takes_last, &mut place);
    start + place[0] as usize
}

/// The extremes of contiguous lines. NaN is the extreme of a line that has one.
fn fold_extremes<T: ComputeElement, const LEAST: bool>(
    isa: Isa,
    lines: &[T],
    length: usize,
    extremes: &mut [T::Accumulator],
) {
    if LEAST {
        fold_lines::<T, Minimum>(isa, lines, length, length, extremes);
    } else {
        fold_lines::<T, Maximum>(isa, lines, length, length, extremes);
    }
}

/// Finds the places of known extremes in contiguous lines, one for each extreme.
fn locate_extremes<T: ComputeElement>(
    isa: Isa,
    lines: &[T],
    length: usize,
    extremes: &[T::Accumulator],
    takes_last: bool,
    places: &mut [i64],
) {
    with_isa_of!(Maximum, isa, || {
        for ((line, extreme), place) in lines.chunks(length).zip(extremes).zip(places) {
            *place = locate_extreme(line, *extreme, takes_last) as i64;
        }
    });
}

#[inline(always)]
fn locate_extreme<T: ComputeElement>(line: &[T], extreme: T::Accumulator, takes_last: bool) -> usize {
    // NaN equals nothing.
    let is_nan = extreme.is_nan();
    let is_extreme = |element: &T| {
        let element = element.to_accumulator();
        (element == extreme) | (element.is_nan() & is_nan)
    };
    let in_order = |index: usize, count: usize| if takes_last { count - 1 - index } else { index };
    let blocks = line.len().div_ceil(SCAN_BLOCK);
    for index in 0..blocks {
        let first = in_order(index, blocks) * SCAN_BLOCK;
        let block = &line[first..line.len().min(first + SCAN_BLOCK)];
        // `|` instead of `any`: without an early exit, a block is compared in whole registers.
        if block.iter().fold(false, |any, element| any | is_extreme(element)) {
            let mut places = (0..block.len()).map(|index| in_order(index, block.len()));
            return first + places.find(|place| is_extreme(&block[*place])).unwrap_or(0);
        }
    }
    0
}

/// Neighboring lines, many at a time: their extremes and places stay in registers.
fn find_across_lines<T: ComputeElement, const LEAST: bool>(
    isa: Isa,
    input: &[T],
    axis: AxisLayout,
    takes_last: bool,
    begin: usize,
    places: &mut [i64],
) {
    with_isa_of!(Maximum, isa, || find_in_bundles::<T, LEAST>(input, axis, takes_last, begin, places));
}

#[inline(always)]
fn find_in_bundles<T: ComputeElement, const LEAST: bool>(
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
            BUNDLE_WIDTH.. => BUNDLE_WIDTH,
            LINES_ABREAST.. => LINES_ABREAST,
            _ => 1,
        };
        let (found, rest) = places.split_at_mut(lines);
        match lines {
            BUNDLE_WIDTH => find_in_bundle::<T, LEAST, BUNDLE_WIDTH>(input, axis, takes_last, found),
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
    // Read from its end, the last extreme of a line is the first.
    let in_order = |index: usize| if takes_last { axis.length - 1 - index } else { index };
    let elements_at = |position: usize| input[position * axis.inner..].first_chunk::<LINES>();
    let Some(first) = elements_at(in_order(0)) else { return };
    let mut best: [T::Accumulator; LINES] = std::array::from_fn(|line| first[line].to_accumulator());
    let mut found = [in_order(0) as i64; LINES];
    for index in 1..axis.length {
        let position = in_order(index);
        let Some(elements) = elements_at(position) else { return };
        for line in 0..LINES {
            let (element, so_far) = (elements[line].to_accumulator(), best[line]);
            let is_better = is_better::<_, LEAST>(element, so_far, false);
            best[line] = if is_better { element } else { so_far };
            found[line] = if is_better { position as i64 } else { found[line] };
        }
    }
    *places = found;
}
