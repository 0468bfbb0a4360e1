//! Compares attention with naive sums, for all forms of operands and at the edges of blocks.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{DisjointSlice, ScratchBuffer};
use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, f16};

use super::blocked::{BlockedAttentionOperands, KeyValueCache, compute_blocked};
use super::geometry::{AttentionShape, HeadStrides};
use super::mask::AttentionMask;
use crate::KERNELS;

/// A call: sizes, forms of operands and attributes.
#[derive(Clone, Debug)]
struct AttentionCase {
    batches: i64,
    heads: i64,
    shared: i64,
    queries: i64,
    fresh: i64,
    past: i64,
    size: i64,
    value_size: i64,
    /// True if heads are contiguous within each row.
    is_narrow: bool,
    mask: Option<Vec<i64>>,
    is_flags: bool,
    is_causal: bool,
    window: [i64; 2],
    softcap: f64,
    lengths: Option<Vec<i64>>,
    has_present: bool,
}

const PLAIN_CASE: AttentionCase = AttentionCase {
    batches: 2,
    heads: 3,
    shared: 3,
    queries: 5,
    fresh: 7,
    past: 0,
    size: 8,
    value_size: 8,
    is_narrow: false,
    mask: None,
    is_flags: false,
    is_causal: false,
    window: [-1, -1],
    softcap: 0.0,
    lengths: None,
    has_present: false,
};

fn random_numbers(count: i64, seed: u32) -> Vec<f32> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 22) as f32 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

/// The rows of heads, with the heads in the last dimension or in a separate one.
struct TestHeads {
    values: Vec<f32>,
    dims: Vec<i64>,
    heads: i64,
    rows: i64,
    size: i64,
}

impl TestHeads {
    fn new(is_narrow: bool, [batches, heads, rows, size]: [i64; 4], seed: u32) -> Self {
        let dims =
            if is_narrow { vec![batches, rows, heads * size] } else { vec![batches, heads, rows, size] };
        Self { values: random_numbers(batches * heads * rows * size, seed), dims, heads, rows, size }
    }

    fn element_index(&self, [batch, head, row, at]: [i64; 4]) -> usize {
        let line = if self.dims.len() == 3 {
            (batch * self.rows + row) * self.heads + head
        } else {
            (batch * self.heads + head) * self.rows + row
        };
        (line * self.size + at) as usize
    }

    fn element_at(&self, place: [i64; 4]) -> f64 {
        f64::from(self.values[self.element_index(place)])
    }

    fn to_array(&self) -> TestArray {
        TestArray::from_values(&self.dims, &self.values)
    }
}

