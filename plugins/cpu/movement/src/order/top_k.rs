//! `TopK`: the largest or smallest elements of each line, in order. Among equal elements the one with the lower index comes
//! first, and NaN counts as larger than every number.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{element_bytes, element_bytes_mut};
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::line_bundle::{are_lines_short, for_transposed_blocks, transpose_back};
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{AxisLines, OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::shape;
use oarlock_sdk::{
    DtypeSet, Kernel, KernelCall, KernelFlags, MemoryKind, OperandFlags, OperandSpec, PluginError, Result,
    family,
};

use super::line_sort::{LineSort, by_number_size};
use super::rank_mapping::{RankInteger, RankMapping};

const TOP_K_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::I16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

/// Lines that are processed side by side: 32 `f32` are four ymm or two zmm registers.
const LINES_ABREAST: usize = 32;
/// Up to this many results, a line is ranked by insertion.
const FEW_ELEMENTS: usize = 8;
/// The maximum length of lines that are processed side by side.
const SHORT_LINE: usize = 128;

pub(super) fn top_k_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(TOP_K_DTYPES).with_dtype_group(1);
    // Some callers only sort.
    let places = OperandSpec::new(DtypeSet::I64).with_name("Indices").with_flags(OperandFlags::OPTIONAL);
    let row = |inputs: &[OperandSpec]| {
        operand_kernel("TopK", TopKOptions::new, run_top_k)
            .with_flags(KernelFlags::DETERMINISTIC)
            .with_inputs(inputs.iter().copied())
            .with_outputs([number.with_name("Values"), places])
    };
    let k = OperandSpec::new(DtypeSet::I64).with_name("K").with_rank(0, 1).in_memory(MemoryKind::HOST);
    // Up to opset 9, `k` was an attribute.
    vec![row(&[number.with_name("X")]).until_version(9), row(&[number.with_name("X"), k]).since_version(10)]
}

struct TopKOptions {
    axis: i64,
    k: Option<i64>,
    is_largest: bool,
}

impl TopKOptions {
    /// Results are in order even if `sorted` does not ask for it.
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            axis: call.int_attribute("axis")?.unwrap_or(-1),
            k: call.int_attribute("k")?,
            is_largest: call.int_attribute("largest")?.unwrap_or(1) != 0,
        })
    }

    fn read_k(&self, operands: &KernelOperands<'_, '_>, length: usize) -> Result<usize> {
        let found = match operands.read_optional_input::<i64>(1)? {
            Some([k]) => Some(*k),
            Some(more) => {
                return Err(PluginError::invalid_argument(format!(
                    "expected one number `K`, found {more:?}"
                )));
            }
            None => self.k,
        };
        let k =
            found.ok_or_else(|| PluginError::invalid_argument("expected the attribute `k`, found none"))?;
        usize::try_from(k).ok().filter(|k| *k <= length).ok_or_else(|| {
            PluginError::out_of_range(format!(
                "expected `k` from 0 to the {length} elements along the axis, found {k}"
            ))
        })
    }
}

fn run_top_k(cpu: &Cpu, options: &TopKOptions, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (x, values) = (operands.call().input(0)?, operands.call().output(0)?);
    let axis = AxisLayout::new(x.dims(), options.axis)?;
    let k = options.read_k(operands, axis.length)?;
    let mut dims = x.dims().to_vec();
    let dimension = shape::resolve_axis(options.axis, dims.len())?;
    dims[dimension] = k as i64;
    operands.expect_dims(&values, "Values", &dims)?;
    if let Some(places) = operands.call().optional_output(1)? {
        operands.expect_dims(&places, "Indices", &dims)?;
    }
    let count = shape::element_count(&dims)?;
    if count == 0 {
        return Ok(());
    }
    let places = operands.write_optional_output::<i64>(1)?;
    // If all elements are wanted, selecting them is a sort.
    if k == axis.length && k > FEW_ELEMENTS {
        let sorting = LineSort::new(cpu, axis, options.is_largest, x.dtype());
        return by_number_size!(x.dtype(), N => sorting.sort_lines::<N>(element_bytes(&x)?, element_bytes_mut(&values)?, places));
    }
    // Selection works with places even if nobody asks for them.
    let mut unwanted = try_filled_vec(0, if places.is_none() { count } else { 0 })?;
    let places = places.unwrap_or(&mut unwanted);
    let selection = TopKSelection { cpu, axis, k };
    by_number_size!(x.dtype(), N => {
        let (input, values) = (element_bytes::<N>(&x)?, element_bytes_mut::<N>(&values)?);
        if const { N <= 4 } {
            let ranking = RankMapping::<u32>::new(x.dtype(), N, options.is_largest);
            selection.find_best(&ranking, input, values, places);
        } else {
            let ranking = RankMapping::<u64>::new(x.dtype(), N, options.is_largest);
            selection.find_best(&ranking, input, values, places);
        }
        Ok(())
    })
}

/// The search for the `k` best elements of each line.
#[derive(Clone, Copy)]
struct TopKSelection<'a> {
    cpu: &'a Cpu,
    axis: AxisLayout,
    k: usize,
}

