//! Forests: decision trees whose leaves vote for targets.

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{PluginError, Result, ensure};

use super::decision_tree::{LeafVotes, SplitCondition, TreeBranch, TreeNode};
use super::feature_matrix::FeatureRows;
use super::traversal::{INTERLEAVED_WALKS, PackedForest, ReachedLeaf};

/// How the votes for a target are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AggregateFunction {
    Mean,
    Sum,
    Least,
    Most,
}

impl AggregateFunction {
    #[inline(always)]
    fn add_vote(self, score: &mut TargetScore, weight: f64) {
        *score = Some(match (*score, self) {
            // The first vote is taken as it is. A start of 0 would win a minimum over positive votes.
            (None, _) => weight,
            (Some(score), Self::Sum | Self::Mean) => score + weight,
            (Some(score), Self::Least) => score.min(weight),
            (Some(score), Self::Most) => score.max(weight),
        });
    }
}

/// The votes for a target: `None` before the first, then their combination.
pub(super) type TargetScore = Option<f64>;

/// Trees that vote together.
#[derive(Debug)]
pub(super) struct DecisionForest {
    pub(super) questions: Vec<TreeNode>,
    pub(super) leaves: LeafVotes,
    pub(super) sets: Vec<Vec<f64>>,
    pub(super) roots: Vec<TreeBranch>,
    pub(super) targets: usize,
    pub(super) aggregate: AggregateFunction,
}