impl AttentionCase {
    fn check_case(&self) {
        let Self { batches, heads, shared, queries, fresh, past, size, value_size, .. } = *self;
        let total = past + fresh;
        let q = TestHeads::new(self.is_narrow, [batches, heads, queries, size], 1);
        let k = TestHeads::new(self.is_narrow, [batches, shared, fresh, size], 2);
        let v = TestHeads::new(self.is_narrow, [batches, shared, fresh, value_size], 3);
        let past_k = TestHeads::new(false, [batches, shared, past, size], 4);
        let past_v = TestHeads::new(false, [batches, shared, past, value_size], 5);
        let mask = self.mask.as_ref().map(|dims| random_numbers(dims.iter().product(), 6));
        let cached = |past_part: &TestHeads, part: &TestHeads, [batch, head, row, at]: [i64; 4]| {
            let head = head / (heads / shared);
            if row < past {
                past_part.element_at([batch, head, row, at])
            } else {
                part.element_at([batch, head, row - past, at])
            }
        };
        let mut expected = TestHeads::new(self.is_narrow, [batches, heads, queries, value_size], 7);
        for place in 0..batches * heads * queries {
            let (batch, head, row) = (place / queries / heads, place / queries % heads, place % queries);
            let before = self.lengths.as_ref().map_or(past, |lengths| lengths[batch as usize] - queries);
            let mut scores: Vec<f64> = (0..total)
                .map(|key| {
                    let product = |at| {
                        q.element_at([batch, head, row, at]) * cached(&past_k, &k, [batch, head, key, at])
                    };
                    let mut score = (0..size).map(product).sum::<f64>() / (size as f64).sqrt();
                    if self.softcap > 0.0 {
                        score = self.softcap * (score / self.softcap).tanh();
                    }
                    if let (Some(dims), Some(mask)) = (&self.mask, &mask) {
                        let whole = [batch, head, row, key];
                        let [outer @ .., keys] = dims.as_slice() else { panic!("a mask of keys") };
                        let index = outer
                            .iter()
                            .zip(&whole[3 - outer.len()..])
                            .fold(0, |at, (dim, place)| at * dim + place % dim);
                        match mask.get((index * keys + key) as usize).filter(|_| key < *keys) {
                            None => score = f64::NEG_INFINITY,
                            Some(number) if self.is_flags && *number < 0.0 => score = f64::NEG_INFINITY,
                            Some(_) if self.is_flags => {}
                            Some(number) => score += f64::from(*number),
                        }
                    }
                    let distance = key - (before + row);
                    let is_hidden = self.is_causal && distance > 0
                        || self.window[0] >= 0 && -distance > self.window[0]
                        || self.window[1] >= 0 && distance > self.window[1]
                        || self.lengths.as_ref().is_some_and(|lengths| key >= lengths[batch as usize]);
                    if is_hidden { f64::NEG_INFINITY } else { score }
                })
                .collect();
            let greatest = scores.iter().copied().fold(f64::MIN, f64::max);
            scores.iter_mut().for_each(|score| *score = (*score - greatest).exp());
            let sum = scores.iter().sum::<f64>();
            for at in 0..value_size {
                let share =
                    |(key, score): (usize, &f64)| score * cached(&past_v, &v, [batch, head, key as i64, at]);
                let mean =
                    scores.iter().enumerate().map(share).sum::<f64>() / if sum > 0.0 { sum } else { 1.0 };
                let index = expected.element_index([batch, head, row, at]);
                expected.values[index] = mean as f32;
            }
        }
        let mask = self.mask.as_ref().zip(mask).map(|(dims, mask)| {
            if self.is_flags {
                TestArray::from_values(dims, &mask.iter().map(|number| *number >= 0.0).collect::<Vec<_>>())
            } else {
                TestArray::from_values(dims, &mask)
            }
        });
        let lengths = self.lengths.as_ref().map(|lengths| TestArray::from_values(&[batches], lengths));
        let (past_k, past_v) = (past_k.to_array(), past_v.to_array());
        let has_past = past > 0;
        let inputs = [
            Some(&q.to_array()),
            Some(&k.to_array()),
            Some(&v.to_array()),
            mask.as_ref(),
            has_past.then_some(&past_k),
            has_past.then_some(&past_v),
            lengths.as_ref(),
        ]
        .map(|input| input.cloned());
        let mut attributes = vec![
            ("is_causal", TestAttribute::Int(self.is_causal.into())),
            ("softcap", TestAttribute::Float(self.softcap)),
            ("left_window_size", TestAttribute::Int(self.window[0])),
            ("right_window_size", TestAttribute::Int(self.window[1])),
        ];
        if self.is_narrow {
            attributes.extend([
                ("q_num_heads", TestAttribute::Int(heads)),
                ("kv_num_heads", TestAttribute::Int(shared)),
            ]);
        }
        let (keys, values) = ([batches, shared, total, size], [batches, shared, total, value_size]);
        let outputs = [
            Some((Dtype::F32, expected.dims.as_slice())),
            self.has_present.then_some((Dtype::F32, keys.as_slice())),
            self.has_present.then_some((Dtype::F32, values.as_slice())),
        ];
        let inputs = inputs.each_ref().map(Option::as_ref);
        for isa in ["scalar", "sse4.1", "avx2", "avx512"] {
            let found = KERNELS.run_with_isa(isa, "Attention", 25, &attributes, &inputs, &outputs).unwrap();
            let output = found[0].as_ref().unwrap().values::<f32>();
            for (index, (expected, found)) in expected.values.iter().zip(output).enumerate() {
                let is_close = (expected - found).abs() <= 1e-5 * (1.0 + expected.abs());
                assert!(is_close, "{self:?} with {isa}: element {index} is {found} and not {expected}");
            }
            for (present, (past_part, part)) in found[1..].iter().zip([(&past_k, &k), (&past_v, &v)]) {
                let Some(present) = present else { continue };
                let (present, past_part, size) =
                    (present.values::<f32>(), past_part.values::<f32>(), part.size);
                for (index, found) in present.iter().enumerate() {
                    let (line, at) = (index as i64 / size, index as i64 % size);
                    let (head, row) = (line / total, line % total);
                    let expected = if row < past {
                        past_part[((head * past + row) * size + at) as usize]
                    } else {
                        part.element_at([head / shared, head % shared, row - past, at]) as f32
                    };
                    assert!(*found == expected, "{self:?} with {isa}: the present at {index}");
                }
            }
        }
    }
}

