//! `TreeEnsemble`, and `TreeEnsembleRegressor` and `TreeEnsembleClassifier`, which came before it.

mod described;

use oarlock_sdk::{DtypeSet, Kernel, Operand, Result, dispatch, ensure, family};

use self::described::{Classifier, Trees};
use super::NUMBERS;
use super::finish::of_two;
use super::forest::Score;
use super::linear::largest;
use super::matrix::Matrix;
use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let float = Operand::new(family::FLOATING_AND_HALF).group(1);
    let rows = Operand::new(NUMBERS).named("X").rank(1, 2);
    let scores = Operand::new(DtypeSet::F32).rank(2, 2);
    vec![
        kernel("TreeEnsemble", Trees::new, |cpu, trees, operands| {
            let dtype = operands.call().output(0)?.dtype();
            dispatch!(dtype, floating_and_half, T => regress::<T>(cpu, trees, operands))
        })
        .since(5)
        .inputs([float.named("X").rank(1, 2)])
        .outputs([float.named("Y").rank(2, 2)]),
        kernel("TreeEnsembleRegressor", Trees::regressor, |cpu, trees, operands| {
            regress::<f32>(cpu, trees, operands)
        })
        .inputs([rows])
        .outputs([scores.named("Y")]),
        kernel("TreeEnsembleClassifier", Classifier::new, |cpu, classifier, operands| {
            classify(cpu, classifier, operands)
        })
        .inputs([rows])
        .outputs([Operand::new(DtypeSet::I64).named("Y"), scores.named("Z")]),
    ]
}

fn check_features(trees: &Trees, matrix: &Matrix) -> Result<()> {
    let (asked, found) = (trees.forest.features, matrix.columns);
    ensure!(asked <= found, invalid_argument, "expected rows of at least {asked} features, found {found}");
    Ok(())
}

/// About how many elements a row is worth.
fn work(trees: &Trees) -> usize {
    trees.forest.trees() * 32
}

fn regress<T: Real>(cpu: &Cpu, trees: &Trees, operands: &Operands<'_, '_>) -> Result<()> {
    let matrix = Matrix::new(operands)?;
    check_features(trees, &matrix)?;
    let targets = trees.forest.targets();
    operands.expect_dims(&operands.call().output(0)?, "Y", &[matrix.rows as i64, targets as i64])?;
    if targets == 0 {
        return Ok(());
    }
    let out = Rows::new(operands.write::<T>(0)?, targets);
    in_parallel(cpu, matrix.rows, grain(work(trees)), out, |first, out| {
        let (block, mut scores) = (trees.forest.block(), Vec::new());
        let mut votes: Vec<Score> = vec![None; block.min(out.len() / targets) * targets];
        for (index, out) in out.chunks_mut(block * targets).enumerate() {
            let votes = &mut votes[..out.len()];
            trees.forest.vote(|row| matrix.row(first + index * block + row), votes);
            for (out, votes) in out.chunks_mut(targets).zip(votes.chunks(targets)) {
                scores.clear();
                let score = |(target, vote): (usize, &Score)| vote.unwrap_or(0.0) + trees.base(target);
                scores.extend(votes.iter().enumerate().map(score));
                trees.finish.apply(&mut scores);
                out.iter_mut().zip(&scores).for_each(|(out, score)| *out = T::of_float(T::Float::of(*score)));
            }
        }
    });
    Ok(())
}

fn classify(cpu: &Cpu, classifier: &Classifier, operands: &Operands<'_, '_>) -> Result<()> {
    let trees = &classifier.trees;
    let matrix = Matrix::new(operands)?;
    check_features(trees, &matrix)?;
    let classes = classifier.labels.len();
    let rows = matrix.rows as i64;
    operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
    operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, classes as i64])?;
    let out = (Rows::new(operands.write::<i64>(0)?, 1), Rows::new(operands.write::<f32>(1)?, classes));
    in_parallel(cpu, matrix.rows, grain(work(trees)), out, |first, (labels, out)| {
        let (block, targets) = (trees.forest.block(), trees.forest.targets());
        let mut votes: Vec<Score> = vec![None; block.min(labels.len()) * targets];
        let blocks = labels.chunks_mut(block).zip(out.chunks_mut(block * classes));
        for (index, (labels, out)) in blocks.enumerate() {
            let votes = &mut votes[..labels.len() * targets];
            trees.forest.vote(|row| matrix.row(first + index * block + row), votes);
            let rows = labels.iter_mut().zip(out.chunks_mut(classes));
            for ((label, out), votes) in rows.zip(votes.chunks(targets)) {
                let (best, scores) = classifier.judge(votes);
                *label = classifier.labels[best];
                out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
            }
        }
    });
    Ok(())
}

impl Classifier {
    /// The best class, and the scores of all.
    fn judge(&self, votes: &[Score]) -> (usize, Vec<f64>) {
        let trees = &self.trees;
        if self.labels.len() == 2 && self.votes_for_one {
            return self.judge_two(votes);
        }
        let score = |(class, vote): (usize, &Score)| vote.unwrap_or(0.0) + trees.base(class);
        let mut scores: Vec<f64> = votes.iter().enumerate().map(score).collect();
        let best = largest(&scores);
        trees.finish.apply(&mut scores);
        (best, scores)
    }

