//! Walks through trees. A step mostly waits for the load of the one before it, so several walks are interleaved: of several rows
//! through one tree, or of one row through several trees.

#![expect(
    unsafe_code,
    reason = "steps read nodes and features without checks of bounds, as packing has checked all of them"
)]

use super::decision_tree::{LeafVotes, SplitCondition, TreeBranch, TreeNode};

/// Walks that are interleaved: the processor overlaps their cache misses.
pub(super) const INTERLEAVED_WALKS: usize = 8;

/// Steps between two looks at whether all walks have ended. A walk that has ended stays where it is.
const STEPS_PER_CHECK: usize = 4;

/// Marks a feature whose NaN answers with yes.
const MISSING_BIT: u32 = 1 << 31;

/// Marks a leaf with several votes or none.
const SEVERAL_BIT: u32 = 1 << 31;

/// The question whether a feature is at most a value, and where its answers lead: no, and yes. A leaf leads to itself.
struct PackedTreeNode {
    /// In a leaf, the weight of its only vote, so that the vote is read with the node.
    value: f64,
    feature: u32,
    next: [u32; 2],
    /// In a leaf, the target of its only vote, or its index and [`SEVERAL_BIT`].
    target: u32,
}

/// What a leaf votes for.
pub(super) enum ReachedLeaf {
    Vote { target: usize, weight: f64 },
    Leaf(usize),
}

/// Trees that only compare sizes.
pub(super) struct PackedForest {
    /// All questions, then all leaves. `next` is an index of this list in all of them.
    nodes: Vec<PackedTreeNode>,
    first_leaf: u32,
    /// Indices of nodes.
    roots: Vec<u32>,
    /// The number of features that questions refer to.
    features: usize,
}

impl PackedForest {
    /// Packs trees that are known to be valid; `None` if they ask for anything else.
    pub(super) fn try_pack(questions: &[TreeNode], leaves: &LeafVotes, roots: &[TreeBranch]) -> Option<Self> {
        let place = |branch| {
            let (index, end) = match branch {
                TreeBranch::Question(index) => (index, questions.len()),
                TreeBranch::Leaf(index) => {
                    (questions.len().checked_add(index)?, questions.len() + leaves.len())
                }
            };
            u32::try_from(index).ok().filter(|_| index < end)
        };
        let mut nodes = Vec::with_capacity(questions.len() + leaves.len());
        for question in questions {
            nodes.push(PackedTreeNode::pack_question(question, place)?);
        }
        for leaf in 0..leaves.len() {
            let (value, target) = match leaves.of_leaf(leaf) {
                [(target, weight)] => {
                    (*weight, u32::try_from(*target).ok().filter(|target| target & SEVERAL_BIT == 0)?)
                }
                _ => (0.0, u32::try_from(leaf).ok().filter(|leaf| leaf & SEVERAL_BIT == 0)? | SEVERAL_BIT),
            };
            let own = place(TreeBranch::Leaf(leaf))?;
            nodes.push(PackedTreeNode { value, feature: 0, next: [own, own], target });
        }
        let roots = roots.iter().map(|root| place(*root)).collect::<Option<_>>()?;
        let features = questions.iter().map(|question| question.feature + 1).max().unwrap_or(0);
        Some(Self { nodes, first_leaf: u32::try_from(questions.len()).ok()?, roots, features })
    }

    /// The leaves that these rows reach in a tree. `IS_MISSING` says that a feature may be NaN.
    pub(super) fn leaves_of_rows<const IS_MISSING: bool>(
        &self,
        tree: usize,
        rows: [&[f64]; INTERLEAVED_WALKS],
    ) -> [ReachedLeaf; INTERLEAVED_WALKS] {
        self.walk_to_leaves::<IS_MISSING>([self.roots[tree]; INTERLEAVED_WALKS], rows)
    }

    /// The leaves that a row reaches in at most [`INTERLEAVED_WALKS`] trees.
    pub(super) fn leaves_of_row<const IS_MISSING: bool>(
        &self,
        row: &[f64],
        trees: std::ops::Range<usize>,
    ) -> impl Iterator<Item = ReachedLeaf> + use<IS_MISSING> {
        let roots = &self.roots[trees];
        // Lanes without a tree walk through the first one again.
        let mut at = [roots.first().copied().unwrap_or(self.first_leaf); INTERLEAVED_WALKS];
        at[..roots.len()].copy_from_slice(roots);
        self.walk_to_leaves::<IS_MISSING>(at, [row; INTERLEAVED_WALKS]).into_iter().take(roots.len())
    }

    #[inline(always)]
    fn walk_to_leaves<const IS_MISSING: bool>(
        &self,
        mut at: [u32; INTERLEAVED_WALKS],
        rows: [&[f64]; INTERLEAVED_WALKS],
    ) -> [ReachedLeaf; INTERLEAVED_WALKS] {
        assert!(
            rows.iter().all(|row| row.len() >= self.features)
                && at.iter().all(|at| (*at as usize) < self.nodes.len()),
            "roots that exist, and rows with all features"
        );
        while at.iter().any(|at| *at < self.first_leaf) {
            for _ in 0..STEPS_PER_CHECK {
                for (at, row) in at.iter_mut().zip(rows) {
                    // SAFETY: roots and answers are indices of nodes, as packing and the assertion above have checked.
                    let node = unsafe { self.nodes.get_unchecked(*at as usize) };
                    // SAFETY: each row has all features that questions refer to, so at least one; a leaf refers to the first.
                    let feature = unsafe { *row.get_unchecked((node.feature & !MISSING_BIT) as usize) };
                    let is_missing = IS_MISSING && (node.feature & MISSING_BIT != 0) & feature.is_nan();
                    // The answer is an index instead of a branch: branches of trees are hard to predict.
                    *at = node.next[usize::from((feature <= node.value) | is_missing)];
                }
            }
        }
        at.map(|at| {
            let PackedTreeNode { value, target, .. } = self.nodes[at as usize];
            match target & SEVERAL_BIT {
                0 => ReachedLeaf::Vote { target: target as usize, weight: value },
                _ => ReachedLeaf::Leaf((target & !SEVERAL_BIT) as usize),
            }
        })
    }
}

impl PackedTreeNode {
    fn pack_question(question: &TreeNode, place: impl Fn(TreeBranch) -> Option<u32>) -> Option<Self> {
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
        let answers = [place(no)?, place(yes)?];
        let feature = u32::try_from(question.feature).ok().filter(|feature| feature & MISSING_BIT == 0)?;
        // No comparison with NaN is true, and neither is its opposite.
        if value.is_nan() {
            return None;
        }
        // Opposite branches change places, and so does the one that NaN takes: its comparison fails either way.
        let next = if is_opposite { [answers[1], answers[0]] } else { answers };
        let takes_yes = takes_missing != is_opposite;
        Some(Self { value, feature: feature | if takes_yes { MISSING_BIT } else { 0 }, next, target: 0 })
    }
}
