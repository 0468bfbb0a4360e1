//! `TreeEnsemble`, and `TreeEnsembleRegressor` and `TreeEnsembleClassifier`, which came before it.

mod tree_attributes;

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputBlocks, OutputParts, OutputRows, parallel_for_parts};
use oarlock_sdk::{DtypeSet, Kernel, OperandSpec, Result, dispatch, ensure, family};

use self::tree_attributes::{TreeClassifier, TreeEnsemble};
use super::FEATURE_DTYPES;
use super::feature_matrix::FeatureMatrix;
use super::forest::TargetScore;
use super::linear_model::index_of_largest;
use super::post_transform::binary_scores;
use super::traversal::INTERLEAVED_WALKS;

pub(super) fn tree_kernels() -> Vec<Kernel<Cpu>> {
    let float = OperandSpec::new(family::FLOATING_AND_HALF).with_dtype_group(1);
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scores = OperandSpec::new(DtypeSet::F32).with_rank(2, 2);
    vec![
        operand_kernel("TreeEnsemble", TreeEnsemble::new, |cpu, trees, operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_half, T => regress_rows::<T>(cpu, trees, operands))
        })
        .since_version(5)
        .with_inputs([float.with_name("X").with_rank(1, 2)])
        .with_outputs([float.with_name("Y").with_rank(2, 2)]),
        operand_kernel("TreeEnsembleRegressor", TreeEnsemble::read_regressor, |cpu, trees, operands| {
            regress_rows::<f32>(cpu, trees, operands)
        })
        .with_inputs([rows])
        .with_outputs([scores.with_name("Y")]),
        operand_kernel("TreeEnsembleClassifier", TreeClassifier::new, |cpu, classifier, operands| {
            classify_rows(cpu, classifier, operands)
        })
        .with_inputs([rows])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y"), scores.with_name("Z")]),
    ]
}

fn check_features(trees: &TreeEnsemble, matrix: &FeatureMatrix<'_, f64>) -> Result<()> {
    // Once for all rows, so that the walks through the trees cannot fail.
    let (asked, found) = (trees.forest.features, matrix.columns);
    ensure!(asked <= found, invalid_argument, "expected rows of at least {asked} features, found {found}");
    Ok(())
}

/// How the rows of a call are divided: into blocks, which threads take, unless there are so few that threads share the trees.
struct RowBlocks<'a> {
    trees: &'a TreeEnsemble,
    matrix: &'a FeatureMatrix<'a, f64>,
    cpu: &'a Cpu,
    /// Rows of a block.
    size: usize,
    shares_trees: bool,
}

impl<'a> RowBlocks<'a> {
    fn new(cpu: &'a Cpu, trees: &'a TreeEnsemble, matrix: &'a FeatureMatrix<'a, f64>) -> Self {
        let (forest, threads) = (&trees.forest, cpu.worker_count());
        let shares_trees = forest.is_worth_sharing(matrix.rows, threads);
        let most = forest.row_block_size();
        let of_thread = matrix.rows.div_ceil(threads).next_multiple_of(INTERLEAVED_WALKS);
        let size = if shares_trees { most } else { most.min(of_thread).max(1) };
        Self { trees, matrix, cpu, size, shares_trees }
    }

    /// Runs `body` on threads with parts of the outputs, which begin with a row and contain whole blocks.
    fn for_parts<P: OutputParts>(&self, outputs: P, body: impl Fn(usize, P::Part) + Sync) {
        let Self { size, matrix, .. } = *self;
        let blocks = OutputBlocks { parts: outputs, count: matrix.rows, size };
        let grain = match self.shares_trees {
            true => usize::MAX,
            false => grain_for(self.trees.forest.row_cost().saturating_mul(size)),
        };
        parallel_for_parts(self.cpu, matrix.rows.div_ceil(size), grain, blocks, |block, part| {
            body(block * size, part);
        });
    }

    /// The votes for each row of a block.
    fn count_votes(&self, first: usize, votes: &mut [TargetScore]) {
        let forest = &self.trees.forest;
        let rows = self.matrix.rows_from(first, votes.len() / forest.target_count().max(1));
        forest.accumulate_votes(self.shares_trees.then_some(self.cpu), rows, votes);
    }
}

fn regress_rows<T: FloatElement>(
    cpu: &Cpu,
    trees: &TreeEnsemble,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let matrix = FeatureMatrix::new(operands)?;
    check_features(trees, &matrix)?;
    let targets = trees.forest.target_count();
    operands.expect_dims(&operands.call().output(0)?, "Y", &[matrix.rows as i64, targets as i64])?;
    // Chunks of 0 would panic.
    if targets == 0 {
        return Ok(());
    }
    let blocks = RowBlocks::new(cpu, trees, &matrix);
    blocks.for_parts(OutputRows::new(operands.write_output::<T>(0)?, targets), |first, out| {
        let mut scores = Vec::new();
        let mut votes: Vec<TargetScore> = vec![None; (blocks.size * targets).min(out.len())];
        for (index, out) in out.chunks_mut(blocks.size * targets).enumerate() {
            let votes = &mut votes[..out.len()];
            blocks.count_votes(first + index * blocks.size, votes);
            for (out, votes) in out.chunks_mut(targets).zip(votes.chunks(targets)) {
                trees.score_targets(votes, &mut scores);
                trees.finish.apply_to_scores(&mut scores);
                out.iter_mut()
                    .zip(&scores)
                    .for_each(|(out, score)| *out = T::from_float(T::Float::from_f64(*score)));
            }
        }
    });
    Ok(())
}

