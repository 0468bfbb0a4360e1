//! Forests, read from attributes.

use std::collections::HashMap;
use std::ops::Range;

use oarlock_cpu_base::attributes::{string_list, tensor_attribute};
use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

use crate::traditional_ml::decision_tree::{LeafVotes, SplitCondition, TreeBranch, TreeNode};
use crate::traditional_ml::forest::{AggregateFunction, DecisionForest, PreparedForest};
use crate::traditional_ml::post_transform::PostTransform;

/// A forest, and the function of its scores.
pub(super) struct TreeEnsemble {
    pub(super) forest: PreparedForest,
    pub(super) base_values: Vec<f64>,
    pub(super) finish: PostTransform,
}

pub(super) struct TreeClassifier {
    pub(super) trees: TreeEnsemble,
    pub(super) labels: Vec<i64>,
    /// True if all votes are for the same class.
    pub(super) votes_for_one: bool,
    pub(super) weights_are_positive: bool,
}

/// A list of exactly `count` integers.
fn read_integers<'a>(call: &KernelCall<'a>, name: &str, count: usize) -> Result<&'a [i64]> {
    let found = call.ints_attribute(name)?.unwrap_or_default();
    ensure!(
        found.len() == count,
        invalid_argument,
        "expected {count} items in `{name}`, found {}",
        found.len()
    );
    Ok(found)
}

/// A list of numbers, from an attribute or from a tensor that replaces it.
fn read_numbers(call: &KernelCall<'_>, name: &str) -> Result<Vec<f64>> {
    if let Some(found) = tensor_attribute(call, &format!("{name}_as_tensor"))? {
        // The tensor keeps `f64` digits that the attribute, a list of `f32`, cannot hold.
        return found.read_f64_values();
    }
    Ok(call.floats_attribute(name)?.unwrap_or_default().to_vec())
}

fn index_from_integer(name: &str, found: i64) -> Result<usize> {
    usize::try_from(found)
        .map_err(|_| PluginError::out_of_range(format!("expected `{name}` of at least 0, found {found}")))
}

/// The maximum number of targets; each row keeps as many scores.
const MAX_TARGETS: usize = 1 << 24;

impl TreeEnsemble {
    /// The value that is added to the votes for a target.
    pub(super) fn base_value(&self, target: usize) -> f64 {
        match self.base_values[..] {
            // One value counts for all targets.
            [one] => one,
            ref all => all.get(target).copied().unwrap_or(0.0),
        }
    }

