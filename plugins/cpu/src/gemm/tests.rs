//! Products against sums written down plainly, for all sizes, strides, types and instruction sets that take another path.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Matrix, Number, Operand, Packed, Product, Scratch, Side, Sizes, Team};
use crate::isa::Isa;

/// Threads of the test's own.
struct Threads {
    pub(crate) isa: Isa,
    pub(crate) count: usize,
}

impl Team for Threads {
    fn isa(&self) -> Isa {
        self.isa
    }

    fn worker_count(&self) -> usize {
        self.count
    }

    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if self.count == 1 || count == 1 {
            return (0..count).for_each(body);
        }
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.count.min(count) {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count {
                            break;
                        }
                        body(index);
                    }
                });
            }
        });
    }
}

fn levels() -> impl Iterator<Item = Isa> {
    Isa::available()
}

/// Whole numbers, small enough that every type computes exactly with them.
fn numbers<T: From<u8>>(count: usize, seed: usize) -> Vec<T> {
    let mut state = seed as u32 * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::from((state >> 28) as u8)
    };
    (0..count).map(|_| next()).collect()
}

fn expected<T: Number>(
    sizes: Sizes,
    left: &[T],
    left_turned: bool,
    right: &[T],
    right_turned: bool,
) -> Vec<T> {
    let Sizes { items, rows, columns, depth } = sizes;
    let mut output = Vec::with_capacity(items * rows * columns);
    for item in 0..items {
        let (left, right) = (&left[item * rows * depth..], &right[item * depth * columns..]);
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = T::default();
                for step in 0..depth {
                    let left = left[if left_turned { step * rows + row } else { row * depth + step }];
                    let right =
                        right[if right_turned { column * depth + step } else { step * columns + column }];
                    sum = sum.plus_product::<false>(left, right);
                }
                output.push(sum);
            }
        }
    }
    output
}

fn sides<'a, T>(
    sizes: Sizes,
    left: &'a [T],
    left_turned: bool,
    right: &'a [T],
    right_turned: bool,
) -> (Matrix<'a, T>, Matrix<'a, T>) {
    let Sizes { items, rows, columns, depth } = sizes;
    let (lane, step) = if left_turned { (1, rows) } else { (depth, 1) };
    let offsets = (0..items).map(|item| item * rows * depth).collect();
    let left = Matrix::new(left, offsets, (rows, lane), (depth, step)).unwrap();
    let (lane, step) = if right_turned { (depth, 1) } else { (1, columns) };
    let offsets = (0..items).map(|item| item * columns * depth).collect();
    (left, Matrix::new(right, offsets, (columns, lane), (depth, step)).unwrap())
}

fn check<T: Number + From<u8> + std::fmt::Debug>(sizes: Sizes, team: &Threads) {
    let Sizes { items, rows, columns, depth } = sizes;
    let (left, right) = (numbers::<T>(items * rows * depth, 1), numbers::<T>(items * depth * columns, 2));
    for (left_turned, right_turned) in [(false, false), (false, true), (true, false), (true, true)] {
        let expected = expected(sizes, &left, left_turned, &right, right_turned);
        let (left, right) = sides(sizes, &left, left_turned, &right, right_turned);
        for (pack_left, pack_right) in [(false, false), (true, true)] {
            let packed_left = Packed::left(team, &left, rows, depth);
            let packed_right = Packed::right(team, &right, columns, depth);
            let mut output = numbers::<T>(items * rows * columns, 3);
            Product {
                sizes,
                left: if pack_left { Side::Packed(&packed_left) } else { Side::Operand(&left) },
                right: if pack_right { Side::Packed(&packed_right) } else { Side::Operand(&right) },
                output: Some(&mut output),
                finish: None,
            }
            .compute(team, &mut Scratch::none());
            assert!(
                output == expected,
                "{sizes:?} turned {left_turned} {right_turned} packed {pack_left} {pack_right} on {} by {}",
                team.isa,
                team.count
            );
        }
    }
}

const AWKWARD: [usize; 10] = [1, 3, 7, 13, 17, 31, 33, 64, 100, 257];

fn awkward_sizes() -> impl Iterator<Item = Sizes> {
    // Every size in every place, but not every combination.
    (0..AWKWARD.len() * 2).map(|index| Sizes {
        items: 1,
        rows: AWKWARD[index % 10],
        columns: AWKWARD[(index * 7 + index / 10 * 3) % 10],
        depth: AWKWARD[(index * 3 + index / 10) % 10],
    })
}