impl TopKSelection<'_> {
    fn find_best<R: RankInteger, const N: usize>(
        self,
        ranking: &RankMapping<R>,
        input: &[[u8; N]],
        values: &mut [[u8; N]],
        places: &mut [i64],
    ) {
        let Self { cpu, axis, k } = self;
        // Bytes are rarely ranked, so code for many of their lines at once would only enlarge the plugin.
        if const { N > 1 } && k <= FEW_ELEMENTS && are_lines_short(axis, SHORT_LINE) {
            return self.find_in_short_lines(ranking, input, values, places);
        }
        let outputs = (AxisLines::new(values, k, axis.inner), AxisLines::new(places, k, axis.inner));
        parallel_for_parts(
            cpu,
            axis.line_count(),
            grain_for(axis.length),
            outputs,
            |_, (mut values, mut places)| {
                // A contiguous copy as ranks: strided lines are read once, and not at every comparison.
                let mut ranks = vec![R::default(); axis.length];
                let mut best = Vec::new();
                for (line, _) in values.line_groups(1) {
                    let start = line / axis.inner * axis.length * axis.inner + line % axis.inner;
                    rank_line(cpu.isa(), ranking, &input[start..], axis.inner, &mut ranks);
                    select_lowest(cpu.isa(), &ranks, k, &mut best);
                    for (rank, key) in best.iter().enumerate() {
                        let place = place_of_key(*key);
                        values.lines_at(line, 1, rank)[0] = input[start + place * axis.inner];
                        places.lines_at(line, 1, rank)[0] = place as i64;
                    }
                }
            },
        );
    }

    /// Finds few elements of short lines, in all lines that lie side by side at once.
    fn find_in_short_lines<R: RankInteger, const N: usize>(
        self,
        ranking: &RankMapping<R>,
        input: &[[u8; N]],
        values: &mut [[u8; N]],
        places: &mut [i64],
    ) {
        let Self { cpu, axis, k } = self;
        let (block, found, isa) = (axis.length * axis.inner, k * axis.inner, cpu.isa());
        let outputs = (OutputRows::new(values, found), OutputRows::new(places, found));
        parallel_for_parts(cpu, axis.outer, grain_for(block), outputs, |begin, (values, places)| {
            let input = &input[begin * block..][..values.len() / found * block];
            let mut best = vec![[[0; N]; LINES_ABREAST]; found];
            let mut order = vec![[0; LINES_ABREAST]; found];
            for_transposed_blocks(isa, input, block, |first, tile: &[[[u8; N]; LINES_ABREAST]]| {
                with_isa!(isa, || {
                    for start in 0..axis.inner {
                        let positions = tile[start..].iter().step_by(axis.inner);
                        let ranked = rank_lines(*ranking, positions, k);
                        for (rank, (_, places)) in ranked.iter().enumerate().take(k) {
                            let at = rank * axis.inner + start;
                            for line in 0..LINES_ABREAST {
                                // Ranks do not tell zeros apart, nor NaNs, so elements are looked up.
                                best[at][line] = tile[places[line] as usize * axis.inner + start][line];
                                order[at][line] = i64::from(places[line]);
                            }
                        }
                    }
                });
                transpose_back(isa, &best, first, values);
                transpose_back(isa, &order, first, places);
            });
        });
    }
}

/// Ranks the elements of a line that lie `step` apart.
fn rank_line<R: RankInteger, const N: usize>(
    isa: Isa,
    ranking: &RankMapping<R>,
    input: &[[u8; N]],
    step: usize,
    ranks: &mut [R],
) {
    if step == 1 {
        ranking.rank_elements(isa, input, ranks);
    } else {
        for (rank, element) in ranks.iter_mut().zip(input.iter().step_by(step)) {
            *rank = ranking.rank_of(*element);
        }
    }
}

/// The lowest ranks of each line and their places, lowest first: an insertion sort without branches. Each rank goes after those found
/// before that are not higher, and those behind it move by one.
#[inline(always)]
fn rank_lines<'a, R: RankInteger, const N: usize>(
    ranking: RankMapping<R>,
    positions: impl Iterator<Item = &'a [[u8; N]; LINES_ABREAST]>,
    k: usize,
) -> [([R; LINES_ABREAST], [u32; LINES_ABREAST]); FEW_ELEMENTS] {
    let mut ranked = [([R::default(); LINES_ABREAST], [0; LINES_ABREAST]); FEW_ELEMENTS];
    for (place, elements) in positions.enumerate() {
        let mut added = [R::default(); LINES_ABREAST];
        for line in 0..LINES_ABREAST {
            added[line] = ranking.rank_of(elements[line]);
        }
        // While there are fewer than `k`, the new one is the last before it moves up.
        if place < k {
            ranked[place] = (added, [place as u32; LINES_ABREAST]);
        }
        // From the last to the first, so that each reads the one before it while that is still unchanged.
        for index in (0..k.min(place + 1)).rev() {
            let (mut best, mut places) = ranked[index];
            let (better, better_places) = ranked[index.saturating_sub(1)];
            for line in 0..LINES_ABREAST {
                let is_here = added[line] < best[line];
                let is_before = (index > 0) & (added[line] < better[line]);
                let other = if is_before { better[line] } else { added[line] };
                let other_place = if is_before { better_places[line] } else { place as u32 };
                best[line] = if is_here | is_before { other } else { best[line] };
                places[line] = if is_here | is_before { other_place } else { places[line] };
            }
            ranked[index] = (best, places);
        }
    }
    ranked
}