    /// Reads `TreeEnsemble`, whose leaves are listed apart from the questions.
    pub(super) fn new(call: &KernelCall<'_>) -> Result<Self> {
        let required = |name: &str| {
            let found = tensor_attribute(call, name)?;
            found.ok_or_else(|| {
                PluginError::invalid_argument(format!("expected an attribute `{name}`, found none"))
            })
        };
        let modes = required("nodes_modes")?.read_i64_values()?;
        let splits = required("nodes_splits")?.read_f64_values()?;
        let weights = required("leaf_weights")?.read_f64_values()?;
        let count = modes.len();
        let list = |name| read_integers(call, name, count);
        let (features, targets) =
            (list("nodes_featureids")?, read_integers(call, "leaf_targetids", weights.len())?);
        let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
        let (yes_is_leaf, no_is_leaf) = (list("nodes_trueleafs")?, list("nodes_falseleafs")?);
        let missing = match call.ints_attribute("nodes_missing_value_tracks_true")?.unwrap_or_default() {
            // Without the attribute, NaN takes the false branch everywhere.
            [] => vec![0; count],
            _ => list("nodes_missing_value_tracks_true")?.to_vec(),
        };
        ensure!(
            splits.len() == count,
            invalid_argument,
            "expected {count} `nodes_splits`, found {}",
            splits.len()
        );
        let members = tensor_attribute(call, "membership_values")?
            .map(|values| values.read_f64_values())
            .transpose()?;
        // NaN ends a set.
        let mut sets = members.as_deref().unwrap_or_default().split(|value| value.is_nan());
        let mut kept = Vec::new();
        let branch = |name: &str, is_leaf: i64, to: i64| -> Result<TreeBranch> {
            let to = index_from_integer(name, to)?;
            Ok(if is_leaf != 0 { TreeBranch::Leaf(to) } else { TreeBranch::Question(to) })
        };
        let mut questions = Vec::with_capacity(count);
        for node in 0..count {
            let comparison = match modes[node] {
                0 => SplitCondition::AtMost,
                1 => SplitCondition::Below,
                2 => SplitCondition::AtLeast,
                3 => SplitCondition::Above,
                4 => SplitCondition::Equal,
                5 => SplitCondition::Unequal,
                6 => {
                    let set = sets.next().ok_or_else(|| {
                        PluginError::invalid_argument(
                            "expected `membership_values` for each node that asks for them, found too few",
                        )
                    })?;
                    kept.push(set.to_vec());
                    SplitCondition::Member(kept.len() - 1)
                }
                other => {
                    return Err(PluginError::invalid_argument(format!(
                        "expected `nodes_modes` from 0 to 6, found {other}"
                    )));
                }
            };
            questions.push(TreeNode {
                feature: index_from_integer("nodes_featureids", features[node])?,
                comparison,
                value: splits[node],
                takes_missing: missing[node] != 0,
                yes: branch("nodes_truenodeids", yes_is_leaf[node], yes[node])?,
                no: branch("nodes_falsenodeids", no_is_leaf[node], no[node])?,
            });
        }
        let mut leaves = LeafVotes::default();
        for (target, weight) in targets.iter().zip(&weights) {
            leaves.push_leaf([(index_from_integer("leaf_targetids", *target)?, *weight)]);
        }
        let root = |root: &i64| Ok(TreeBranch::Question(index_from_integer("tree_roots", *root)?));
        let aggregate = match call.int_attribute("aggregate_function")?.unwrap_or(1) {
            0 => AggregateFunction::Mean,
            1 => AggregateFunction::Sum,
            2 => AggregateFunction::Least,
            3 => AggregateFunction::Most,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `aggregate_function` from 0 to 3, found {other}"
                )));
            }
        };
        let forest = DecisionForest {
            questions,
            targets: count_targets(call, &leaves)?,
            leaves,
            sets: kept,
            roots: call
                .ints_attribute("tree_roots")?
                .unwrap_or_default()
                .iter()
                .map(root)
                .collect::<Result<_>>()?,
            aggregate,
        };
        Ok(Self {
            forest: forest.prepare()?,
            base_values: Vec::new(),
            finish: PostTransform::from_number(call.int_attribute("post_transform")?.unwrap_or(0))?,
        })
    }

    /// Reads `TreeEnsembleRegressor`.
    pub(super) fn read_regressor(call: &KernelCall<'_>) -> Result<Self> {
        let nodes = TreeNodeTable::new(call)?;
        let aggregate = match call.string_attribute("aggregate_function")?.unwrap_or("SUM") {
            "AVERAGE" => AggregateFunction::Mean,
            "SUM" => AggregateFunction::Sum,
            "MIN" => AggregateFunction::Least,
            "MAX" => AggregateFunction::Most,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `aggregate_function` to be `AVERAGE`, `SUM`, `MIN` or `MAX`, found `{other}`"
                )));
            }
        };
        nodes.build_ensemble(call, "target", aggregate, count_targets)
    }
}

fn count_targets(call: &KernelCall<'_>, leaves: &LeafVotes) -> Result<usize> {
    let highest = leaves.all_votes().iter().map(|(target, _)| target.saturating_add(1)).max();
    let targets = match call.int_attribute("n_targets")? {
        Some(stated) => index_from_integer("n_targets", stated)?,
        None => highest.unwrap_or(1),
    };
    ensure!(
        (1..=MAX_TARGETS).contains(&targets),
        invalid_argument,
        "expected from 1 to {MAX_TARGETS} targets, found {targets}"
    );
    Ok(targets)
}