#[test]
fn products_of_all_types_are_right_on_every_instruction_set() {
    for isa in levels() {
        let team = Threads { isa, count: 1 };
        for sizes in awkward_sizes() {
            check::<f32>(sizes, &team);
        }
        for sizes in awkward_sizes().step_by(7) {
            check::<f64>(sizes, &team);
            check::<i32>(sizes, &team);
            check::<i64>(sizes, &team);
            check::<u32>(sizes, &team);
            check::<u64>(sizes, &team);
        }
    }
}

#[test]
fn a_deep_product_is_the_sum_of_its_blocks() {
    for isa in levels() {
        check::<f32>(Sizes { items: 1, rows: 15, columns: 40, depth: 1500 }, &Threads { isa, count: 1 });
    }
}

#[test]
fn several_products_are_computed_together() {
    for isa in levels() {
        for count in [1, 3] {
            check::<f32>(Sizes { items: 5, rows: 33, columns: 47, depth: 40 }, &Threads { isa, count });
            check::<f32>(Sizes { items: 4, rows: 1, columns: 300, depth: 500 }, &Threads { isa, count });
        }
    }
}

#[test]
fn many_threads_compute_what_one_does() {
    for isa in levels() {
        let count = 3;
        check::<f32>(Sizes { items: 1, rows: 130, columns: 170, depth: 70 }, &Threads { isa, count });
        check::<f32>(Sizes { items: 1, rows: 1, columns: 1500, depth: 400 }, &Threads { isa, count });
        check::<f32>(Sizes { items: 1, rows: 4, columns: 1500, depth: 401 }, &Threads { isa, count });
        check::<f32>(Sizes { items: 1, rows: 1500, columns: 1, depth: 400 }, &Threads { isa, count });
    }
}

#[test]
fn an_empty_sum_is_zero() {
    for isa in levels() {
        check::<f32>(Sizes { items: 2, rows: 20, columns: 50, depth: 0 }, &Threads { isa, count: 1 });
        check::<f32>(Sizes { items: 1, rows: 1, columns: 50, depth: 0 }, &Threads { isa, count: 1 });
    }
}

#[test]
fn a_finish_sees_each_element_once_and_its_place() {
    for isa in levels() {
        for (rows, columns, keep) in [(40, 90, true), (40, 90, false), (1, 5000, true), (5000, 1, true)] {
            let sizes = Sizes { items: 2, rows, columns, depth: 600 };
            let (left, right) = (numbers::<f32>(2 * rows * 600, 1), numbers::<f32>(2 * columns * 600, 2));
            let expected = expected(sizes, &left, false, &right, false);
            let (left, right) = sides(sizes, &left, false, &right, false);
            let seen = std::sync::Mutex::new(vec![0.0; 2 * rows * columns]);
            let mut output = vec![0.0; 2 * rows * columns];
            Product {
                sizes,
                left: Side::Operand(&left),
                right: Side::Operand(&right),
                output: keep.then_some(&mut output),
                finish: Some(&|mut part| {
                    let (item, columns_of_part) = (part.item, part.columns.clone());
                    for (row, values) in part.each_row() {
                        let mut seen = seen.lock().unwrap();
                        for (column, value) in columns_of_part.clone().zip(values) {
                            seen[(item * rows + row) * columns + column] += *value;
                            *value += 1.0;
                        }
                    }
                }),
            }
            .compute(&Threads { isa, count: 2 }, &mut Scratch::none());
            assert!(*seen.lock().unwrap() == expected, "{sizes:?} on {isa}");
            let finished: Vec<_> = expected.iter().map(|value| value + 1.0).collect();
            assert!(!keep || output == finished, "{sizes:?} on {isa}");
        }
    }
}

#[test]
fn a_matrix_that_reaches_past_its_elements_is_refused() {
    let elements = [0.0f32; 12];
    assert!(Matrix::new(&elements, vec![0], (3, 4), (4, 1)).is_some());
    assert!(Matrix::new(&elements, vec![1], (3, 4), (4, 1)).is_none());
    assert!(Matrix::new(&elements, vec![0], (usize::MAX, usize::MAX), (4, 1)).is_none());
    assert_eq!(Operand::<f32>::items(&Matrix::new(&elements, vec![0, 0], (3, 4), (4, 1)).unwrap()), 1);
}
