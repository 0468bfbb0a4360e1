//! Forests: trees of questions about features, whose leaves vote for targets.

use oarlock_sdk::{Error, Result, ensure};

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
    /// Checks that everything leads somewhere, and that no way goes round in circles.
    pub(super) fn check(&self) -> Result<()> {
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
    pub(super) fn features(&self) -> usize {
        self.questions.iter().map(|question| question.feature.saturating_add(1)).max().unwrap_or(0)
    }

    /// What all trees vote for, of one row of features.
    pub(super) fn vote(&self, row: &[f64], scores: &mut [Score]) {
        scores.fill(None);
        for root in &self.roots {
            for (target, weight) in self.leaf(*root, row) {
                let score = &mut scores[*target];
                *score = Some(match (*score, self.aggregate) {
                    (None, _) => *weight,
                    (Some(score), Aggregate::Sum | Aggregate::Mean) => score + weight,
                    (Some(score), Aggregate::Least) => score.min(*weight),
                    (Some(score), Aggregate::Most) => score.max(*weight),
                });
            }
        }
        if self.aggregate == Aggregate::Mean {
            scores.iter_mut().flatten().for_each(|score| *score /= self.roots.len() as f64);
        }
    }

    fn leaf(&self, root: Way, row: &[f64]) -> &[(usize, f64)] {
        let mut way = root;
        loop {
            match way {
                Way::Leaf(index) => return &self.leaves[index],
                Way::Question(index) => {
                    let question = &self.questions[index];
                    let answer = self.answer(question, row[question.feature]);
                    way = if answer { question.yes } else { question.no };
                }
            }
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
        let forest = forest(vec![question(Way::Leaf(0), Way::Leaf(1))]);
        forest.check().unwrap();
        let mut scores = [None; 2];
        forest.vote(&[1.0], &mut scores);
        assert_eq!(scores, [Some(2.0), None]);
        forest.vote(&[f64::NAN], &mut scores);
        assert_eq!(scores, [Some(3.0), Some(3.0)]);
    }

    #[test]
    fn circles_and_ways_to_nowhere_are_refused() {
        let circle = vec![question(Way::Leaf(0), Way::Question(1)), question(Way::Question(0), Way::Leaf(0))];
        assert!(forest(circle).check().unwrap_err().message().contains("circles"));
        assert!(forest(vec![question(Way::Leaf(9), Way::Leaf(0))]).check().is_err());
        let mut other = forest(vec![question(Way::Leaf(1), Way::Leaf(0))]);
        other.targets = 1;
        assert!(other.check().unwrap_err().message().contains("1 targets"));
    }
}