impl TreeClassifier {
    pub(super) fn new(call: &KernelCall<'_>) -> Result<Self> {
        let labels = call.ints_attribute("classlabels_int64s")?.unwrap_or_default().to_vec();
        if labels.is_empty() {
            // Labels of text are mapped by the importer, since this kernel returns numbers.
            return Err(PluginError::unimplemented("expected classes with integers as labels, found none"));
        }
        let classes = labels.len();
        let nodes = TreeNodeTable::new(call)?;
        let trees = nodes.build_ensemble(call, "class", AggregateFunction::Sum, |_, _| Ok(classes))?;
        let votes = trees.forest.all_votes();
        // Binary classifiers often vote for one class only; the score of the other follows from it.
        let votes_for_one = votes.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let weights_are_positive = votes.iter().all(|(_, weight)| *weight >= 0.0);
        Ok(Self { trees, labels, votes_for_one, weights_are_positive })
    }
}

/// The number of a tree, and of a node in it.
type TreeNodeKey = (i64, i64);

/// The nodes of all trees, leaves included, in the order of the attributes.
struct TreeNodeTable {
    names: Vec<TreeNodeKey>,
    branches: Vec<TreeBranch>,
    /// Indices of the others, ordered by name.
    order: Vec<u32>,
    /// The part of `order` of each tree.
    trees: HashMap<i64, Range<usize>>,
    leaf_count: usize,
}

