//! `TopK`: the largest or smallest elements of each line, in order. Of equal elements the one with the lower index comes
//! first, and what is not a number counts as larger than every number.

use oarlock_sdk::{
    Call, DtypeSet, Error, Kernel, KernelFlags, MemoryKind, Operand, OperandFlags, Result, dispatch, family,
};

use super::lines::{Sorting, by_number_size};
use crate::device::Cpu;
use crate::kernels::movement::operand::{cells, cells_mut};
use crate::kernels::rows::axis::{self, Axis};
use crate::kernels::rows::bundle::{are_short, are_turned, turn_back, turned};
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Number};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Lines, Rows, in_parallel};
use crate::kernels::rows::room::filled;
use crate::kernels::rows::vector::with_isa;

const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL
    .union(DtypeSet::F16)
    .union(DtypeSet::BF16)
    .union(DtypeSet::U16)
    .union(DtypeSet::I16)
    .union(DtypeSet::U32)
    .union(DtypeSet::U64);

/// How many lines lie side by side.
const SIDE_BY_SIDE: usize = 32;
/// How many elements of a line are few.
const FEW: usize = 8;
/// How many elements lines have that are looked at side by side, at most.
const SHORT: usize = 128;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let number = Operand::new(NUMBERS).group(1);
    // Some callers only sort.
    let places = Operand::new(DtypeSet::I64).named("Indices").flags(OperandFlags::OPTIONAL);
    let row = |inputs: &[Operand]| {
        kernel("TopK", Options::new, run)
            .flags(KernelFlags::DETERMINISTIC)
            .inputs(inputs.iter().copied())
            .outputs([number.named("Values"), places])
    };
    let k = Operand::new(DtypeSet::I64).named("K").rank(0, 1).on(MemoryKind::HOST);
    vec![row(&[number.named("X")]).until(9), row(&[number.named("X"), k]).since(10)]
}

struct Options {
    axis: i64,
    k: Option<i64>,
    is_largest: bool,
}

impl Options {
    /// Results are in order even where `sorted` does not ask for it.
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            axis: call.int("axis")?.unwrap_or(-1),
            k: call.int("k")?,
            is_largest: call.int("largest")?.unwrap_or(1) != 0,
        })
    }

    fn k(&self, operands: &Operands<'_, '_>, length: usize) -> Result<usize> {
        let found = match operands.read_optional::<i64>(1)? {
            Some([k]) => Some(*k),
            Some(more) => {
                return Err(Error::invalid_argument(format!("expected one number `K`, found {more:?}")));
            }
            None => self.k,
        };
        let k = found.ok_or_else(|| Error::invalid_argument("expected the attribute `k`, found none"))?;
        usize::try_from(k).ok().filter(|k| *k <= length).ok_or_else(|| {
            Error::out_of_range(format!(
                "expected `k` from 0 to the {length} elements along the axis, found {k}"
            ))
        })
    }
}

fn run(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let (x, values) = (operands.call().input(0)?, operands.call().output(0)?);
    let axis = Axis::new(x.dims(), options.axis)?;
    let k = options.k(operands, axis.length)?;
    let mut dims = x.dims().to_vec();
    let dimension = axis::index(options.axis, dims.len())?;
    dims[dimension] = k as i64;
    operands.expect_dims(&values, "Values", &dims)?;
    if let Some(places) = operands.call().optional_output(1)? {
        operands.expect_dims(&places, "Indices", &dims)?;
    }
    let count = axis::count(&dims)?;
    if count == 0 {
        return Ok(());
    }
    let places = operands.write_optional::<i64>(1)?;
    if k == axis.length && k > FEW {
        let sorting = Sorting::new(cpu, axis, options.is_largest, x.dtype());
        return by_number_size!(x.dtype(), N => sorting.run::<N>(cells(&x)?, cells_mut(&values)?, places));
    }
    let mut unwanted = filled(0, if places.is_none() { count } else { 0 })?;
    let places = places.unwrap_or(&mut unwanted);
    dispatch!(x.dtype(), floating_and_integral + f16 + bf16 + i16 + u16 + u32 + u64, T => {
        let (input, values) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
        if options.is_largest {
            find::<T, true>(cpu, axis, k, input, values, places);
        } else {
            find::<T, false>(cpu, axis, k, input, values, places);
        }
        Ok(())
    })
}

/// The `k` best elements of each line and their places.
fn find<T: Number, const LARGEST: bool>(
    cpu: &Cpu,
    axis: Axis,
    k: usize,
    input: &[T],
    values: &mut [T],
    places: &mut [i64],
) {
    if const { are_turned::<T>() } && k <= FEW && are_short(axis, SHORT) {
        return short_lines::<T, LARGEST>(cpu, axis, k, input, values, places);
    }
    let outputs = (Lines::new(values, k, axis.inner), Lines::new(places, k, axis.inner));
    in_parallel(cpu, axis.lines(), grain(axis.length), outputs, |_, (mut values, mut places)| {
        let mut elements = Vec::with_capacity(axis.length);
        let mut best = Vec::new();
        for (line, _) in values.groups(1) {
            let start = line / axis.inner * axis.length * axis.inner + line % axis.inner;
            elements.clear();
            if axis.inner == 1 {
                elements.extend(input[start..][..axis.length].iter().map(|element| element.exact()));
            } else {
                let line = input[start..].iter().step_by(axis.inner).take(axis.length);
                elements.extend(line.map(|element| element.exact()));
            }
            with_isa!(cpu.isa(), || select::<_, LARGEST>(&elements, k, &mut best));
            for (rank, key) in best.iter().enumerate() {
                let place = place_of(*key);
                values.across(line, 1, rank)[0] = input[start + place * axis.inner];
                places.across(line, 1, rank)[0] = place as i64;
            }
        }
    });
}

