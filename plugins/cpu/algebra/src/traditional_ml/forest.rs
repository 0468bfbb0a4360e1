//! Forests: decision trees whose leaves vote for targets.

use oarlock_sdk::{PluginError, Result, ensure};

use super::decision_tree::{SplitCondition, TreeBranch, TreeNode};
use super::traversal::{INTERLEAVED_WALKS, PackedForest};

/// How the votes for a target are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AggregateFunction {
    Mean,
    Sum,
    Least,
    Most,
}

/// The votes for a target: `None` before the first, then their combination.
pub(super) type TargetScore = Option<f64>;

/// Trees that vote together.
#[derive(Debug)]
pub(super) struct DecisionForest {
    pub(super) questions: Vec<TreeNode>,
    /// The votes of each leaf: targets and their weights.
    pub(super) leaves: Vec<Vec<(usize, f64)>>,
    pub(super) sets: Vec<Vec<f64>>,
    pub(super) roots: Vec<TreeBranch>,
    pub(super) targets: usize,
    pub(super) aggregate: AggregateFunction,
}

impl DecisionForest {
    /// Prepares the forest for voting, if every branch leads somewhere and there is no cycle.
    pub(super) fn prepare(self) -> Result<PreparedForest> {
        self.check_branches()?;
        let (features, walk) = (self.feature_count(), PackedForest::try_pack(&self.questions, &self.roots));
        Ok(PreparedForest { forest: self, features, walk })
    }

    fn check_branches(&self) -> Result<()> {
        let exists = |branch: TreeBranch| match branch {
            TreeBranch::Question(index) => index < self.questions.len(),
            TreeBranch::Leaf(index) => index < self.leaves.len(),
        };
        let lead = self.questions.iter().all(|question| exists(question.yes) && exists(question.no));
        ensure!(
            lead && self.roots.iter().all(|root| exists(*root)),
            invalid_argument,
            "expected trees whose answers lead to nodes, found some that lead nowhere"
        );
        let votes = self.leaves.iter().flatten();
        if let Some((wrong, _)) = votes.into_iter().find(|(target, _)| *target >= self.targets) {
            let targets = self.targets;
            return Err(PluginError::out_of_range(format!(
                "expected votes for {targets} targets, found one for {wrong}"
            )));
        }
        self.check_for_cycles()
    }

    /// Removes questions that no other leads to, as long as there are any. What is left has a cycle.
    fn check_for_cycles(&self) -> Result<()> {
        let mut leading = vec![0usize; self.questions.len()];
        let next = |question: &TreeNode| [question.yes, question.no];
        for branch in self.questions.iter().flat_map(next) {
            if let TreeBranch::Question(index) = branch {
                leading[index] += 1;
            }
        }
        let mut free: Vec<usize> = (0..leading.len()).filter(|index| leading[*index] == 0).collect();
        let mut taken = 0;
        while let Some(index) = free.pop() {
            taken += 1;
            for branch in next(&self.questions[index]) {
                if let TreeBranch::Question(other) = branch {
                    leading[other] -= 1;
                    if leading[other] == 0 {
                        free.push(other);
                    }
                }
            }
        }
        let left = self.questions.len() - taken;
        ensure!(left == 0, invalid_argument, "expected trees, found {left} nodes that go round in circles");
        Ok(())
    }

    /// The number of features that questions refer to.
    fn feature_count(&self) -> usize {
        self.questions.iter().map(|question| question.feature.saturating_add(1)).max().unwrap_or(0)
    }

    /// The leaf that a row reaches from a root.
    fn find_leaf(&self, root: TreeBranch, row: &[f64]) -> usize {
        // This ends: a forest with a cycle is refused when it is prepared.
        let mut branch = root;
        loop {
            match branch {
                TreeBranch::Leaf(index) => return index,
                TreeBranch::Question(index) => {
                    let question = &self.questions[index];
                    let answer = self.takes_true_branch(question, row[question.feature]);
                    branch = if answer { question.yes } else { question.no };
                }
            }
        }
    }

