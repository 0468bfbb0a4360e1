//! Folds of lines, in an order that only their length decides.

use super::bundle::Bundle;

/// Partial results that fill the widest register.
pub(crate) const LANES: usize = 16;

/// Folds a slice in lanes that do not wait for each other, and joins them in a fixed order.
#[inline(always)]
pub(crate) fn fold<T: Copy, P: Copy>(
    elements: &[T],
    none: P,
    add: impl Fn(P, T) -> P,
    join: impl Fn(P, P) -> P,
) -> P {
    let (lanes, rest) = fold_lanes(elements, none, &add, &join);
    join(joined(lanes, &join), rest.iter().fold(none, |partial, element| add(partial, *element)))
}

/// Folds the elements of a slice that are enough for all lanes. The others are the rest.
///
/// Four registers of lanes hide the latency of an addition. They are arrays of their own, and none is indexed by more than a
/// loop of known length, since only then does the compiler keep them in registers.
#[inline(always)]
pub(crate) fn fold_lanes<T: Copy, P: Copy>(
    elements: &[T],
    none: P,
    add: impl Fn(P, T) -> P,
    join: impl Fn(P, P) -> P,
) -> ([P; LANES], &[T]) {
    let [mut first, mut second, mut third, mut fourth] = [[none; LANES]; 4];
    let (blocks, rest) = elements.as_chunks::<{ 4 * LANES }>();
    for block in blocks {
        let (parts, _) = block.as_chunks::<LANES>();
        for lane in 0..LANES {
            first[lane] = add(first[lane], parts[0][lane]);
        }
        for lane in 0..LANES {
            second[lane] = add(second[lane], parts[1][lane]);
        }
        for lane in 0..LANES {
            third[lane] = add(third[lane], parts[2][lane]);
        }
        for lane in 0..LANES {
            fourth[lane] = add(fourth[lane], parts[3][lane]);
        }
    }
    let (parts, rest) = rest.as_chunks::<LANES>();
    for part in parts {
        for lane in 0..LANES {
            first[lane] = add(first[lane], part[lane]);
        }
    }
    for lane in 0..LANES {
        first[lane] = join(join(first[lane], second[lane]), join(third[lane], fourth[lane]));
    }
    (first, rest)
}

/// Joins lanes by halves.
#[inline(always)]
pub(crate) fn joined<P: Copy, const COUNT: usize>(mut lanes: [P; COUNT], join: impl Fn(P, P) -> P) -> P {
    let mut width = COUNT / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = join(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Folds each of some lines that lie side by side and are short, in the order in which [`fold`] folds one.
#[inline(always)]
pub(super) fn fold_each<T: Copy, P: Copy, const LINES: usize>(
    lines: Bundle<'_, T, LINES>,
    none: P,
    add: impl Fn(P, T, usize) -> P,
    join: impl Fn(P, P) -> P,
) -> [P; LINES] {
    let mut positions = lines.positions();
    let mut found = [none; LINES];
    let rounds = lines.length() / LANES;
    if rounds > 0 {
        let mut lanes = [[none; LINES]; LANES];
        for _ in 0..rounds {
            for (lane, elements) in lanes.iter_mut().zip(&mut positions) {
                for line in 0..LINES {
                    lane[line] = add(lane[line], elements[line], line);
                }
            }
        }
        found = joined(lanes, |left, right| each(left, right, &join));
    }
    let mut rest = [none; LINES];
    for elements in positions {
        for line in 0..LINES {
            rest[line] = add(rest[line], elements[line], line);
        }
    }
    if rounds > 0 { each(found, rest, &join) } else { rest }
}

/// Joins the partial results of each line.
#[inline(always)]
fn each<P: Copy, const LINES: usize>(
    mut left: [P; LINES],
    right: [P; LINES],
    join: impl Fn(P, P) -> P,
) -> [P; LINES] {
    for line in 0..LINES {
        left[line] = join(left[line], right[line]);
    }
    left
}
