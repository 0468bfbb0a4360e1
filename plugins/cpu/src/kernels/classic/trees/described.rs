//! Forests as attributes describe them.

use std::collections::HashMap;

use oarlock_sdk::{Call, Error, Result, ensure};

use crate::kernels::attributes::{tensor, texts};
use crate::kernels::classic::finish::Finish;
use crate::kernels::classic::forest::{Aggregate, Comparison, Forest, Question, Voters, Way};

/// A forest, and what becomes of its votes.
pub(super) struct Trees {
    pub(super) forest: Voters,
    pub(super) base_values: Vec<f64>,
    pub(super) finish: Finish,
}

/// A forest that votes for classes.
pub(super) struct Classifier {
    pub(super) trees: Trees,
    pub(super) labels: Vec<i64>,
    /// Whether all votes are for one and the same class.
    pub(super) votes_for_one: bool,
    pub(super) weights_are_positive: bool,
}

/// A list of integers, of which there must be so many.
fn ints<'a>(call: &Call<'a>, name: &str, count: usize) -> Result<&'a [i64]> {
    let found = call.ints(name)?.unwrap_or_default();
    ensure!(
        found.len() == count,
        invalid_argument,
        "expected {count} items in `{name}`, found {}",
        found.len()
    );
    Ok(found)
}

/// A list of numbers, in an attribute or in a tensor that takes its place.
fn numbers(call: &Call<'_>, name: &str) -> Result<Vec<f64>> {
    if let Some(found) = tensor(call, &format!("{name}_as_tensor"))? {
        return found.numbers();
    }
    Ok(call.floats(name)?.unwrap_or_default().to_vec())
}

fn index(name: &str, found: i64) -> Result<usize> {
    usize::try_from(found)
        .map_err(|_| Error::out_of_range(format!("expected `{name}` of at least 0, found {found}")))
}

/// The most targets there may be; as many scores are kept for a row.
const MOST_TARGETS: usize = 1 << 24;

impl Trees {
    /// What is added to the votes for a target.
    pub(super) fn base(&self, target: usize) -> f64 {
        match self.base_values[..] {
            [one] => one,
            ref all => all.get(target).copied().unwrap_or(0.0),
        }
    }

