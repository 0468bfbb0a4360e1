//! Compares products with naive sums, for sizes, strides, types and instruction sets that cover all code paths.

use oarlock_cpu_testing::isa_levels::isa_levels;
use oarlock_cpu_testing::test_team::TestTeam;

use super::{
    BatchedGemm, GemmElement, GemmOperand, GemmShape, PackedOperand, PanelSource, ScratchBuffer,
    StridedMatrix,
};

/// Integers small enough that products and sums are exact in every type.
fn small_integers<T: From<u8>>(count: usize, seed: usize) -> Vec<T> {
    let mut state = seed as u32 * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        T::from((state >> 28) as u8)
    };
    (0..count).map(|_| next()).collect()
}

fn expected_product<T: GemmElement>(
    sizes: GemmShape,
    left: &[T],
    left_transposed: bool,
    right: &[T],
    right_transposed: bool,
) -> Vec<T> {
    let GemmShape { items, rows, columns, depth } = sizes;
    let mut output = Vec::with_capacity(items * rows * columns);
    for item in 0..items {
        let (left, right) = (&left[item * rows * depth..], &right[item * depth * columns..]);
        for row in 0..rows {
            for column in 0..columns {
                let mut sum = T::default();
                for step in 0..depth {
                    let left = left[if left_transposed { step * rows + row } else { row * depth + step }];
                    let right =
                        right[if right_transposed { column * depth + step } else { step * columns + column }];
                    sum = sum.add_product::<false>(left, right);
                }
                output.push(sum);
            }
        }
    }
    output
}

fn test_matrices<'a, T>(
    sizes: GemmShape,
    left: &'a [T],
    left_transposed: bool,
    right: &'a [T],
    right_transposed: bool,
) -> (StridedMatrix<'a, T>, StridedMatrix<'a, T>) {
    let GemmShape { items, rows, columns, depth } = sizes;
    let (lane, step) = if left_transposed { (1, rows) } else { (depth, 1) };
    let offsets = (0..items).map(|item| item * rows * depth).collect();
    let left = StridedMatrix::new(left, offsets, (rows, lane), (depth, step)).unwrap();
    let (lane, step) = if right_transposed { (depth, 1) } else { (1, columns) };
    let offsets = (0..items).map(|item| item * columns * depth).collect();
    (left, StridedMatrix::new(right, offsets, (columns, lane), (depth, step)).unwrap())
}

/// Checks products of these sizes on each instruction set and with each number of threads.
fn check_product<T: GemmElement + From<u8> + std::fmt::Debug>(sizes: GemmShape, thread_counts: &[usize]) {
    let GemmShape { items, rows, columns, depth } = sizes;
    let (left, right) =
        (small_integers::<T>(items * rows * depth, 1), small_integers::<T>(items * depth * columns, 2));
    for (left_transposed, right_transposed) in [(false, false), (false, true), (true, false), (true, true)] {
        // Once for all instruction sets: without optimization, this takes longer than what it is compared with.
        let expected = expected_product(sizes, &left, left_transposed, &right, right_transposed);
        let (left, right) = test_matrices(sizes, &left, left_transposed, &right, right_transposed);
        let teams = isa_levels().flat_map(|isa| thread_counts.iter().map(move |count| (isa, *count)));
        for (team, is_packed) in
            teams.flat_map(|(isa, count)| [false, true].map(|is_packed| (TestTeam { isa, count }, is_packed)))
        {
            let packed_left = PackedOperand::pack_left(&team, &left, rows, depth);
            let packed_right = PackedOperand::pack_right(&team, &right, columns, depth);
            let mut output = small_integers::<T>(items * rows * columns, 3);
            let (left, right) = if is_packed {
                (GemmOperand::Packed(&packed_left), GemmOperand::Packed(&packed_right))
            } else {
                (GemmOperand::Operand(&left), GemmOperand::Operand(&right))
            };
            BatchedGemm { sizes, left, right, output: Some(&mut output), epilogue: None }
                .compute(&team, &mut ScratchBuffer::without_workspace());
            assert!(
                output == expected,
                "{sizes:?} transposed {left_transposed} {right_transposed} packed {is_packed} on {} by {}",
                team.isa,
                team.count
            );
        }
    }
}

const AWKWARD_SIZES: [usize; 10] = [1, 3, 7, 13, 17, 31, 33, 64, 100, 257];

fn awkward_sizes() -> impl Iterator<Item = GemmShape> {
    // Every size in every position, but not every combination.
    (0..AWKWARD_SIZES.len() * 2).map(|index| GemmShape {
        items: 1,
        rows: AWKWARD_SIZES[index % 10],
        columns: AWKWARD_SIZES[(index * 7 + index / 10 * 3) % 10],
        depth: AWKWARD_SIZES[(index * 3 + index / 10) % 10],
    })
}