/// Writes the keys of the `k` lowest ranks, lowest first.
fn select_lowest<R: RankInteger>(isa: Isa, ranks: &[R], k: usize, best: &mut Vec<u128>) {
    let is_few = k <= FEW_OF_LONG_LINE && ranks.len() >= LONG_LINE;
    if !is_few || !with_isa!(isa, || select_by_bound(ranks, k, best)) {
        with_isa!(isa, || select_by_worst(ranks, k, best));
    }
}

/// Ranks that are tested together for one that is lower than the worst of those found.
const SCAN_BLOCK: usize = 64;

/// Selects the `k` lowest ranks. Up to 2k keys are collected before all but the best are dropped, so that the linear-time selection
/// costs little per key. From then on, ranks no lower than the worst of those are skipped.
#[inline(always)]
fn select_by_worst<R: RankInteger>(ranks: &[R], k: usize, best: &mut Vec<u128>) {
    best.clear();
    // The first `k` are the best so far, whatever they are.
    let (first, others) = ranks.split_at(k);
    best.extend(first.iter().enumerate().map(|(place, rank)| selection_key(*rank, place)));
    let mut worst = ranks[keep_best(best, k)];
    for (index, block) in others.chunks(SCAN_BLOCK).enumerate() {
        // `|` instead of `any`: without an early exit, a block is compared in whole registers, and most blocks have nothing
        // better.
        if !block.iter().fold(false, |any, rank| any | (*rank < worst)) {
            continue;
        }
        for (place, rank) in (k + index * SCAN_BLOCK..).zip(block) {
            if *rank < worst {
                best.push(selection_key(*rank, place));
                // Each selection takes as long as adding the keys did, so the total stays linear.
                if best.len() / 2 >= k {
                    worst = ranks[keep_best(best, k)];
                }
            }
        }
    }
    keep_best(best, k);
    // Keys are distinct, as places are, so an unstable sort is stable here.
    best.sort_unstable();
}

/// Up to so many ranks of lines that are at least so long are found by [`select_by_bound`].
const FEW_OF_LONG_LINE: usize = 16;
const LONG_LINE: usize = 16 * BOUND_GROUPS;
/// Groups of which each has a lowest rank. With twice as many as ranks are wanted, few others pass the bound.
const BOUND_GROUPS: usize = 2 * FEW_OF_LONG_LINE;

/// Selects the `k` lowest ranks by a bound that is known beforehand: number `k` among the lowest of each group, since as many are at
/// least as low. Gives up and returns false if too many are, which means that many are equal.
#[inline(always)]
fn select_by_bound<R: RankInteger>(ranks: &[R], k: usize, best: &mut Vec<u128>) -> bool {
    let (first, others) = ranks.split_at(BOUND_GROUPS);
    let mut group_best = [first[0]; BOUND_GROUPS];
    group_best.copy_from_slice(first);
    for block in others.chunks(BOUND_GROUPS) {
        for (best, rank) in group_best.iter_mut().zip(block) {
            *best = (*best).min(*rank);
        }
    }
    best.clear();
    best.extend(group_best.iter().enumerate().map(|(group, rank)| selection_key(*rank, group)));
    let bound = group_best[keep_best(best, k)];
    best.clear();
    for (index, block) in ranks.chunks(BOUND_GROUPS).enumerate() {
        // Whole registers again.
        if !block.iter().fold(false, |any, rank| any | (*rank <= bound)) {
            continue;
        }
        if best.len() > 2 * BOUND_GROUPS {
            return false;
        }
        for (place, rank) in (index * BOUND_GROUPS..).zip(block) {
            if *rank <= bound {
                best.push(selection_key(*rank, place));
            }
        }
    }
    keep_best(best, k);
    best.sort_unstable();
    true
}

/// A sort key: lower for a lower rank and, among equal ones, for a lower place, which is its lower half. So ranks of both widths are
/// sorted by the same code.
#[inline(always)]
fn selection_key<R: RankInteger>(rank: R, place: usize) -> u128 {
    rank.into() << 64 | place as u128
}

fn place_of_key(key: u128) -> usize {
    key as u64 as usize
}

/// Drops all but the `k` best, of which there is at least one, and returns the place of the worst of those.
fn keep_best(keys: &mut Vec<u128>, k: usize) -> usize {
    let (_, worst, _) = keys.select_nth_unstable(k - 1);
    let place = place_of_key(*worst);
    keys.truncate(k);
    place
}