#[test]
fn heads_of_all_sizes_are_attended_to() {
    for number in 0..16 {
        let queries = [1, 2, 4, 5, 14, 15, 29, 130][number % 8];
        let fresh = [1, 7, 31, 33, 64, 129, 255, 257][(number * 3 + number / 8) % 8];
        let [size, value_size] = [[8, 8], [64, 64], [5, 3], [33, 47]][number % 4];
        let (heads, shared) = [(2, 2), (4, 2), (3, 1)][number % 3];
        let is_narrow = number % 2 == 1;
        AttentionCase {
            batches: 1,
            heads,
            shared,
            queries,
            fresh,
            size,
            value_size,
            is_narrow,
            ..PLAIN_CASE
        }
        .check_case();
    }
}

#[test]
fn what_is_past_comes_before_what_is_new() {
    for (past, fresh, queries) in [(1, 1, 1), (128, 1, 1), (300, 3, 3), (256, 40, 40)] {
        for (is_narrow, is_causal) in [(false, true), (true, false)] {
            for (heads, shared) in [(2, 2), (4, 1)] {
                let sizes = AttentionCase {
                    heads,
                    shared,
                    past,
                    fresh,
                    queries,
                    size: 16,
                    value_size: 24,
                    ..PLAIN_CASE
                };
                AttentionCase { batches: 1, is_narrow, is_causal, has_present: true, ..sizes }.check_case();
            }
        }
    }
}

#[test]
fn masks_of_every_rank_broadcast_and_short_masks_hide_positions() {
    for mask in
        [vec![9], vec![5, 9], vec![1, 9], vec![3, 5, 9], vec![2, 1, 5, 9], vec![2, 3, 5, 9], vec![5, 4]]
    {
        for (is_flags, is_causal) in [(false, false), (true, false), (false, true), (true, true)] {
            AttentionCase { mask: Some(mask.clone()), is_flags, is_causal, fresh: 9, ..PLAIN_CASE }
                .check_case();
        }
    }
}

#[test]
fn windows_are_the_same_across_blocks_of_keys() {
    for window in [[3, 0], [0, 0], [100, 20], [-1, 2], [300, -1]] {
        AttentionCase { batches: 1, queries: 290, fresh: 290, heads: 1, shared: 1, window, ..PLAIN_CASE }
            .check_case();
        AttentionCase { batches: 1, queries: 3, fresh: 3, past: 280, window, is_causal: true, ..PLAIN_CASE }
            .check_case();
    }
}

#[test]
fn padding_is_not_looked_at_and_rows_without_keys_are_zero() {
    let lengths = Some(vec![0, 4]);
    for queries in [2, 5] {
        AttentionCase { lengths: lengths.clone(), is_causal: true, queries, ..PLAIN_CASE }.check_case();
        AttentionCase { lengths: lengths.clone(), softcap: 3.0, queries, ..PLAIN_CASE }.check_case();
    }
}

#[test]
fn nothing_comes_of_empty_operands() {
    for case in [
        AttentionCase { fresh: 0, ..PLAIN_CASE },
        AttentionCase { queries: 0, ..PLAIN_CASE },
        AttentionCase { batches: 0, ..PLAIN_CASE },
        AttentionCase { value_size: 0, ..PLAIN_CASE },
        AttentionCase { fresh: 0, past: 3, has_present: true, ..PLAIN_CASE },
    ] {
        case.check_case();
    }
}

#[test]
fn a_hidden_row_is_zero_and_others_show_what_is_no_number() {
    let mut query = vec![1f32; 2 * 4];
    query[0] = f32::NAN;
    query[4] = f32::INFINITY;
    let q = TestArray::from_values(&[1, 1, 2, 4], &query);
    let k = TestArray::from_values(&[1, 1, 3, 4], &[1f32; 12]);
    let run = |mask: &[f32]| {
        let mask = TestArray::from_values(&[2, 3], mask);
        let inputs = [Some(&q), Some(&k), Some(&k), Some(&mask)];
        let found = KERNELS
            .run_with_isa("", "Attention", 23, &[], &inputs, &[Some((Dtype::F32, &[1, 1, 2, 4]))])
            .unwrap();
        found[0].as_ref().unwrap().values::<f32>()
    };
    let hidden = f32::NEG_INFINITY;
    assert_eq!(run(&[hidden; 6]), [0.0; 8]);
    assert!(run(&[0.0, hidden, 0.0, 0.0, 0.0, 0.0]).iter().all(|value| value.is_nan()));
}