fn classify_rows(cpu: &Cpu, classifier: &TreeClassifier, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let trees = &classifier.trees;
    let matrix = FeatureMatrix::new(operands)?;
    check_features(trees, &matrix)?;
    let classes = classifier.labels.len();
    let rows = matrix.rows as i64;
    operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
    operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, classes as i64])?;
    let out = (
        OutputRows::new(operands.write_output::<i64>(0)?, 1),
        OutputRows::new(operands.write_output::<f32>(1)?, classes),
    );
    let blocks = RowBlocks::new(cpu, trees, &matrix);
    blocks.for_parts(out, |first, (labels, out)| {
        let (size, targets) = (blocks.size, trees.forest.target_count());
        let mut scores = Vec::new();
        let mut votes: Vec<TargetScore> = vec![None; size.min(labels.len()) * targets];
        let parts = labels.chunks_mut(size).zip(out.chunks_mut(size * classes));
        for (index, (labels, out)) in parts.enumerate() {
            let votes = &mut votes[..labels.len() * targets];
            blocks.count_votes(first + index * size, votes);
            let rows = labels.iter_mut().zip(out.chunks_mut(classes));
            for ((label, out), votes) in rows.zip(votes.chunks(targets)) {
                *label = classifier.labels[classifier.classify_votes(votes, &mut scores)];
                out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
            }
        }
    });
    Ok(())
}

impl TreeEnsemble {
    /// The scores of all targets, before the last transform.
    fn score_targets(&self, votes: &[TargetScore], scores: &mut Vec<f64>) {
        scores.clear();
        let score = |(target, vote): (usize, &TargetScore)| vote.unwrap_or(0.0) + self.base_value(target);
        scores.extend(votes.iter().enumerate().map(score));
    }
}

impl TreeClassifier {
    /// The best class; `scores` receives the scores of all.
    fn classify_votes(&self, votes: &[TargetScore], scores: &mut Vec<f64>) -> usize {
        if self.labels.len() == 2 && self.votes_for_one {
            return self.classify_binary_votes(votes, scores);
        }
        self.trees.score_targets(votes, scores);
        // Before the transform, as `SOFTMAX_ZERO` does not keep the order of scores.
        let best = index_of_largest(scores);
        self.trees.finish.apply_to_scores(scores);
        best
    }