    /// Adds the votes of a leaf to the scores of a row.
    #[inline(always)]
    fn add_leaf_votes(&self, leaf: usize, scores: &mut [TargetScore]) {
        for (target, weight) in &self.leaves[leaf] {
            let score = &mut scores[*target];
            *score = Some(match (*score, self.aggregate) {
                // The first vote is taken as it is. A start of 0 would win a minimum over positive votes.
                (None, _) => *weight,
                (Some(score), AggregateFunction::Sum | AggregateFunction::Mean) => score + weight,
                (Some(score), AggregateFunction::Least) => score.min(*weight),
                (Some(score), AggregateFunction::Most) => score.max(*weight),
            });
        }
    }

    #[inline(always)]
    fn takes_true_branch(&self, question: &TreeNode, feature: f64) -> bool {
        // For NaN only `Unequal` holds. So all other questions leave the answer to `takes_missing`.
        let answer = match question.comparison {
            SplitCondition::AtMost => feature <= question.value,
            SplitCondition::Below => feature < question.value,
            SplitCondition::AtLeast => feature >= question.value,
            SplitCondition::Above => feature > question.value,
            SplitCondition::Equal => feature == question.value,
            SplitCondition::Unequal => feature != question.value,
            SplitCondition::Member(set) => self.sets[set].contains(&feature),
        };
        answer || question.takes_missing && feature.is_nan()
    }
}

/// Rows that go through one tree before they go through the next, so that the nodes of a tree stay in the cache.
const ROW_BLOCK: usize = 64;
/// The maximum number of scores of a block of rows, unless those of one row are more.
const MAX_BLOCK_SCORES: usize = 1 << 14;

/// A forest that is prepared for voting.
pub(super) struct PreparedForest {
    forest: DecisionForest,
    /// The number of features that questions refer to.
    pub(super) features: usize,
    /// The interleaved walk through its trees, if they only compare sizes.
    walk: Option<PackedForest>,
}

impl PreparedForest {
    pub(super) fn target_count(&self) -> usize {
        self.forest.targets
    }

    pub(super) fn tree_count(&self) -> usize {
        self.forest.roots.len()
    }

    /// The number of rows that are best voted on together.
    pub(super) fn row_block_size(&self) -> usize {
        (MAX_BLOCK_SCORES / self.forest.targets.max(1)).clamp(1, ROW_BLOCK)
    }

