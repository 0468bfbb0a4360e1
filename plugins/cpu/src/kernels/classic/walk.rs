//! Ways through trees. What a step takes is mostly waiting for the one before it, so some ways are gone side by side: of
//! several rows through one tree, or of one row through several trees.

use super::forest::{Comparison, Question, Way};

/// How many ways are gone side by side.
pub(super) const ABREAST: usize = 8;

/// Says of a place that it is a leaf, and no question.
const LEAF: u32 = 1 << 31;
/// Says beside a feature that one that is no number answers with yes.
const MISSING: u32 = 1 << 31;

/// The question whether a feature is at most a value, and the places that its answers lead to: no, and yes.
struct Node {
    value: f64,
    feature: u32,
    next: [u32; 2],
}

/// Trees all of whose questions compare sizes.
pub(super) struct Walk {
    nodes: Vec<Node>,
    roots: Vec<u32>,
}

impl Walk {
    /// The ways through trees that are known to lead somewhere; none if they ask for anything else.
    pub(super) fn of(questions: &[Question], roots: &[Way]) -> Option<Self> {
        let nodes = questions.iter().map(Node::of).collect::<Option<_>>()?;
        let roots = roots.iter().map(|root| place(*root)).collect::<Option<_>>()?;
        Some(Self { nodes, roots })
    }

    /// The leaves that these rows come to in a tree.
    pub(super) fn leaves_in(&self, tree: usize, rows: [&[f64]; ABREAST]) -> [usize; ABREAST] {
        self.leaves([self.roots[tree]; ABREAST], rows)
    }

    /// The leaves that a row comes to in some trees, so many that ways through them are gone side by side, or fewer.
    pub(super) fn leaves_of(
        &self,
        row: &[f64],
        trees: std::ops::Range<usize>,
    ) -> impl Iterator<Item = usize> + use<> {
        let roots = &self.roots[trees];
        let mut at = [LEAF; ABREAST];
        at[..roots.len()].copy_from_slice(roots);
        self.leaves(at, [row; ABREAST]).into_iter().take(roots.len())
    }

    #[inline(always)]
    fn leaves(&self, mut at: [u32; ABREAST], rows: [&[f64]; ABREAST]) -> [usize; ABREAST] {
        while at.iter().any(|at| at & LEAF == 0) {
            for (at, row) in at.iter_mut().zip(rows) {
                let is_leaf = *at & LEAF != 0;
                // Who is there already looks at any question, since to look takes less than to choose.
                let node = &self.nodes[if is_leaf { 0 } else { *at as usize }];
                let feature = row[(node.feature & !MISSING) as usize];
                let answer = (feature <= node.value) | ((node.feature & MISSING != 0) & feature.is_nan());
                let next = node.next[usize::from(answer)];
                *at = if is_leaf { *at } else { next };
            }
        }
        at.map(|at| (at & !LEAF) as usize)
    }
}

impl Node {
    fn of(question: &Question) -> Option<Self> {
        let Question { comparison, value, takes_missing, yes, no, .. } = *question;
        // To be below a number is to be at most the one before it, and the others are the opposites of these.
        let before = || (value > f64::NEG_INFINITY).then(|| value.next_down());
        let (value, is_opposite) = match comparison {
            Comparison::AtMost => (value, false),
            Comparison::Below => (before()?, false),
            Comparison::Above => (value, true),
            Comparison::AtLeast => (before()?, true),
            Comparison::Equal | Comparison::Unequal | Comparison::Member(_) => return None,
        };
        let answers = [place(no)?, place(yes)?];
        let feature = u32::try_from(question.feature).ok().filter(|feature| feature & MISSING == 0)?;
        // With a value that is no number no comparison is true, and neither is its opposite.
        if value.is_nan() {
            return None;
        }
        Some(match is_opposite {
            false => {
                Self { value, feature: feature | if takes_missing { MISSING } else { 0 }, next: answers }
            }
            true => Self {
                value,
                feature: feature | if takes_missing { 0 } else { MISSING },
                next: [answers[1], answers[0]],
            },
        })
    }
}

fn place(way: Way) -> Option<u32> {
    let (index, mark) = match way {
        Way::Question(index) => (index, 0),
        Way::Leaf(index) => (index, LEAF),
    };
    u32::try_from(index).ok().filter(|index| index & LEAF == 0).map(|index| index | mark)
}