    /// `TreeEnsemble`: leaves lie beside the questions.
    pub(super) fn new(call: &Call<'_>) -> Result<Self> {
        let required = |name: &str| {
            let found = tensor(call, name)?;
            found
                .ok_or_else(|| Error::invalid_argument(format!("expected an attribute `{name}`, found none")))
        };
        let modes = required("nodes_modes")?.integers()?;
        let splits = required("nodes_splits")?.numbers()?;
        let weights = required("leaf_weights")?.numbers()?;
        let count = modes.len();
        let list = |name| ints(call, name, count);
        let (features, targets) = (list("nodes_featureids")?, ints(call, "leaf_targetids", weights.len())?);
        let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
        let (yes_is_leaf, no_is_leaf) = (list("nodes_trueleafs")?, list("nodes_falseleafs")?);
        let missing = match call.ints("nodes_missing_value_tracks_true")?.unwrap_or_default() {
            [] => vec![0; count],
            _ => list("nodes_missing_value_tracks_true")?.to_vec(),
        };
        ensure!(
            splits.len() == count,
            invalid_argument,
            "expected {count} `nodes_splits`, found {}",
            splits.len()
        );
        let members = tensor(call, "membership_values")?.map(|values| values.numbers()).transpose()?;
        // A number that is none ends a set.
        let mut sets = members.as_deref().unwrap_or_default().split(|value| value.is_nan());
        let mut kept = Vec::new();
        let way = |name: &str, is_leaf: i64, to: i64| -> Result<Way> {
            let to = index(name, to)?;
            Ok(if is_leaf != 0 { Way::Leaf(to) } else { Way::Question(to) })
        };
        let mut questions = Vec::with_capacity(count);
        for node in 0..count {
            let comparison = match modes[node] {
                0 => Comparison::AtMost,
                1 => Comparison::Below,
                2 => Comparison::AtLeast,
                3 => Comparison::Above,
                4 => Comparison::Equal,
                5 => Comparison::Unequal,
                6 => {
                    let set = sets.next().ok_or_else(|| {
                        Error::invalid_argument(
                            "expected `membership_values` for each node that asks for them, found too few",
                        )
                    })?;
                    kept.push(set.to_vec());
                    Comparison::Member(kept.len() - 1)
                }
                other => {
                    return Err(Error::invalid_argument(format!(
                        "expected `nodes_modes` from 0 to 6, found {other}"
                    )));
                }
            };
            questions.push(Question {
                feature: index("nodes_featureids", features[node])?,
                comparison,
                value: splits[node],
                takes_missing: missing[node] != 0,
                yes: way("nodes_truenodeids", yes_is_leaf[node], yes[node])?,
                no: way("nodes_falsenodeids", no_is_leaf[node], no[node])?,
            });
        }
        let votes = targets.iter().zip(&weights);
        let leaf = |(target, weight): (&i64, &f64)| Ok(vec![(index("leaf_targetids", *target)?, *weight)]);
        let leaves: Vec<Vec<(usize, f64)>> = votes.map(leaf).collect::<Result<_>>()?;
        let root = |root: &i64| Ok(Way::Question(index("tree_roots", *root)?));
        let aggregate = match call.int("aggregate_function")?.unwrap_or(1) {
            0 => Aggregate::Mean,
            1 => Aggregate::Sum,
            2 => Aggregate::Least,
            3 => Aggregate::Most,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `aggregate_function` from 0 to 3, found {other}"
                )));
            }
        };
        let forest = Forest {
            questions,
            targets: targets_of(call, &leaves)?,
            leaves,
            sets: kept,
            roots: call.ints("tree_roots")?.unwrap_or_default().iter().map(root).collect::<Result<_>>()?,
            aggregate,
        };
        Ok(Self {
            forest: forest.ready()?,
            base_values: Vec::new(),
            finish: Finish::of_number(call.int("post_transform")?.unwrap_or(0))?,
        })
    }

    /// `TreeEnsembleRegressor`.
    pub(super) fn regressor(call: &Call<'_>) -> Result<Self> {
        let (leaves, nodes) = (Nodes::leaves(call, "target")?, Nodes::new(call)?);
        let aggregate = match call.string("aggregate_function")?.unwrap_or("SUM") {
            "AVERAGE" => Aggregate::Mean,
            "SUM" => Aggregate::Sum,
            "MIN" => Aggregate::Least,
            "MAX" => Aggregate::Most,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `aggregate_function` to be `AVERAGE`, `SUM`, `MIN` or `MAX`, found `{other}`"
                )));
            }
        };
        nodes.forest(call, leaves, aggregate, targets_of)
    }
}

/// How many targets there are.
fn targets_of(call: &Call<'_>, leaves: &[Vec<(usize, f64)>]) -> Result<usize> {
    let highest = leaves.iter().flatten().map(|(target, _)| target.saturating_add(1)).max();
    let targets = match call.int("n_targets")? {
        Some(stated) => index("n_targets", stated)?,
        None => highest.unwrap_or(1),
    };
    ensure!(
        (1..=MOST_TARGETS).contains(&targets),
        invalid_argument,
        "expected from 1 to {MOST_TARGETS} targets, found {targets}"
    );
    Ok(targets)
}

impl Classifier {
    pub(super) fn new(call: &Call<'_>) -> Result<Self> {
        let labels = call.ints("classlabels_int64s")?.unwrap_or_default().to_vec();
        if labels.is_empty() {
            return Err(Error::unimplemented("expected classes with integers as labels, found none"));
        }
        let leaves = Nodes::leaves(call, "class")?;
        let votes: Vec<(usize, f64)> = leaves.values().flatten().copied().collect();
        let classes = labels.len();
        let trees = Nodes::new(call)?.forest(call, leaves, Aggregate::Sum, |_, _| Ok(classes))?;
        Ok(Self {
            trees,
            labels,
            votes_for_one: votes.windows(2).all(|pair| pair[0].0 == pair[1].0),
            weights_are_positive: votes.iter().all(|(_, weight)| *weight >= 0.0),
        })
    }
}

/// The number of a tree, and of a node in it.
type Name = (i64, i64);

/// What each leaf votes for.
type Votes = HashMap<Name, Vec<(usize, f64)>>;

/// The nodes of trees, among which leaves are.
struct Nodes {
    names: Vec<Name>,
    by_name: HashMap<Name, Way>,
    leaves: Vec<Name>,
}

