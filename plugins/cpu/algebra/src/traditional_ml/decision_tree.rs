//! The nodes of decision trees.

/// How a feature is compared with the value of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitCondition {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
    Unequal,
    /// True if the feature is in the set with this number.
    Member(usize),
}

/// Where a branch leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeBranch {
    Question(usize),
    Leaf(usize),
}

/// A question about a feature, and where its answers lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeNode {
    pub(super) feature: usize,
    pub(super) comparison: SplitCondition,
    pub(super) value: f64,
    /// True if a NaN feature takes the `yes` branch.
    pub(super) takes_missing: bool,
    pub(super) yes: TreeBranch,
    pub(super) no: TreeBranch,
}

/// The votes of each leaf: targets and their weights, one list after the other.
#[derive(Debug, Default)]
pub(super) struct LeafVotes {
    votes: Vec<(usize, f64)>,
    /// The number of votes of each leaf and all before it.
    ends: Vec<usize>,
}

impl LeafVotes {
    pub(super) fn push_leaf(&mut self, votes: impl IntoIterator<Item = (usize, f64)>) {
        self.votes.extend(votes);
        self.ends.push(self.votes.len());
    }

    /// The number of leaves.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn of_leaf(&self, leaf: usize) -> &[(usize, f64)] {
        let begin = leaf.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.votes[begin..self.ends[leaf]]
    }

    pub(super) fn all_votes(&self) -> &[(usize, f64)] {
        &self.votes
    }
}
