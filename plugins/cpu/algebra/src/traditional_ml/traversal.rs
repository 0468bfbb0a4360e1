//! Walks through trees. A step mostly waits for the load of the one before it, so several walks are interleaved: of several rows
//! through one tree, or of one row through several trees.

use super::decision_tree::{SplitCondition, TreeBranch, TreeNode};

/// Walks that are interleaved: the processor overlaps their cache misses.
pub(super) const INTERLEAVED_WALKS: usize = 8;

/// Marks a place as a leaf.
const LEAF_BIT: u32 = 1 << 31;
/// Marks a feature whose NaN answers with yes.
const MISSING_BIT: u32 = 1 << 31;

/// The question whether a feature is at most a value, and where its answers lead: no, and yes.
struct PackedTreeNode {
    value: f64,
    feature: u32,
    next: [u32; 2],
}

/// Trees that only compare sizes.
pub(super) struct PackedForest {
    nodes: Vec<PackedTreeNode>,
    roots: Vec<u32>,
}

impl PackedForest {
    /// Packs trees that are known to be valid; `None` if they ask for anything else.
    pub(super) fn try_pack(questions: &[TreeNode], roots: &[TreeBranch]) -> Option<Self> {
        let nodes = questions.iter().map(PackedTreeNode::pack_node).collect::<Option<_>>()?;
        let roots = roots.iter().map(|root| pack_branch(*root)).collect::<Option<_>>()?;
        Some(Self { nodes, roots })
    }

    /// The leaves that these rows reach in a tree.
    pub(super) fn leaves_of_rows(
        &self,
        tree: usize,
        rows: [&[f64]; INTERLEAVED_WALKS],
    ) -> [usize; INTERLEAVED_WALKS] {
        self.walk_to_leaves([self.roots[tree]; INTERLEAVED_WALKS], rows)
    }

    /// The leaves that a row reaches in at most [`INTERLEAVED_WALKS`] trees.
    pub(super) fn leaves_of_row(
        &self,
        row: &[f64],
        trees: std::ops::Range<usize>,
    ) -> impl Iterator<Item = usize> + use<> {
        let roots = &self.roots[trees];
        // Lanes without a tree are finished from the start.
        let mut at = [LEAF_BIT; INTERLEAVED_WALKS];
        at[..roots.len()].copy_from_slice(roots);
        self.walk_to_leaves(at, [row; INTERLEAVED_WALKS]).into_iter().take(roots.len())
    }

    #[inline(always)]
    fn walk_to_leaves(
        &self,
        mut at: [u32; INTERLEAVED_WALKS],
        rows: [&[f64]; INTERLEAVED_WALKS],
    ) -> [usize; INTERLEAVED_WALKS] {
        // As long as a walk goes on there is a question, so question 0 exists.
        while at.iter().any(|at| at & LEAF_BIT == 0) {
            for (at, row) in at.iter_mut().zip(rows) {
                let is_leaf = *at & LEAF_BIT != 0;
                // A finished walk asks question 0 and ignores the answer, which is cheaper than a branch.
                let node = &self.nodes[if is_leaf { 0 } else { *at as usize }];
                let feature = row[(node.feature & !MISSING_BIT) as usize];
                // The answer is an index instead of a branch: branches of trees are hard to predict.
                let answer = (feature <= node.value) | ((node.feature & MISSING_BIT != 0) & feature.is_nan());
                let next = node.next[usize::from(answer)];
                *at = if is_leaf { *at } else { next };
            }
        }
        at.map(|at| (at & !LEAF_BIT) as usize)
    }
}

impl PackedTreeNode {
    fn pack_node(question: &TreeNode) -> Option<Self> {
        let TreeNode { comparison, value, takes_missing, yes, no, .. } = *question;
        // `x < value` is `x <= value.next_down()`, and the other two comparisons are the opposites of these.
        // Nothing is below -∞, which no comparison with `<=` expresses.
        let before = || (value > f64::NEG_INFINITY).then(|| value.next_down());
        let (value, is_opposite) = match comparison {
            SplitCondition::AtMost => (value, false),
            SplitCondition::Below => (before()?, false),
            SplitCondition::Above => (value, true),
            SplitCondition::AtLeast => (before()?, true),
            SplitCondition::Equal | SplitCondition::Unequal | SplitCondition::Member(_) => return None,
        };
        let answers = [pack_branch(no)?, pack_branch(yes)?];
        let feature = u32::try_from(question.feature).ok().filter(|feature| feature & MISSING_BIT == 0)?;
        // No comparison with NaN is true, and neither is its opposite.
        if value.is_nan() {
            return None;
        }
        Some(match is_opposite {
            false => {
                Self { value, feature: feature | if takes_missing { MISSING_BIT } else { 0 }, next: answers }
            }
            // The branches change places, and so does the one that NaN takes: its comparison fails either way.
            true => Self {
                value,
                feature: feature | if takes_missing { 0 } else { MISSING_BIT },
                next: [answers[1], answers[0]],
            },
        })
    }
}

fn pack_branch(branch: TreeBranch) -> Option<u32> {
    let (index, mark) = match branch {
        TreeBranch::Question(index) => (index, 0),
        TreeBranch::Leaf(index) => (index, LEAF_BIT),
    };
    u32::try_from(index).ok().filter(|index| index & LEAF_BIT == 0).map(|index| index | mark)
}