#[test]
fn products_of_all_types_are_right_on_every_instruction_set() {
    for sizes in awkward_sizes() {
        check_product::<f32>(sizes, &[1]);
    }
    for sizes in awkward_sizes().step_by(7) {
        check_product::<f64>(sizes, &[1]);
        check_product::<i32>(sizes, &[1]);
        check_product::<i64>(sizes, &[1]);
    }
}

#[test]
fn packed_weights_have_no_subnormal_numbers_beside_others() {
    for isa in isa_levels() {
        let team = TestTeam { isa, count: 1 };
        let pack = |weights: &[f32]| {
            let matrix = StridedMatrix::new(weights, vec![0], (20, 1), (30, 20)).unwrap();
            PackedOperand::pack_right(&team, &matrix, 20, 30).elements().to_vec()
        };
        let mut weights = vec![1f32; 600];
        weights.iter_mut().step_by(7).for_each(|weight| *weight = -1e-39);
        assert!(pack(&weights).iter().all(|weight| [0.0, 1.0].contains(weight)), "{isa}");
        assert!(pack(&[1e-39; 600]).contains(&1e-39), "{isa}: weights that are all tiny stay");
    }
}

#[test]
fn a_deep_product_is_the_sum_of_its_blocks() {
    check_product::<f32>(GemmShape { items: 1, rows: 15, columns: 40, depth: 1500 }, &[1]);
}

#[test]
fn several_products_are_computed_together() {
    check_product::<f32>(GemmShape { items: 5, rows: 33, columns: 47, depth: 40 }, &[1, 3]);
    check_product::<f32>(GemmShape { items: 4, rows: 1, columns: 300, depth: 500 }, &[1, 3]);
}

#[test]
fn multithreaded_products_match_single_threaded_ones() {
    for (rows, columns, depth) in [(130, 170, 70), (1, 1500, 400), (4, 1500, 401), (1500, 1, 400)] {
        check_product::<f32>(GemmShape { items: 1, rows, columns, depth }, &[3]);
    }
}

#[test]
fn an_empty_sum_is_zero() {
    check_product::<f32>(GemmShape { items: 2, rows: 20, columns: 50, depth: 0 }, &[1]);
    check_product::<f32>(GemmShape { items: 1, rows: 1, columns: 50, depth: 0 }, &[1]);
}

#[test]
fn a_finish_sees_each_element_once_and_its_place() {
    for (rows, columns, keep) in [(40, 90, true), (40, 90, false), (1, 5000, true), (5000, 1, true)] {
        let sizes = GemmShape { items: 2, rows, columns, depth: 600 };
        let (left, right) =
            (small_integers::<f32>(2 * rows * 600, 1), small_integers::<f32>(2 * columns * 600, 2));
        let expected = expected_product(sizes, &left, false, &right, false);
        let (left, right) = test_matrices(sizes, &left, false, &right, false);
        for isa in isa_levels() {
            let seen = std::sync::Mutex::new(vec![0.0; 2 * rows * columns]);
            let mut output = vec![0.0; 2 * rows * columns];
            BatchedGemm {
                sizes,
                left: GemmOperand::Operand(&left),
                right: GemmOperand::Operand(&right),
                output: keep.then_some(&mut output),
                epilogue: Some(&|mut part| {
                    let (item, columns_of_part) = (part.item, part.columns.clone());
                    for (row, values) in part.rows_mut() {
                        let mut seen = seen.lock().unwrap();
                        for (column, value) in columns_of_part.clone().zip(values) {
                            seen[(item * rows + row) * columns + column] += *value;
                            *value += 1.0;
                        }
                    }
                }),
            }
            .compute(&TestTeam { isa, count: 2 }, &mut ScratchBuffer::without_workspace());
            assert!(*seen.lock().unwrap() == expected, "{sizes:?} on {isa}");
            let finished: Vec<_> = expected.iter().map(|value| value + 1.0).collect();
            assert!(!keep || output == finished, "{sizes:?} on {isa}");
        }
    }
}

#[test]
fn a_matrix_that_reaches_past_its_elements_is_refused() {
    let elements = [0.0f32; 12];
    assert!(StridedMatrix::new(&elements, vec![0], (3, 4), (4, 1)).is_some());
    assert!(StridedMatrix::new(&elements, vec![1], (3, 4), (4, 1)).is_none());
    assert!(StridedMatrix::new(&elements, vec![0], (usize::MAX, usize::MAX), (4, 1)).is_none());
    assert_eq!(
        PanelSource::<f32>::item_count(&StridedMatrix::new(&elements, vec![0, 0], (3, 4), (4, 1)).unwrap()),
        1
    );
}