impl DecisionForest {
    /// Prepares the forest for voting, if every branch leads somewhere and there is no cycle.
    pub(super) fn prepare(self) -> Result<PreparedForest> {
        self.check_branches()?;
        let walk = PackedForest::try_pack(&self.questions, &self.leaves, &self.roots);
        let features = self.feature_count();
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
        let mut votes = self.leaves.all_votes().iter();
        if let Some((wrong, _)) = votes.find(|(target, _)| *target >= self.targets) {
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
        for (target, weight) in self.leaves.of_leaf(leaf) {
            self.aggregate.add_vote(&mut scores[*target], *weight);
        }
    }

    #[inline(always)]
    fn add_reached_votes(&self, leaf: ReachedLeaf, scores: &mut [TargetScore]) {
        match leaf {
            ReachedLeaf::Vote { target, weight } => self.aggregate.add_vote(&mut scores[target], weight),
            ReachedLeaf::Leaf(leaf) => self.add_leaf_votes(leaf, scores),
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
/// Threads share the trees of a forest in at most this many chunks. Each chunk has scores of its own, which are added up in order, so
/// that results do not depend on the number of threads.
const MAX_CHUNKS: usize = 32;
/// The minimum number of trees of a chunk.
const MIN_CHUNK_TREES: usize = 64;

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

    /// The votes of all leaves.
    pub(super) fn all_votes(&self) -> &[(usize, f64)] {
        self.forest.leaves.all_votes()
    }

    /// The number of rows that are best voted on together.
    pub(super) fn row_block_size(&self) -> usize {
        (MAX_BLOCK_SCORES / self.forest.targets.max(1)).clamp(1, ROW_BLOCK)
    }

    fn chunk_size(&self) -> usize {
        self.tree_count().div_ceil(MAX_CHUNKS).max(MIN_CHUNK_TREES)
    }

    /// True if sharing the trees keeps no fewer of these threads busy than sharing the rows does.
    pub(super) fn is_worth_sharing(&self, rows: usize, threads: usize) -> bool {
        // With more blocks than this, each thread has rows enough to keep the nodes of a tree in its cache.
        let has_few_blocks = rows.div_ceil(self.row_block_size()) < 2 * threads;
        let groups = rows.div_ceil(INTERLEAVED_WALKS);
        has_few_blocks && self.tree_count().div_ceil(self.chunk_size()).min(threads) >= groups.min(threads)
    }

    /// The approximate cost of a row, in elements.
    pub(super) fn row_cost(&self) -> usize {
        self.tree_count() * 32
    }

    /// Counts the votes of all trees for some rows of features. With `shared`, the threads of that device share the trees.
    pub(super) fn accumulate_votes(
        &self,
        shared: Option<&Cpu>,
        rows: FeatureRows<'_>,
        scores: &mut [TargetScore],
    ) {
        scores.fill(None);
        let (trees, size) = (self.tree_count(), self.chunk_size());
        let chunks = trees.div_ceil(size);
        let chunk_trees = |chunk: usize| chunk * size..trees.min((chunk + 1) * size);
        match shared {
            _ if self.forest.targets == 0 => return,
            _ if chunks <= 1 => self.add_tree_votes(0..trees, rows, scores),
            // Every chunk needs scores of its own, and a single row may have many.
            Some(cpu) if scores.len() <= MAX_BLOCK_SCORES => {
                let mut parts: Vec<TargetScore> = vec![None; chunks * scores.len()];
                let cost = (self.row_cost() / chunks).saturating_mul(rows.count());
                let out = OutputRows::new(&mut parts, scores.len());
                parallel_for_parts(cpu, chunks, grain_for(cost), out, |first, parts| {
                    for (index, part) in parts.chunks_exact_mut(scores.len()).enumerate() {
                        self.add_tree_votes(chunk_trees(first + index), rows, part);
                    }
                });
                parts.chunks_exact(scores.len()).for_each(|part| self.add_scores(part, scores));
            }
            _ => {
                let mut part: Vec<TargetScore> = vec![None; scores.len()];
                for chunk in 0..chunks {
                    part.fill(None);
                    self.add_tree_votes(chunk_trees(chunk), rows, &mut part);
                    self.add_scores(&part, scores);
                }
            }
        }
        if self.forest.aggregate == AggregateFunction::Mean {
            // The mean is over all trees, also over those that did not vote for a target.
            scores.iter_mut().flatten().for_each(|score| *score /= trees as f64);
        }
    }

    fn add_scores(&self, part: &[TargetScore], scores: &mut [TargetScore]) {
        for (score, part) in scores.iter_mut().zip(part) {
            part.iter().for_each(|part| self.forest.aggregate.add_vote(score, *part));
        }
    }

    fn add_tree_votes(&self, trees: Range<usize>, rows: FeatureRows<'_>, scores: &mut [TargetScore]) {
        if rows.has_nan() {
            self.add_votes_in_order::<true>(trees, rows, scores);
        } else {
            self.add_votes_in_order::<false>(trees, rows, scores);
        }
    }

    /// Adds the votes of some trees. Those for a row are added in the order of the trees, however many rows there are, so rows do not
    /// change the bits of others.
    fn add_votes_in_order<const IS_MISSING: bool>(
        &self,
        trees: Range<usize>,
        rows: FeatureRows<'_>,
        scores: &mut [TargetScore],
    ) {
        let (forest, targets) = (&self.forest, self.forest.targets);
        let Some(walk) = &self.walk else {
            for (row, scores) in scores.chunks_exact_mut(targets).enumerate() {
                let leaf = |root: &TreeBranch| forest.find_leaf(*root, rows.row(row));
                forest.roots[trees.clone()].iter().for_each(|root| forest.add_leaf_votes(leaf(root), scores));
            }
            return;
        };
        // Rows that do not fill a group of walks are handled one by one, with the walks through several trees interleaved.
        let grouped = rows.count() / INTERLEAVED_WALKS * INTERLEAVED_WALKS;
        let (blocks, rest) = scores.split_at_mut(grouped * targets);
        // Trees outside, rows inside: the nodes of one tree stay in the cache while all rows of the block walk through it.
        for tree in trees.clone() {
            for (block, scores) in blocks.chunks_exact_mut(INTERLEAVED_WALKS * targets).enumerate() {
                let group = std::array::from_fn(|lane| rows.row(block * INTERLEAVED_WALKS + lane));
                let leaves = walk.leaves_of_rows::<IS_MISSING>(tree, group);
                for (leaf, scores) in leaves.into_iter().zip(scores.chunks_exact_mut(targets)) {
                    forest.add_reached_votes(leaf, scores);
                }
            }
        }
        for (index, scores) in rest.chunks_exact_mut(targets).enumerate() {
            for first in trees.clone().step_by(INTERLEAVED_WALKS) {
                let group = first..trees.end.min(first + INTERLEAVED_WALKS);
                let leaves = walk.leaves_of_row::<IS_MISSING>(rows.row(grouped + index), group);
                leaves.for_each(|leaf| forest.add_reached_votes(leaf, scores));
            }
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
        let mut leaves = LeafVotes::default();
        leaves.push_leaf([(0, 1.0)]);
        leaves.push_leaf([(0, 2.0), (1, 3.0)]);
        DecisionForest {
            questions,
            leaves,
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
        voters.accumulate_votes(None, FeatureRows::new(&[1.0], 1, 1), &mut scores);
        assert_eq!(scores, [Some(2.0), None]);
        voters.accumulate_votes(None, FeatureRows::new(&[f64::NAN], 1, 1), &mut scores);
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
        // More trees than a chunk has.
        let roots = (0..40).map(TreeBranch::Question).chain([TreeBranch::Leaf(1)]);
        let roots: Vec<TreeBranch> = roots.cycle().take(200).collect();
        let make = || DecisionForest { roots: roots.clone(), ..sample_forest(questions.clone()) };
        let (voters, alone) =
            (make().prepare().unwrap(), PreparedForest { walk: None, ..make().prepare().unwrap() });
        assert!(voters.walk.is_some());
        let rows: Vec<[f64; 3]> =
            (0..61).map(|row| [row % 6, row / 6 % 6, row / 36].map(|at: usize| values[at])).collect();
        for count in [1, 7, 8, 9, 61] {
            let mut scores = [vec![None; 2 * count], vec![None; 2 * count]];
            let rows = FeatureRows::new(rows[..count].as_flattened(), count, 3);
            voters.accumulate_votes(None, rows, &mut scores[0]);
            alone.accumulate_votes(None, rows, &mut scores[1]);
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