impl Nodes {
    fn new(call: &Call<'_>) -> Result<Self> {
        let modes = texts(call, "nodes_modes")?.unwrap_or_default();
        let (trees, nodes) =
            (ints(call, "nodes_treeids", modes.len())?, ints(call, "nodes_nodeids", modes.len())?);
        let mut this = Self { names: Vec::new(), by_name: HashMap::new(), leaves: Vec::new() };
        let mut questions = 0;
        for ((tree, node), mode) in trees.iter().zip(nodes).zip(&modes) {
            let name = (*tree, *node);
            let way = if *mode == "LEAF" {
                this.leaves.push(name);
                Way::Leaf(this.leaves.len() - 1)
            } else {
                questions += 1;
                Way::Question(questions - 1)
            };
            let before = this.by_name.insert(name, way);
            ensure!(before.is_none(), invalid_argument, "expected each node once, found {name:?} twice");
            this.names.push(name);
        }
        Ok(this)
    }

    /// The votes of leaves: `what` is what they are for, in the names of attributes.
    fn leaves(call: &Call<'_>, what: &str) -> Result<Votes> {
        let weights = numbers(call, &format!("{what}_weights"))?;
        let list = |name: &str| ints(call, &format!("{what}_{name}"), weights.len());
        let (trees, nodes, ids) = (list("treeids")?, list("nodeids")?, list("ids")?);
        let mut votes = Votes::new();
        for (place, weight) in weights.iter().enumerate() {
            let vote = (index(&format!("{what}_ids"), ids[place])?, *weight);
            votes.entry((trees[place], nodes[place])).or_default().push(vote);
        }
        Ok(votes)
    }

    fn forest(
        &self,
        call: &Call<'_>,
        mut votes: Votes,
        aggregate: Aggregate,
        targets: impl Fn(&Call<'_>, &[Vec<(usize, f64)>]) -> Result<usize>,
    ) -> Result<Trees> {
        let count = self.names.len();
        let list = |name| ints(call, name, count);
        let features = list("nodes_featureids")?;
        let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
        let values = numbers(call, "nodes_values")?;
        ensure!(
            values.len() == count,
            invalid_argument,
            "expected {count} `nodes_values`, found {}",
            values.len()
        );
        let missing = match call.ints("nodes_missing_value_tracks_true")?.unwrap_or_default() {
            [] => vec![0; count],
            _ => list("nodes_missing_value_tracks_true")?.to_vec(),
        };
        let modes = texts(call, "nodes_modes")?.unwrap_or_default();
        let way = |name: Name| {
            let found = self.by_name.get(&name).copied();
            found.ok_or_else(|| Error::invalid_argument(format!("expected a node {name:?}, found none")))
        };
        let mut questions = Vec::new();
        for (node, mode) in modes.iter().enumerate() {
            let comparison = match *mode {
                "LEAF" => continue,
                "BRANCH_LEQ" => Comparison::AtMost,
                "BRANCH_LT" => Comparison::Below,
                "BRANCH_GTE" => Comparison::AtLeast,
                "BRANCH_GT" => Comparison::Above,
                "BRANCH_EQ" => Comparison::Equal,
                "BRANCH_NEQ" => Comparison::Unequal,
                other => {
                    return Err(Error::invalid_argument(format!(
                        "expected `nodes_modes` to be `LEAF` or a branch such as `BRANCH_LEQ`, found `{other}`"
                    )));
                }
            };
            let tree = self.names[node].0;
            questions.push(Question {
                feature: index("nodes_featureids", features[node])?,
                comparison,
                value: values[node],
                takes_missing: missing[node] != 0,
                yes: way((tree, yes[node]))?,
                no: way((tree, no[node]))?,
            });
        }
        let leaves: Vec<_> = self.leaves.iter().map(|name| votes.remove(name).unwrap_or_default()).collect();
        let mut roots = Vec::new();
        let mut seen = std::collections::HashSet::new();
        // The first node of each tree is its root.
        for name in self.names.iter().filter(|name| seen.insert(name.0)) {
            roots.push(way(*name)?);
        }
        let targets = targets(call, &leaves)?;
        let forest = Forest { questions, leaves, sets: Vec::new(), roots, targets, aggregate };
        let forest = forest.ready()?;
        let base_values = numbers(call, "base_values")?;
        ensure!(
            base_values.len() <= 1 || base_values.len() == targets,
            invalid_argument,
            "expected no `base_values`, one, or one for each of {targets} targets, found {}",
            base_values.len()
        );
        let finish = Finish::of_name(call.string("post_transform")?.unwrap_or("NONE"))?;
        Ok(Trees { forest, base_values, finish })
    }
}
