//! Folds lines, in an order that depends only on their length, so that all paths return the same bits.

use std::hint::black_box;

/// The number of partial results of a fold: 16 `f32` fill a zmm register.
pub const FOLD_LANES: usize = 16;
/// Elements that a lane accumulates before it is joined with earlier results. The rounding error of a long line grows with this
/// number plus the number of joins, instead of their product.
const LANE_ROUNDS: usize = 16;

/// Lanes in memory, aligned like the widest registers: a load that spans two earlier stores cannot be forwarded and waits for both.
#[repr(align(64))]
struct LaneRegisters<P>([P; FOLD_LANES]);

/// Folds a slice in independent lanes, and joins them in a fixed order.
#[inline(always)]
pub fn fold_slice<T: Copy, P: Copy>(
    elements: &[T],
    none: P,
    add: impl Fn(P, T) -> P,
    join: impl Fn(P, P) -> P,
) -> P {
    match fold_lanes::<false, _, _>(elements, none, &add, &join) {
        Some(lanes) => join_lanes(lanes, join),
        None => elements.iter().fold(none, |partial, element| add(partial, *element)),
    }
}

/// Like [`fold_slice`], for folds in which adding an element twice changes nothing, such as a maximum.
#[inline(always)]
pub fn fold_idempotent<P: Copy>(elements: &[P], none: P, add: impl Fn(P, P) -> P) -> P {
    match fold_lanes::<true, _, _>(elements, none, &add, &add) {
        Some(lanes) => join_lanes(lanes, add),
        None => elements.iter().copied().fold(none, add),
    }
}

/// Folds a slice of at least [`FOLD_LANES`] elements. The remainder is read as the last [`FOLD_LANES`] elements of the slice. Some
/// of these were already added; they are added again only if that changes nothing (`AGAIN`), and masked out otherwise.
///
/// Four registers of lanes are four independent chains, which hide an addition's latency of about four cycles. They are separate
/// arrays, indexed only in loops of constant length, since the compiler keeps them in registers only then.
#[inline(always)]
pub fn fold_lanes<const AGAIN: bool, T: Copy, P: Copy>(
    elements: &[T],
    none: P,
    add: impl Fn(P, T) -> P,
    join: impl Fn(P, P) -> P,
) -> Option<[P; FOLD_LANES]> {
    let last = elements.last_chunk::<FOLD_LANES>()?;
    let mut first = [none; FOLD_LANES];
    let (blocks, rest) = elements.as_chunks::<{ 4 * FOLD_LANES }>();
    for blocks in blocks.chunks(LANE_ROUNDS) {
        let [mut newest, mut second, mut third, mut fourth] = [[none; FOLD_LANES]; 4];
        for block in blocks {
            let (parts, _) = block.as_chunks::<FOLD_LANES>();
            for lane in 0..FOLD_LANES {
                newest[lane] = add(newest[lane], parts[0][lane]);
            }
            for lane in 0..FOLD_LANES {
                second[lane] = add(second[lane], parts[1][lane]);
            }
            for lane in 0..FOLD_LANES {
                third[lane] = add(third[lane], parts[2][lane]);
            }
            for lane in 0..FOLD_LANES {
                fourth[lane] = add(fourth[lane], parts[3][lane]);
            }
        }
        for lane in 0..FOLD_LANES {
            let together = join(join(newest[lane], second[lane]), join(third[lane], fourth[lane]));
            first[lane] = join(first[lane], together);
        }
    }
    let (parts, rest) = rest.as_chunks::<FOLD_LANES>();
    for part in parts {
        for lane in 0..FOLD_LANES {
            first[lane] = add(first[lane], part[lane]);
        }
    }
    if !rest.is_empty() {
        let mut more = first;
        for lane in 0..FOLD_LANES {
            more[lane] = add(more[lane], last[lane]);
        }
        if AGAIN {
            return Some(black_box(LaneRegisters(more)).0);
        }
        let is_new = tail_mask(rest.len());
        for lane in 0..FOLD_LANES {
            first[lane] = if is_new[lane] == 0 { first[lane] } else { more[lane] };
        }
    }
    // Otherwise the compiler sees which lanes are joined first, and splits the fold into narrower registers.
    Some(black_box(LaneRegisters(first)).0)
}

