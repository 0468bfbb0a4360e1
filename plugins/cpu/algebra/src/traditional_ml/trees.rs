//! `TreeEnsemble`, and `TreeEnsembleRegressor` and `TreeEnsembleClassifier`, which came before it.

mod tree_attributes;

use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{DtypeSet, Kernel, OperandSpec, Result, dispatch, ensure, family};

use self::tree_attributes::{TreeClassifier, TreeEnsemble};
use super::FEATURE_DTYPES;
use super::feature_matrix::FeatureMatrix;
use super::forest::TargetScore;
use super::linear_model::index_of_largest;
use super::post_transform::binary_scores;

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

fn check_features(trees: &TreeEnsemble, matrix: &FeatureMatrix) -> Result<()> {
    // Once for all rows, so that the walks through the trees cannot fail.
    let (asked, found) = (trees.forest.features, matrix.columns);
    ensure!(asked <= found, invalid_argument, "expected rows of at least {asked} features, found {found}");
    Ok(())
}

/// The approximate cost of a row, in elements.
fn row_cost(trees: &TreeEnsemble) -> usize {
    trees.forest.tree_count() * 32
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
    let out = OutputRows::new(operands.write_output::<T>(0)?, targets);
    parallel_for_parts(cpu, matrix.rows, grain_for(row_cost(trees)), out, |first, out| {
        let (block, mut scores) = (trees.forest.row_block_size(), Vec::new());
        let mut votes: Vec<TargetScore> = vec![None; block.min(out.len() / targets) * targets];
        for (index, out) in out.chunks_mut(block * targets).enumerate() {
            let votes = &mut votes[..out.len()];
            trees.forest.accumulate_votes(|row| matrix.row(first + index * block + row), votes);
            for (out, votes) in out.chunks_mut(targets).zip(votes.chunks(targets)) {
                scores.clear();
                let score =
                    |(target, vote): (usize, &TargetScore)| vote.unwrap_or(0.0) + trees.base_value(target);
                scores.extend(votes.iter().enumerate().map(score));
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
    parallel_for_parts(cpu, matrix.rows, grain_for(row_cost(trees)), out, |first, (labels, out)| {
        let (block, targets) = (trees.forest.row_block_size(), trees.forest.target_count());
        let mut votes: Vec<TargetScore> = vec![None; block.min(labels.len()) * targets];
        let blocks = labels.chunks_mut(block).zip(out.chunks_mut(block * classes));
        for (index, (labels, out)) in blocks.enumerate() {
            let votes = &mut votes[..labels.len() * targets];
            trees.forest.accumulate_votes(|row| matrix.row(first + index * block + row), votes);
            let rows = labels.iter_mut().zip(out.chunks_mut(classes));
            for ((label, out), votes) in rows.zip(votes.chunks(targets)) {
                let (best, scores) = classifier.classify_votes(votes);
                *label = classifier.labels[best];
                out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
            }
        }
    });
    Ok(())
}

impl TreeClassifier {
    /// The best class, and the scores of all.
    fn classify_votes(&self, votes: &[TargetScore]) -> (usize, Vec<f64>) {
        let trees = &self.trees;
        if self.labels.len() == 2 && self.votes_for_one {
            return self.classify_binary_votes(votes);
        }
        let score = |(class, vote): (usize, &TargetScore)| vote.unwrap_or(0.0) + trees.base_value(class);
        let mut scores: Vec<f64> = votes.iter().enumerate().map(score).collect();
        // Before the transform, as `SOFTMAX_ZERO` does not keep the order of scores.
        let best = index_of_largest(&scores);
        trees.finish.apply_to_scores(&mut scores);
        (best, scores)
    }

    /// Two classes with votes for only one of them. A single base value counts for the first.
    fn classify_binary_votes(&self, votes: &[TargetScore]) -> (usize, Vec<f64>) {
        let trees = &self.trees;
        // Positive weights count as a probability, where a half is the border; others as a margin, where 0 is.
        let threshold = if self.weights_are_positive { 0.5 } else { 0.0 };
        if let Some(score) = votes[1] {
            let base =
                |class: usize| trees.base_values.get(class).copied().filter(|_| trees.base_values.len() == 2);
            let mut scores = vec![base(0).unwrap_or(0.0), score + base(1).unwrap_or(0.0)];
            trees.finish.apply_to_scores(&mut scores);
            return (usize::from(score > threshold), scores);
        }
        // Votes for the first class alone speak for the second.
        let score = votes[0].unwrap_or(0.0) + trees.base_values.last().copied().unwrap_or(0.0);
        (
            usize::from(score > threshold),
            binary_scores(score, trees.finish, self.weights_are_positive).to_vec(),
        )
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
