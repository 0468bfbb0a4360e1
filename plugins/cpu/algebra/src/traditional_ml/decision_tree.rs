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