/// A mask of the last `count` lanes: 1 for these, 0 for the others.
#[inline(always)]
fn tail_mask(count: usize) -> &'static [u32; FOLD_LANES] {
    static TAIL_MARKS: [[u32; FOLD_LANES]; 2] = [[0; FOLD_LANES], [1; FOLD_LANES]];
    // Otherwise the compiler sees that some lanes are always 0, and treats these separately.
    let marks = black_box(&TAIL_MARKS).as_flattened();
    marks[count..].first_chunk().unwrap_or(&TAIL_MARKS[1])
}

/// Joins lanes pairwise: the upper half with the lower half, until one is left.
#[inline(always)]
pub fn join_lanes<P: Copy, const COUNT: usize>(mut lanes: [P; COUNT], join: impl Fn(P, P) -> P) -> P {
    let mut width = COUNT / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = join(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Folds short lines that lie side by side, each in the order in which [`fold_slice`] folds a line.
#[inline(always)]
pub fn fold_positions<'a, T: Copy + 'a, P: Copy, const LINES: usize>(
    mut positions: impl ExactSizeIterator<Item = &'a [T; LINES]>,
    none: P,
    add: impl Fn(P, T, usize) -> P,
    join: impl Fn(P, P) -> P,
) -> [P; LINES] {
    let (rounds, rest) = (positions.len() / FOLD_LANES, positions.len() % FOLD_LANES);
    if rounds == 0 {
        let mut found = [none; LINES];
        positions.for_each(|elements| add_to_lines(&mut found, elements, &add));
        return found;
    }
    let mut lanes = [[none; LINES]; FOLD_LANES];
    for _ in 0..rounds {
        lanes.iter_mut().zip(&mut positions).for_each(|(lane, elements)| add_to_lines(lane, elements, &add));
    }
    // The remainder goes to the last lanes, as in `fold_lanes`, so that both return the same bits.
    lanes[FOLD_LANES - rest..]
        .iter_mut()
        .zip(positions)
        .for_each(|(lane, elements)| add_to_lines(lane, elements, &add));
    join_lanes(lanes, |left, right| join_lines(left, right, &join))
}

#[inline(always)]
fn add_to_lines<T: Copy, P: Copy, const LINES: usize>(
    partials: &mut [P; LINES],
    elements: &[T; LINES],
    add: impl Fn(P, T, usize) -> P,
) {
    for line in 0..LINES {
        partials[line] = add(partials[line], elements[line], line);
    }
}

#[inline(always)]
fn join_lines<P: Copy, const LINES: usize>(
    mut left: [P; LINES],
    right: [P; LINES],
    join: impl Fn(P, P) -> P,
) -> [P; LINES] {
    for line in 0..LINES {
        left[line] = join(left[line], right[line]);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_covers_every_length_and_side_by_side_folds_agree() {
        let elements: Vec<f32> = (0..150).map(|at| ((at * 7919) % 1013) as f32 / 7.0 - 71.3).collect();
        for length in 0..=elements.len() {
            let line = &elements[..length];
            let whole: Vec<i64> = line.iter().map(|element| *element as i64).collect();
            assert_eq!(
                fold_slice(&whole, 0, |a, b| a + b * b, |a, b| a + b),
                whole.iter().map(|x| x * x).sum::<i64>()
            );
            let least = line.iter().copied().fold(f32::INFINITY, f32::min);
            assert_eq!(fold_idempotent(line, f32::INFINITY, f32::min), least, "the least of {length}");
            if length < 4 * FOLD_LANES {
                let sum = fold_slice(line, 0.0, |a, b| a + b, |a, b| a + b);
                let lines: Vec<[f32; 3]> = line.iter().map(|element| [*element; 3]).collect();
                let sums = fold_positions(lines.iter(), 0.0, |a, b, _| a + b, |a, b| a + b);
                assert_eq!(sums, [sum; 3], "sums of {length}");
            }
        }
    }
}