    /// Adds the votes of all trees for some rows of features.
    pub(super) fn accumulate_votes<'r>(&self, row: impl Fn(usize) -> &'r [f64], scores: &mut [TargetScore]) {
        scores.fill(None);
        let forest = &self.forest;
        if forest.targets == 0 {
            return;
        }
        // Rows that do not fill a group of walks are handled one by one. On both paths the votes for a row are added in the order
        // of the trees, so rows do not change the bits of others.
        let (blocks, rest) = scores.split_at_mut(match self.walk {
            Some(_) => scores.len() / forest.targets / INTERLEAVED_WALKS * INTERLEAVED_WALKS * forest.targets,
            None => 0,
        });
        if let Some(walk) = &self.walk {
            // Trees outside, rows inside: the nodes of one tree stay in the cache while all rows of the block walk through it.
            for tree in 0..self.tree_count() {
                for (block, scores) in blocks.chunks_exact_mut(INTERLEAVED_WALKS * forest.targets).enumerate()
                {
                    let rows = std::array::from_fn(|lane| row(block * INTERLEAVED_WALKS + lane));
                    let leaves = walk.leaves_of_rows(tree, rows);
                    for (leaf, scores) in leaves.into_iter().zip(scores.chunks_exact_mut(forest.targets)) {
                        forest.add_leaf_votes(leaf, scores);
                    }
                }
            }
        }
        let first = blocks.len() / forest.targets;
        for (index, scores) in rest.chunks_exact_mut(forest.targets).enumerate() {
            self.accumulate_row_votes(row(first + index), scores);
        }
        if forest.aggregate == AggregateFunction::Mean {
            // The mean is over all trees, also over those that did not vote for a target.
            scores.iter_mut().flatten().for_each(|score| *score /= self.tree_count() as f64);
        }
    }

    /// The same for one row, whose walks through several trees are interleaved instead.
    fn accumulate_row_votes(&self, row: &[f64], scores: &mut [TargetScore]) {
        let forest = &self.forest;
        let Some(walk) = &self.walk else {
            forest.roots.iter().for_each(|root| forest.add_leaf_votes(forest.find_leaf(*root, row), scores));
            return;
        };
        for first in (0..self.tree_count()).step_by(INTERLEAVED_WALKS) {
            let trees = first..self.tree_count().min(first + INTERLEAVED_WALKS);
            walk.leaves_of_row(row, trees).for_each(|leaf| forest.add_leaf_votes(leaf, scores));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_node(yes: TreeBranch, no: TreeBranch) -> TreeNode {
        TreeNode { feature: 0, comparison: SplitCondition::AtMost, value: 1.0, takes_missing: false, yes, no }
    }

    fn sample_forest(questions: Vec<TreeNode>) -> DecisionForest {
        DecisionForest {
            questions,
            leaves: vec![vec![(0, 1.0)], vec![(0, 2.0), (1, 3.0)]],
            sets: Vec::new(),
            roots: vec![TreeBranch::Question(0), TreeBranch::Leaf(0)],
            targets: 2,
            aggregate: AggregateFunction::Sum,
        }
    }

    #[test]
    fn votes_of_all_trees_are_added() {
        let voters =
            sample_forest(vec![tree_node(TreeBranch::Leaf(0), TreeBranch::Leaf(1))]).prepare().unwrap();
        let mut scores = [None; 2];
        voters.accumulate_votes(|_| &[1.0], &mut scores);
        assert_eq!(scores, [Some(2.0), None]);
        voters.accumulate_votes(|_| &[f64::NAN], &mut scores);
        assert_eq!(scores, [Some(3.0), Some(3.0)]);
    }

    #[test]
    fn ways_side_by_side_lead_where_ways_alone_do() {
        let comparisons =
            [SplitCondition::AtMost, SplitCondition::Below, SplitCondition::AtLeast, SplitCondition::Above];
        let values = [f64::NEG_INFINITY, -1.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        let mut questions = Vec::new();
        for (at, comparison) in comparisons.into_iter().cycle().take(40).enumerate() {
            let (yes, no) = match at % 3 {
                0 if at + 2 < 40 => (TreeBranch::Question(at + 1), TreeBranch::Question(at + 2)),
                1 => (TreeBranch::Leaf(0), TreeBranch::Leaf(1)),
                _ if at + 3 < 40 => (TreeBranch::Leaf(1), TreeBranch::Question(at + 3)),
                _ => (TreeBranch::Leaf(1), TreeBranch::Leaf(0)),
            };
            let value = values[at * 7 % 5];
            let feature = at % 3;
            questions.push(TreeNode { feature, comparison, value, takes_missing: at % 2 == 0, yes, no });
        }
        // Nothing is below -∞, so such a question cannot be packed.
        questions.iter_mut().filter(|question| question.value == f64::NEG_INFINITY).for_each(|question| {
            question.comparison = SplitCondition::AtMost;
        });
        let roots: Vec<TreeBranch> = (0..40).map(TreeBranch::Question).chain([TreeBranch::Leaf(1)]).collect();
        let make = || DecisionForest { roots: roots.clone(), ..sample_forest(questions.clone()) };
        let (voters, alone) =
            (make().prepare().unwrap(), PreparedForest { walk: None, ..make().prepare().unwrap() });
        assert!(voters.walk.is_some());
        let rows: Vec<[f64; 3]> =
            (0..61).map(|row| [row % 6, row / 6 % 6, row / 36].map(|at: usize| values[at])).collect();
        for count in [1, 7, 8, 9, 61] {
            let mut scores = [vec![None; 2 * count], vec![None; 2 * count]];
            voters.accumulate_votes(|row| &rows[row], &mut scores[0]);
            alone.accumulate_votes(|row| &rows[row], &mut scores[1]);
            assert_eq!(scores[0], scores[1], "{count} rows");
        }
    }

    #[test]
    fn tree_cycles_and_out_of_range_branches_are_refused() {
        let circle = vec![
            tree_node(TreeBranch::Leaf(0), TreeBranch::Question(1)),
            tree_node(TreeBranch::Question(0), TreeBranch::Leaf(0)),
        ];
        assert!(sample_forest(circle).check_branches().unwrap_err().message().contains("circles"));
        assert!(sample_forest(vec![tree_node(TreeBranch::Leaf(9), TreeBranch::Leaf(0))]).prepare().is_err());
        let mut other = sample_forest(vec![tree_node(TreeBranch::Leaf(1), TreeBranch::Leaf(0))]);
        other.targets = 1;
        assert!(other.check_branches().unwrap_err().message().contains("1 targets"));
    }
}