/// Few elements of short lines are found in all lines that lie side by side at once.
fn short_lines<T: Number, const LARGEST: bool>(
    cpu: &Cpu,
    axis: Axis,
    k: usize,
    input: &[T],
    values: &mut [T],
    places: &mut [i64],
) {
    let (block, found, isa) = (axis.length * axis.inner, k * axis.inner, cpu.isa());
    let outputs = (Rows::new(values, found), Rows::new(places, found));
    in_parallel(cpu, axis.outer, grain(block), outputs, |begin, (values, places)| {
        let input = &input[begin * block..][..values.len() / found * block];
        let mut best = vec![[input[0]; SIDE_BY_SIDE]; found];
        let mut order = vec![[0; SIDE_BY_SIDE]; found];
        turned(isa, input, block, |first, tile: &[[T; SIDE_BY_SIDE]]| {
            with_isa!(isa, || {
                for start in 0..axis.inner {
                    let positions = tile[start..].iter().step_by(axis.inner);
                    let ranked = rank_each::<T, LARGEST>(positions, k);
                    for (rank, (elements, places)) in ranked.iter().enumerate().take(k) {
                        let at = rank * axis.inner + start;
                        for line in 0..SIDE_BY_SIDE {
                            best[at][line] = T::of_exact(elements[line]);
                            order[at][line] = i64::from(places[line]);
                        }
                    }
                }
            });
            turn_back(isa, &best, first, values);
            turn_back(isa, &order, first, places);
        });
    });
}

/// The best elements of each line and their places, best first. Each element is put after those found before that are not
/// worse, and what follows moves on by one.
#[inline(always)]
fn rank_each<'a, T: Number, const LARGEST: bool>(
    positions: impl Iterator<Item = &'a [T; SIDE_BY_SIDE]>,
    k: usize,
) -> [([T::Exact; SIDE_BY_SIDE], [u32; SIDE_BY_SIDE]); FEW] {
    let mut ranked = [([T::Exact::ZERO; SIDE_BY_SIDE], [0; SIDE_BY_SIDE]); FEW];
    for (place, elements) in positions.enumerate() {
        let mut added = [T::Exact::ZERO; SIDE_BY_SIDE];
        for line in 0..SIDE_BY_SIDE {
            added[line] = elements[line].exact();
        }
        if place < k {
            ranked[place] = (added, [place as u32; SIDE_BY_SIDE]);
        }
        for rank in (0..k.min(place + 1)).rev() {
            let (mut best, mut places) = ranked[rank];
            let (better, better_places) = ranked[rank.saturating_sub(1)];
            for line in 0..SIDE_BY_SIDE {
                let is_here = is_better::<T::Exact, LARGEST>(added[line], best[line]);
                let is_before = (rank > 0) & is_better::<T::Exact, LARGEST>(added[line], better[line]);
                let other = if is_before { better[line] } else { added[line] };
                let other_place = if is_before { better_places[line] } else { place as u32 };
                best[line] = if is_here | is_before { other } else { best[line] };
                places[line] = if is_here | is_before { other_place } else { places[line] };
            }
            ranked[rank] = (best, places);
        }
    }
    ranked
}

/// Elements that are looked at together for one that is better than the worst of those found.
const BLOCK: usize = 64;

/// Keys of the `k` best elements, best first. As many are gathered as make it worth while to leave out all but the best, and
/// what is no better than the worst of those is passed over from then on.
#[inline(always)]
fn select<E: Exact, const LARGEST: bool>(elements: &[E], k: usize, best: &mut Vec<u128>) {
    best.clear();
    let (first, others) = elements.split_at(k);
    best.extend(first.iter().enumerate().map(|(place, element)| key::<E, LARGEST>(*element, place)));
    let mut worst = elements[worst_of_best(best, k)];
    for (index, block) in others.chunks(BLOCK).enumerate() {
        if !block.iter().fold(false, |any, element| any | is_better::<E, LARGEST>(*element, worst)) {
            continue;
        }
        for (place, element) in (k + index * BLOCK..).zip(block) {
            if is_better::<E, LARGEST>(*element, worst) {
                best.push(key::<E, LARGEST>(*element, place));
                if best.len() / 2 >= k {
                    worst = elements[worst_of_best(best, k)];
                }
            }
        }
    }
    worst_of_best(best, k);
    best.sort_unstable();
}

/// A number that is the lower the better an element is, and of equal elements the lower their place is, which it ends with. So
/// elements of all types are sorted by the same code.
#[inline(always)]
fn key<E: Exact, const LARGEST: bool>(element: E, place: usize) -> u128 {
    let rank = if LARGEST { !element.rank() } else { element.rank() };
    u128::from(rank) << 64 | place as u128
}

/// The place of the element that a key is of.
fn place_of(key: u128) -> usize {
    key as u64 as usize
}

/// Leaves out all but the `k` best, of which there is at least one, and returns the place of the worst of those.
fn worst_of_best(keys: &mut Vec<u128>, k: usize) -> usize {
    let (_, worst, _) = keys.select_nth_unstable(k - 1);
    let place = place_of(*worst);
    keys.truncate(k);
    place
}

/// Whether an element comes before another whatever their places are, without branches.
#[inline(always)]
fn is_better<E: Exact, const LARGEST: bool>(element: E, other: E) -> bool {
    if LARGEST {
        (element > other) | (element.is_unordered() & !other.is_unordered())
    } else {
        (element < other) | (other.is_unordered() & !element.is_unordered())
    }
}