    /// Two classes with votes for only one of them. A single base value counts for the first.
    fn classify_binary_votes(&self, votes: &[TargetScore], scores: &mut Vec<f64>) -> usize {
        let trees = &self.trees;
        scores.clear();
        // Positive weights count as a probability, where a half is the border; others as a margin, where 0 is.
        let threshold = if self.weights_are_positive { 0.5 } else { 0.0 };
        if let Some(score) = votes[1] {
            let base =
                |class: usize| trees.base_values.get(class).copied().filter(|_| trees.base_values.len() == 2);
            scores.extend([base(0).unwrap_or(0.0), score + base(1).unwrap_or(0.0)]);
            trees.finish.apply_to_scores(scores);
            return usize::from(score > threshold);
        }
        // Votes for the first class alone speak for the second.
        let score = votes[0].unwrap_or(0.0) + trees.base_values.last().copied().unwrap_or(0.0);
        scores.extend(binary_scores(score, trees.finish, self.weights_are_positive));
        usize::from(score > threshold)
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    type NamedAttribute<'a> = (&'a str, TestAttribute<'a>);

    /// A stump: whether the first feature is at most 1, with a leaf for each answer. More attributes add to it or replace others.
    fn stump_attributes<'a>(more: &[NamedAttribute<'a>]) -> Vec<NamedAttribute<'a>> {
        let mut all = vec![
            ("nodes_treeids", TestAttribute::Ints(&[0, 0, 0])),
            ("nodes_nodeids", TestAttribute::Ints(&[0, 1, 2])),
            ("nodes_featureids", TestAttribute::Ints(&[0, 0, 0])),
            ("nodes_values", TestAttribute::Floats(&[1.0, 0.0, 0.0])),
            ("nodes_modes", TestAttribute::Texts(&["BRANCH_LEQ", "LEAF", "LEAF"])),
            ("nodes_truenodeids", TestAttribute::Ints(&[1, 0, 0])),
            ("nodes_falsenodeids", TestAttribute::Ints(&[2, 0, 0])),
        ];
        for (name, value) in more {
            all.retain(|(other, _)| other != name);
            all.push((name, *value));
        }
        all
    }

    fn vote_attributes<'a>(names: [&'a str; 4], ids: &'a [i64]) -> [NamedAttribute<'a>; 4] {
        [
            (names[0], TestAttribute::Ints(&[0, 0])),
            (names[1], TestAttribute::Ints(&[1, 2])),
            (names[2], TestAttribute::Ints(ids)),
            (names[3], TestAttribute::Floats(&[0.25, 0.75])),
        ]
    }

    const TARGET_ATTRIBUTES: [&str; 4] = ["target_treeids", "target_nodeids", "target_ids", "target_weights"];
    const CLASS_ATTRIBUTES: [&str; 4] = ["class_treeids", "class_nodeids", "class_ids", "class_weights"];

    #[test]
    fn leaves_vote_for_targets_and_classes() {
        let rows = TestArray::from_values(&[3, 1], &[0f32, 1., 2.]);
        let regressor = stump_attributes(
            &[&vote_attributes(TARGET_ATTRIBUTES, &[0, 1])[..], &[("n_targets", TestAttribute::Int(2))]]
                .concat(),
        );
        let expected = TestArray::from_values(&[3, 2], &[0.25f32, 0., 0.25, 0., 0., 0.75]);
        KERNELS.check_kernel("TreeEnsembleRegressor", 3, &regressor, &[Some(&rows)], &[expected]);
        let labels = ("classlabels_int64s", TestAttribute::Ints(&[7, 8]));
        let classifier =
            stump_attributes(&[&vote_attributes(CLASS_ATTRIBUTES, &[0, 0])[..], &[labels]].concat());
        let scores = TestArray::from_values(&[3, 2], &[0.75f32, 0.25, 0.75, 0.25, 0.25, 0.75]);
        let expected = [TestArray::from_values(&[3], &[7i64, 7, 8]), scores];
        KERNELS.check_kernel("TreeEnsembleClassifier", 3, &classifier, &[Some(&rows)], &expected);
    }

    #[test]
    fn trees_that_threads_share_vote_in_order() {
        // Each tree is a leaf. Sums of 64 trees are added up.
        let trees: Vec<i64> = (0..200).collect();
        let zeros = vec![0; 200];
        let weights: Vec<f64> = (0..200).map(|tree| f64::from(1.0 / (tree + 1) as f32)).collect();
        let sum = |weights: &[f64]| weights.iter().sum::<f64>();
        let expected = weights.chunks(64).map(sum).sum::<f64>() as f32;
        let attributes = [
            ("nodes_treeids", TestAttribute::Ints(&trees)),
            ("nodes_nodeids", TestAttribute::Ints(&zeros)),
            ("nodes_featureids", TestAttribute::Ints(&zeros)),
            ("nodes_values", TestAttribute::Floats(&[0.0; 200])),
            ("nodes_modes", TestAttribute::Texts(&["LEAF"; 200])),
            ("nodes_truenodeids", TestAttribute::Ints(&zeros)),
            ("nodes_falsenodeids", TestAttribute::Ints(&zeros)),
            ("target_treeids", TestAttribute::Ints(&trees)),
            ("target_nodeids", TestAttribute::Ints(&zeros)),
            ("target_ids", TestAttribute::Ints(&zeros)),
            ("target_weights", TestAttribute::Floats(&weights)),
            ("n_targets", TestAttribute::Int(1)),
        ];
        for rows in [1, 3, 1000] {
            let x = TestArray::from_values(&[rows, 1], &vec![0f32; rows as usize]);
            let y = TestArray::from_values(&[rows, 1], &vec![expected; rows as usize]);
            KERNELS.check_kernel("TreeEnsembleRegressor", 3, &attributes, &[Some(&x)], &[y]);
        }
    }

    #[test]
    fn hostile_trees_are_refused() {
        let row = TestArray::from_values(&[1, 1], &[0f32]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1]))];
        for (name, value, expected) in [
            ("nodes_truenodeids", TestAttribute::Ints(&[0, 0, 0]), "circles"),
            ("nodes_truenodeids", TestAttribute::Ints(&[9, 0, 0]), "expected a node (0, 9)"),
            ("nodes_nodeids", TestAttribute::Ints(&[0, 1, 1]), "each node once"),
            ("nodes_values", TestAttribute::Floats(&[1.0]), "3 `nodes_values`"),
            ("nodes_featureids", TestAttribute::Ints(&[5, 0, 0]), "at least 6 features"),
            ("nodes_featureids", TestAttribute::Ints(&[-1, 0, 0]), "`nodes_featureids` of at least 0"),
            ("target_ids", TestAttribute::Ints(&[0, 4]), "votes for 1 targets"),
            ("n_targets", TestAttribute::Int(i64::MAX), "targets"),
        ] {
            let targets = [("n_targets", TestAttribute::Int(1))];
            let attributes = stump_attributes(
                &[&vote_attributes(TARGET_ATTRIBUTES, &[0, 0])[..], &targets, &[(name, value)]].concat(),
            );
            let message =
                KERNELS.refusal_message("TreeEnsembleRegressor", 3, &attributes, &[Some(&row)], &outputs);
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
}