impl TreeNodeTable {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let modes = string_list(call, "nodes_modes")?.unwrap_or_default();
        let (trees, nodes) = (
            read_integers(call, "nodes_treeids", modes.len())?,
            read_integers(call, "nodes_nodeids", modes.len())?,
        );
        let count = u32::try_from(modes.len()).map_err(|_| {
            PluginError::out_of_range(format!("expected fewer than 2³² nodes, found {}", modes.len()))
        })?;
        let names: Vec<TreeNodeKey> = trees.iter().copied().zip(nodes.iter().copied()).collect();
        let (mut questions, mut leaves) = (0, 0);
        let branch = |mode: &&str| {
            let (kind, count): (fn(usize) -> TreeBranch, _) = match *mode {
                "LEAF" => (TreeBranch::Leaf, &mut leaves),
                _ => (TreeBranch::Question, &mut questions),
            };
            *count += 1;
            kind(*count - 1)
        };
        let branches = modes.iter().map(branch).collect();
        // Nodes refer to each other by name, in any order. Most models list them in order, and then this only looks.
        let mut order: Vec<u32> = (0..count).collect();
        order.sort_unstable_by_key(|index| names[*index as usize]);
        let name = |place: usize| names[order[place] as usize];
        let mut parts = HashMap::new();
        let mut begin = 0;
        for place in 0..order.len() {
            let next = (place + 1 < order.len()).then(|| name(place + 1));
            ensure!(
                next != Some(name(place)),
                invalid_argument,
                "expected each node once, found {:?} twice",
                name(place)
            );
            if next.is_none_or(|next| next.0 != name(place).0) {
                parts.insert(name(place).0, begin..place + 1);
                begin = place + 1;
            }
        }
        Ok(Self { branches, order, trees: parts, leaf_count: leaves, names })
    }

    /// The place of a node in the attributes.
    fn find_node(&self, (tree, node): TreeNodeKey) -> Option<usize> {
        let order = &self.order[self.trees.get(&tree)?.clone()];
        let number = |place: &u32| self.names[*place as usize].1;
        // Most trees number their nodes from 0.
        let direct = usize::try_from(node)
            .ok()
            .and_then(|place| order.get(place))
            .filter(|place| number(place) == node);
        let searched = || order.binary_search_by_key(&node, number).ok().map(|place| &order[place]);
        direct.or_else(searched).map(|place| *place as usize)
    }

    /// The votes of leaves. `what` names their targets in the names of attributes.
    fn read_leaf_votes(&self, call: &KernelCall<'_>, what: &str) -> Result<LeafVotes> {
        let weights = read_numbers(call, &format!("{what}_weights"))?;
        let list = |name: &str| read_integers(call, &format!("{what}_{name}"), weights.len());
        let (trees, nodes, ids) = (list("treeids")?, list("nodeids")?, list("ids")?);
        // A leaf may vote for several targets, so votes are listed apart from the nodes. Votes of other nodes are never counted.
        let mut votes = Vec::with_capacity(weights.len());
        for (place, weight) in weights.iter().enumerate() {
            let target = index_from_integer(&format!("{what}_ids"), ids[place])?;
            let branch = self.find_node((trees[place], nodes[place])).map(|node| self.branches[node]);
            if let Some(TreeBranch::Leaf(leaf)) = branch {
                votes.push((leaf, (target, *weight)));
            }
        }
        // Votes of a leaf keep their order.
        votes.sort_by_key(|(leaf, _)| *leaf);
        let mut rest = &votes[..];
        let mut all = LeafVotes::default();
        for leaf in 0..self.leaf_count {
            let (own, others) = rest.split_at(rest.iter().take_while(|(other, _)| *other == leaf).count());
            all.push_leaf(own.iter().map(|(_, vote)| *vote));
            rest = others;
        }
        Ok(all)
    }

    fn build_ensemble(
        &self,
        call: &KernelCall<'_>,
        what: &str,
        aggregate: AggregateFunction,
        targets: impl Fn(&KernelCall<'_>, &LeafVotes) -> Result<usize>,
    ) -> Result<TreeEnsemble> {
        let count = self.names.len();
        let list = |name| read_integers(call, name, count);
        let features = list("nodes_featureids")?;
        let (yes, no) = (list("nodes_truenodeids")?, list("nodes_falsenodeids")?);
        let values = read_numbers(call, "nodes_values")?;
        ensure!(
            values.len() == count,
            invalid_argument,
            "expected {count} `nodes_values`, found {}",
            values.len()
        );
        let missing = match call.ints_attribute("nodes_missing_value_tracks_true")?.unwrap_or_default() {
            // Without the attribute, NaN takes the false branch everywhere.
            [] => vec![0; count],
            _ => list("nodes_missing_value_tracks_true")?.to_vec(),
        };
        let modes = string_list(call, "nodes_modes")?.unwrap_or_default();
        let branch = |name: TreeNodeKey| {
            let found = self.find_node(name).map(|node| self.branches[node]);
            found
                .ok_or_else(|| PluginError::invalid_argument(format!("expected a node {name:?}, found none")))
        };
        let mut questions = Vec::new();
        for (node, mode) in modes.iter().enumerate() {
            let comparison = match *mode {
                "LEAF" => continue,
                "BRANCH_LEQ" => SplitCondition::AtMost,
                "BRANCH_LT" => SplitCondition::Below,
                "BRANCH_GTE" => SplitCondition::AtLeast,
                "BRANCH_GT" => SplitCondition::Above,
                "BRANCH_EQ" => SplitCondition::Equal,
                "BRANCH_NEQ" => SplitCondition::Unequal,
                other => {
                    return Err(PluginError::invalid_argument(format!(
                        "expected `nodes_modes` to be `LEAF` or a branch such as `BRANCH_LEQ`, found `{other}`"
                    )));
                }
            };
            let tree = self.names[node].0;
            questions.push(TreeNode {
                feature: index_from_integer("nodes_featureids", features[node])?,
                comparison,
                value: values[node],
                takes_missing: missing[node] != 0,
                yes: branch((tree, yes[node]))?,
                no: branch((tree, no[node]))?,
            });
        }
        let leaves = self.read_leaf_votes(call, what)?;
        let mut roots = Vec::new();
        let mut seen = std::collections::HashSet::new();
        // The first node of each tree is its root.
        let mut last = None;
        for (name, branch) in self.names.iter().zip(&self.branches) {
            // Most models list one tree after the other.
            if last.replace(name.0) != Some(name.0) && seen.insert(name.0) {
                roots.push(*branch);
            }
        }
        let targets = targets(call, &leaves)?;
        let forest = DecisionForest { questions, leaves, sets: Vec::new(), roots, targets, aggregate };
        let forest = forest.prepare()?;
        let base_values = read_numbers(call, "base_values")?;
        ensure!(
            base_values.len() <= 1 || base_values.len() == targets,
            invalid_argument,
            "expected no `base_values`, one, or one for each of {targets} targets, found {}",
            base_values.len()
        );
        let finish = PostTransform::from_name(call.string_attribute("post_transform")?.unwrap_or("NONE"))?;
        Ok(TreeEnsemble { forest, base_values, finish })
    }
}
