//! Forests: trees of questions about features, whose leaves vote for targets.

use oarlock_sdk::{Error, Result, ensure};

use super::walk::{ABREAST, Walk};

/// How a feature is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
    Unequal,
    /// Whether it is in the set with this number.
    Member(usize),
}

/// Where an answer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Question(usize),
    Leaf(usize),
}

/// A question, and where its answers lead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) feature: usize,
    pub(super) comparison: Comparison,
    pub(super) value: f64,
    /// Whether a feature that is no number answers with yes.
    pub(super) takes_missing: bool,
    pub(super) yes: Way,
    pub(super) no: Way,
}

/// How votes for a target become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Mean,
    Sum,
    Least,
    Most,
}

/// The votes for a target: none yet, or what they came to.
pub(super) type Score = Option<f64>;

/// Trees that vote together.
#[derive(Debug)]
pub(super) struct Forest {
    pub(super) questions: Vec<Question>,
    /// The votes of each leaf: targets and their weights.
    pub(super) leaves: Vec<Vec<(usize, f64)>>,
    pub(super) sets: Vec<Vec<f64>>,
    pub(super) roots: Vec<Way>,
    pub(super) targets: usize,
    pub(super) aggregate: Aggregate,
}

impl Forest {
    /// Readies the forest for votes, if everything leads somewhere, and no way goes round in circles.
    pub(super) fn ready(self) -> Result<Voters> {
        self.check()?;
        let (features, walk) = (self.features(), Walk::of(&self.questions, &self.roots));
        Ok(Voters { forest: self, features, walk })
    }

    fn check(&self) -> Result<()> {
        let exists = |way: Way| match way {
            Way::Question(index) => index < self.questions.len(),
            Way::Leaf(index) => index < self.leaves.len(),
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
            return Err(Error::out_of_range(format!(
                "expected votes for {targets} targets, found one for {wrong}"
            )));
        }
        self.check_for_circles()
    }