    /// Two classes for which only one is voted. A single base value is for the votes for the first.
    fn judge_two(&self, votes: &[Score]) -> (usize, Vec<f64>) {
        let trees = &self.trees;
        let threshold = if self.weights_are_positive { 0.5 } else { 0.0 };
        if let Some(score) = votes[1] {
            let base =
                |class: usize| trees.base_values.get(class).copied().filter(|_| trees.base_values.len() == 2);
            let mut scores = vec![base(0).unwrap_or(0.0), score + base(1).unwrap_or(0.0)];
            trees.finish.apply(&mut scores);
            return (usize::from(score > threshold), scores);
        }
        // Votes for the first class alone speak for the second.
        let score = votes[0].unwrap_or(0.0) + trees.base_values.last().copied().unwrap_or(0.0);
        (usize::from(score > threshold), of_two(score, trees.finish, self.weights_are_positive).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute};

    type Given<'a> = (&'a str, Attribute<'a>);

    /// One question, whether the first feature is at most 1, with a leaf for each answer, and attributes that add to it or
    /// take the place of others.
    fn tree<'a>(more: &[Given<'a>]) -> Vec<Given<'a>> {
        let mut all = vec![
            ("nodes_treeids", Attribute::Ints(&[0, 0, 0])),
            ("nodes_nodeids", Attribute::Ints(&[0, 1, 2])),
            ("nodes_featureids", Attribute::Ints(&[0, 0, 0])),
            ("nodes_values", Attribute::Floats(&[1.0, 0.0, 0.0])),
            ("nodes_modes", Attribute::Texts(&["BRANCH_LEQ", "LEAF", "LEAF"])),
            ("nodes_truenodeids", Attribute::Ints(&[1, 0, 0])),
            ("nodes_falsenodeids", Attribute::Ints(&[2, 0, 0])),
        ];
        for (name, value) in more {
            all.retain(|(other, _)| other != name);
            all.push((name, *value));
        }
        all
    }

    fn votes<'a>(names: [&'a str; 4], ids: &'a [i64]) -> [Given<'a>; 4] {
        [
            (names[0], Attribute::Ints(&[0, 0])),
            (names[1], Attribute::Ints(&[1, 2])),
            (names[2], Attribute::Ints(ids)),
            (names[3], Attribute::Floats(&[0.25, 0.75])),
        ]
    }

    const TARGETS: [&str; 4] = ["target_treeids", "target_nodeids", "target_ids", "target_weights"];
    const CLASSES: [&str; 4] = ["class_treeids", "class_nodeids", "class_ids", "class_weights"];

    #[test]
    fn leaves_vote_for_targets_and_classes() {
        let rows = Array::of(&[3, 1], &[0f32, 1., 2.]);
        let regressor = tree(&[&votes(TARGETS, &[0, 1])[..], &[("n_targets", Attribute::Int(2))]].concat());
        let expected = Array::of(&[3, 2], &[0.25f32, 0., 0.25, 0., 0., 0.75]);
        check("TreeEnsembleRegressor", 3, &regressor, &[Some(&rows)], &[expected]);
        let labels = ("classlabels_int64s", Attribute::Ints(&[7, 8]));
        let classifier = tree(&[&votes(CLASSES, &[0, 0])[..], &[labels]].concat());
        let scores = Array::of(&[3, 2], &[0.75f32, 0.25, 0.75, 0.25, 0.25, 0.75]);
        let expected = [Array::of(&[3], &[7i64, 7, 8]), scores];
        check("TreeEnsembleClassifier", 3, &classifier, &[Some(&rows)], &expected);
    }

    #[test]
    fn hostile_trees_are_refused() {
        let row = Array::of(&[1, 1], &[0f32]);
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1]))];
        for (name, value, expected) in [
            ("nodes_truenodeids", Attribute::Ints(&[0, 0, 0]), "circles"),
            ("nodes_truenodeids", Attribute::Ints(&[9, 0, 0]), "expected a node (0, 9)"),
            ("nodes_nodeids", Attribute::Ints(&[0, 1, 1]), "each node once"),
            ("nodes_values", Attribute::Floats(&[1.0]), "3 `nodes_values`"),
            ("nodes_featureids", Attribute::Ints(&[5, 0, 0]), "at least 6 features"),
            ("nodes_featureids", Attribute::Ints(&[-1, 0, 0]), "`nodes_featureids` of at least 0"),
            ("target_ids", Attribute::Ints(&[0, 4]), "votes for 1 targets"),
            ("n_targets", Attribute::Int(i64::MAX), "targets"),
        ] {
            let targets = [("n_targets", Attribute::Int(1))];
            let attributes = tree(&[&votes(TARGETS, &[0, 0])[..], &targets, &[(name, value)]].concat());
            let message = refusal("TreeEnsembleRegressor", 3, &attributes, &[Some(&row)], &outputs);
            assert!(message.contains(expected), "{name}: {message}");
        }
    }
}