#[test]
fn scores_are_shown_in_each_form() {
    let q = TestArray::from_values(&[1, 1, 1, 1], &[2f32]);
    let k = TestArray::from_values(&[1, 1, 2, 1], &[1f32, 3.0]);
    let mask = TestArray::from_values(&[1, 2], &[0.5f32, 0.0]);
    let capped = |score: f32| 4.0 * (score / 4.0).tanh();
    let biased = [capped(2.0) + 0.5, capped(6.0)];
    let share = 1.0 / (1.0 + (biased[0] - biased[1]).exp());
    let forms = [[2.0, 6.0], [capped(2.0), capped(6.0)], biased, [1.0 - share, share]];
    for (mode, expected) in forms.into_iter().enumerate() {
        let attributes = [
            ("softcap", TestAttribute::Float(4.0)),
            ("qk_matmul_output_mode", TestAttribute::Int(mode as i64)),
        ];
        let inputs = [Some(&q), Some(&k), Some(&k), Some(&mask)];
        let outputs: [Option<(Dtype, &[i64])>; 4] =
            [Some((Dtype::F32, &[1, 1, 1, 1])), None, None, Some((Dtype::F32, &[1, 1, 1, 2]))];
        let found = KERNELS.run_with_isa("", "Attention", 24, &attributes, &inputs, &outputs).unwrap();
        let scores = found[3].as_ref().unwrap().values::<f32>();
        assert!(scores.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "mode {mode}: {scores:?}");
        let mean = found[0].as_ref().unwrap().values::<f32>()[0];
        assert!((mean - (1.0 + 2.0 * share)).abs() < 1e-5, "mode {mode}: {mean}");
    }
}

#[test]
fn narrow_floats_are_computed_as_f32() {
    let values: Vec<f16> = random_numbers(2 * 3 * 16, 1).into_iter().map(f16::from_f32).collect();
    let wide: Vec<f32> = values.iter().map(|value| value.to_f32()).collect();
    let dims = [1, 2, 3, 16];
    let run = |operand: TestArray, dtype| {
        let inputs = [Some(&operand), Some(&operand), Some(&operand)];
        KERNELS.run_with_isa("", "Attention", 23, &[], &inputs, &[Some((dtype, &dims))]).unwrap()
    };
    let narrow = run(TestArray::from_values(&dims, &values), Dtype::F16);
    let exact = run(TestArray::from_values(&dims, &wide), Dtype::F32);
    let rounded: Vec<f16> =
        exact[0].as_ref().unwrap().values::<f32>().into_iter().map(f16::from_f32).collect();
    assert_eq!(narrow[0].as_ref().unwrap().values::<f16>(), rounded);
}

/// A team of real threads, each of which runs every n-th piece.
struct AttentionTestTeam(usize);

impl ThreadTeam for AttentionTestTeam {
    fn isa(&self) -> Isa {
        oarlock_cpu_testing::isa_levels::best_isa()
    }

    fn worker_count(&self) -> usize {
        self.0
    }

    fn parallel_for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for thread in 0..self.0 {
                scope.spawn(move || (thread..count).step_by(self.0).for_each(body));
            }
        });
    }
}

#[test]
fn one_thread_and_several_give_the_same_bits() {
    let (queries, keys, size) = (150, 600, 32);
    let steps = |rows| HeadStrides { batch: 2 * rows * size, head: rows * size, row: size };
    let geometry = AttentionShape {
        query: steps(queries),
        key: steps(keys),
        value: steps(keys),
        output: steps(queries),
        ..AttentionShape::example_shape([1, 2, 2], [queries, keys], size)
    };
    let [query, key, value] = [(queries, 1), (keys, 2), (keys, 3)]
        .map(|(rows, seed)| random_numbers((2 * rows * size) as i64, seed));
    let results: Vec<Vec<f32>> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let mut output = vec![0.0; 2 * queries * size];
            let cache =
                |fresh| KeyValueCache { past: &[][..], past_steps: steps(0), fresh, steps: steps(keys) };
            let operands = BlockedAttentionOperands {
                query: &query,
                keys: cache(&key),
                values: cache(&value),
                mask: AttentionMask::without_mask(keys),
                output: DisjointSlice::new(&mut output),
                present_keys: None,
                present_values: None,
            };
            compute_blocked(
                &AttentionTestTeam(threads),
                &geometry,
                &operands,
                &mut ScratchBuffer::without_workspace(),
            );
            output
        })
        .collect();
    assert!(results[0] == results[1] && results[0] == results[2]);
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let (q, k) = (
        TestArray::from_values(&[1, 2, 1, 4], &[1f32; 8]),
        TestArray::from_values(&[1, 2, 1, 3], &[1f32; 6]),
    );
    let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 2, 1, 4]))];
    let message = KERNELS
        .run_with_isa("", "Attention", 23, &[], &[Some(&q), Some(&k), Some(&q)], &outputs)
        .unwrap_err();
    assert!(message.contains("fit together"), "{message}");
    let mask = TestArray::from_values(&[3, 1], &[1f32; 3]);
    let inputs = [Some(&q), Some(&q), Some(&q), Some(&mask)];
    let message = KERNELS.run_with_isa("", "Attention", 23, &[], &inputs, &outputs).unwrap_err();
    assert!(message.contains("expected a mask that repeats"), "{message}");
}