    /// Takes questions away as long as there are some that no other leads to. What is left goes round in circles.
    fn check_for_circles(&self) -> Result<()> {
        let mut leading = vec![0usize; self.questions.len()];
        let next = |question: &Question| [question.yes, question.no];
        for way in self.questions.iter().flat_map(next) {
            if let Way::Question(index) = way {
                leading[index] += 1;
            }
        }
        let mut free: Vec<usize> = (0..leading.len()).filter(|index| leading[*index] == 0).collect();
        let mut taken = 0;
        while let Some(index) = free.pop() {
            taken += 1;
            for way in next(&self.questions[index]) {
                if let Way::Question(other) = way {
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

    /// How many features the questions are about.
    fn features(&self) -> usize {
        self.questions.iter().map(|question| question.feature.saturating_add(1)).max().unwrap_or(0)
    }

    /// The leaf that a row comes to from a root.
    fn leaf(&self, root: Way, row: &[f64]) -> usize {
        let mut way = root;
        loop {
            match way {
                Way::Leaf(index) => return index,
                Way::Question(index) => {
                    let question = &self.questions[index];
                    let answer = self.answer(question, row[question.feature]);
                    way = if answer { question.yes } else { question.no };
                }
            }
        }
    }

    /// Adds the votes of a leaf to the scores of a row.
    #[inline(always)]
    fn add(&self, leaf: usize, scores: &mut [Score]) {
        for (target, weight) in &self.leaves[leaf] {
            let score = &mut scores[*target];
            *score = Some(match (*score, self.aggregate) {
                (None, _) => *weight,
                (Some(score), Aggregate::Sum | Aggregate::Mean) => score + weight,
                (Some(score), Aggregate::Least) => score.min(*weight),
                (Some(score), Aggregate::Most) => score.max(*weight),
            });
        }
    }

    #[inline(always)]
    fn answer(&self, question: &Question, feature: f64) -> bool {
        let answer = match question.comparison {
            Comparison::AtMost => feature <= question.value,
            Comparison::Below => feature < question.value,
            Comparison::AtLeast => feature >= question.value,
            Comparison::Above => feature > question.value,
            Comparison::Equal => feature == question.value,
            Comparison::Unequal => feature != question.value,
            Comparison::Member(set) => self.sets[set].contains(&feature),
        };
        answer || question.takes_missing && feature.is_nan()
    }
}

/// So many rows go through one tree before they go through the next, which then need not be read again for each.
const BLOCK: usize = 64;
/// The scores of a block of rows have no more places than this, unless those of one row do.
const MOST_SCORES: usize = 1 << 14;

/// A forest that is ready for votes.
pub(super) struct Voters {
    forest: Forest,
    /// How many features the questions are about.
    pub(super) features: usize,
    /// How to go through its trees side by side, if they ask for nothing but sizes.
    walk: Option<Walk>,
}

impl Voters {
    /// How many targets there are votes for.
    pub(super) fn targets(&self) -> usize {
        self.forest.targets
    }

    /// How many trees vote.
    pub(super) fn trees(&self) -> usize {
        self.forest.roots.len()
    }

    /// How many rows are best voted on together.
    pub(super) fn block(&self) -> usize {
        (MOST_SCORES / self.forest.targets.max(1)).clamp(1, BLOCK)
    }

    /// What all trees vote for, of some rows of features.
    pub(super) fn vote<'r>(&self, row: impl Fn(usize) -> &'r [f64], scores: &mut [Score]) {
        scores.fill(None);
        let forest = &self.forest;
        if forest.targets == 0 {
            return;
        }
        let (blocks, rest) = scores.split_at_mut(match self.walk {
            Some(_) => scores.len() / forest.targets / ABREAST * ABREAST * forest.targets,
            None => 0,
        });
        if let Some(walk) = &self.walk {
            for tree in 0..self.trees() {
                for (block, scores) in blocks.chunks_exact_mut(ABREAST * forest.targets).enumerate() {
                    let rows = std::array::from_fn(|lane| row(block * ABREAST + lane));
                    let leaves = walk.leaves_in(tree, rows);
                    for (leaf, scores) in leaves.into_iter().zip(scores.chunks_exact_mut(forest.targets)) {
                        forest.add(leaf, scores);
                    }
                }
            }
        }
        let first = blocks.len() / forest.targets;
        for (index, scores) in rest.chunks_exact_mut(forest.targets).enumerate() {
            self.vote_alone(row(first + index), scores);
        }
        if forest.aggregate == Aggregate::Mean {
            scores.iter_mut().flatten().for_each(|score| *score /= self.trees() as f64);
        }
    }

    /// The same of one row, whose trees are as good as rows.
    fn vote_alone(&self, row: &[f64], scores: &mut [Score]) {
        let forest = &self.forest;
        let Some(walk) = &self.walk else {
            forest.roots.iter().for_each(|root| forest.add(forest.leaf(*root, row), scores));
            return;
        };
        for first in (0..self.trees()).step_by(ABREAST) {
            let trees = first..self.trees().min(first + ABREAST);
            walk.leaves_of(row, trees).for_each(|leaf| forest.add(leaf, scores));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(yes: Way, no: Way) -> Question {
        Question { feature: 0, comparison: Comparison::AtMost, value: 1.0, takes_missing: false, yes, no }
    }

    fn forest(questions: Vec<Question>) -> Forest {
        Forest {
            questions,
            leaves: vec![vec![(0, 1.0)], vec![(0, 2.0), (1, 3.0)]],
            sets: Vec::new(),
            roots: vec![Way::Question(0), Way::Leaf(0)],
            targets: 2,
            aggregate: Aggregate::Sum,
        }
    }

    #[test]
    fn votes_of_all_trees_are_added() {
        let voters = forest(vec![question(Way::Leaf(0), Way::Leaf(1))]).ready().unwrap();
        let mut scores = [None; 2];
        voters.vote(|_| &[1.0], &mut scores);
        assert_eq!(scores, [Some(2.0), None]);
        voters.vote(|_| &[f64::NAN], &mut scores);
        assert_eq!(scores, [Some(3.0), Some(3.0)]);
    }

    #[test]
    fn ways_side_by_side_lead_where_ways_alone_do() {
        let comparisons = [Comparison::AtMost, Comparison::Below, Comparison::AtLeast, Comparison::Above];
        let values = [f64::NEG_INFINITY, -1.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        let mut questions = Vec::new();
        for (at, comparison) in comparisons.into_iter().cycle().take(40).enumerate() {
            let (yes, no) = match at % 3 {
                0 if at + 2 < 40 => (Way::Question(at + 1), Way::Question(at + 2)),
                1 => (Way::Leaf(0), Way::Leaf(1)),
                _ if at + 3 < 40 => (Way::Leaf(1), Way::Question(at + 3)),
                _ => (Way::Leaf(1), Way::Leaf(0)),
            };
            let value = values[at * 7 % 5];
            let feature = at % 3;
            questions.push(Question { feature, comparison, value, takes_missing: at % 2 == 0, yes, no });
        }
        // What cannot be below anything is not asked side by side.
        questions.iter_mut().filter(|question| question.value == f64::NEG_INFINITY).for_each(|question| {
            question.comparison = Comparison::AtMost;
        });
        let roots: Vec<Way> = (0..40).map(Way::Question).chain([Way::Leaf(1)]).collect();
        let make = || Forest { roots: roots.clone(), ..forest(questions.clone()) };
        let (voters, alone) = (make().ready().unwrap(), Voters { walk: None, ..make().ready().unwrap() });
        assert!(voters.walk.is_some());
        let rows: Vec<[f64; 3]> =
            (0..61).map(|row| [row % 6, row / 6 % 6, row / 36].map(|at: usize| values[at])).collect();
        for count in [1, 7, 8, 9, 61] {
            let mut scores = [vec![None; 2 * count], vec![None; 2 * count]];
            voters.vote(|row| &rows[row], &mut scores[0]);
            alone.vote(|row| &rows[row], &mut scores[1]);
            assert_eq!(scores[0], scores[1], "{count} rows");
        }
    }

    #[test]
    fn circles_and_ways_to_nowhere_are_refused() {
        let circle = vec![question(Way::Leaf(0), Way::Question(1)), question(Way::Question(0), Way::Leaf(0))];
        assert!(forest(circle).check().unwrap_err().message().contains("circles"));
        assert!(forest(vec![question(Way::Leaf(9), Way::Leaf(0))]).ready().is_err());
        let mut other = forest(vec![question(Way::Leaf(1), Way::Leaf(0))]);
        other.targets = 1;
        assert!(other.check().unwrap_err().message().contains("1 targets"));
    }
}
