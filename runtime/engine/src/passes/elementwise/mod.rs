//! Fuses elementwise ops that only pass values to each other into one, which reads and writes memory once.

mod steps;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use oarlock_core::flags::FlagValue;
use oarlock_core::{Attribute, Dtype, Result};

use self::steps::{FusedOperand, FusedStep, depends_on_tiles, node_steps};
use super::graph_view::{GraphView, define_pass};
use super::{GraphPass, PassContext};
use crate::graph::{Graph, Node, ValueId};
use oarlock_core::schema::OARLOCK_DOMAIN;

/// Runs once, when shapes are known and no other pass finds anything: others look for the ops that it fuses, and an exported model
/// keeps those.
pub(super) const FUSE_ELEMENTWISE: GraphPass = define_pass(
    "elementwise fusion",
    "has elementwise ops that pass values to each other run as one, so that memory is read and written \
     once",
    fuse_elementwise,
);

const FUSED_OP: &str = "FusedElementwise";

/// Inputs that kernels of the fused op take.
const MAX_INPUTS: usize = 8;

/// Nodes of a fused op. More of them are several fused ops.
const MAX_NODES: usize = 64;

fn fuse_elementwise(graph: &mut Graph, context: &PassContext<'_>) -> Result<usize> {
    // A check for NaN names the op that made it, so each has to run on its own.
    let is_checked = matches!(context.runtime.flags().get("check_nan_inf")?.0, FlagValue::Bool(true));
    if is_checked || !context.has_kernel_for(FUSED_OP) {
        return Ok(0);
    }
    let mut groups = Vec::new();
    let view = GraphView::of_graph(graph, context);
    let mut finder = GroupFinder { view: &view, fused: BTreeSet::new() };
    for at in (0..graph.nodes.len()).rev() {
        if let Some((node, members)) = finder.find_group(at)
            && context.supports_node(graph, &node)
        {
            finder.fused.extend(members.iter().copied());
            groups.push((at, node));
        }
    }
    let (removed, count) = (finder.fused, groups.len());
    let mut kept: HashMap<usize, Node> = groups.into_iter().collect();
    let nodes = std::mem::take(&mut graph.nodes).into_iter().enumerate();
    graph.nodes = nodes
        .filter_map(|(at, node)| match kept.remove(&at) {
            Some(fused) => Some(fused),
            None => (!removed.contains(&at)).then_some(node),
        })
        .collect();
    Ok(count)
}

struct GroupFinder<'a> {
    view: &'a GraphView<'a>,
    /// Nodes of groups, by index.
    fused: BTreeSet<usize>,
}

/// Nodes that are fused, by index, with their steps.
type GroupSteps = BTreeMap<usize, Vec<FusedStep>>;

impl GroupFinder<'_> {
    /// The fused node whose last op is the node at an index, and the nodes that it replaces; `None` if there is nothing to fuse.
    fn find_group(&self, last: usize) -> Option<(Node, Vec<usize>)> {
        let mut refused = BTreeSet::new();
        while !self.fused.contains(&last) && !refused.contains(&last) {
            let group = self.grow_group(last, &refused).filter(|group| group.len() > 1)?;
            let inputs = group_inputs(&group, self.view);
            let before = refused.len();
            refused.extend(self.misfits(&group, &inputs, last));
            if refused.len() == before {
                let node = fused_node(&self.view.graph.nodes[last], &group, &inputs, self.view)?;
                return Some((node, group.into_keys().collect()));
            }
        }
        None
    }

    /// The nodes that only this node and each other read. What reads a node comes behind it, so the nodes are asked from the last
    /// to the first.
    fn grow_group(&self, last: usize, refused: &BTreeSet<usize>) -> Option<GroupSteps> {
        let view = self.view;
        let nodes = &view.graph.nodes;
        let result = nodes[last].output(0)?;
        let dtype = view.dtype(result).filter(|dtype| matches!(*dtype, Dtype::F32 | Dtype::F64))?;
        let mut group = GroupSteps::from([(last, node_steps(view, &nodes[last], dtype)?)]);
        let mut reads: HashMap<ValueId, u32> = HashMap::new();
        let mut open = BTreeSet::new();
        let mut newest = last;
        loop {
            for value in nodes[newest].inputs.iter().flatten() {
                *reads.entry(*value).or_default() += 1;
                open.extend(view.producer_index(*value));
            }
            let joins = |at: usize| {
                let node = &nodes[at];
                let made = node.output(0).filter(|_| !refused.contains(&at) && !self.fused.contains(&at))?;
                let is_inside = view.has_uses(made, *reads.get(&made)?);
                let steps = is_inside.then(|| node_steps(view, node, dtype)).flatten()?;
                view.has_same_shape(made, result).then_some(steps)
            };
            let next = loop {
                let Some(at) = open.pop_last() else { return Some(group) };
                if let Some(steps) = joins(at) {
                    break (at, steps);
                }
            };
            newest = next.0;
            group.insert(next.0, next.1);
            if group_inputs(&group, view).len() > MAX_INPUTS {
                group.remove(&newest);
                return Some(group);
            }
            if group.len() == MAX_NODES {
                return Some(group);
            }
        }
    }

    /// Nodes that have to leave a group: they read masks from outside, or their results depend on tiles that inputs which broadcast
    /// would change.
    fn misfits(&self, group: &GroupSteps, inputs: &[ValueId], last: usize) -> Vec<usize> {
        let view = self.view;
        let nodes = &view.graph.nodes;
        let is_mask = |value: &ValueId| view.dtype(*value) == Some(Dtype::Bool);
        let reads_mask = |at: &usize| {
            nodes[*at].inputs.iter().flatten().any(|input| inputs.contains(input) && is_mask(input))
        };
        let result = nodes[last].output(0);
        let is_tiled = |at: &usize| {
            depends_on_tiles(&nodes[*at])
                && !inputs
                    .iter()
                    .all(|input| result.is_some_and(|result| view.has_same_shape(*input, result)))
        };
        group.keys().copied().filter(|at| reads_mask(at) || is_tiled(at)).collect()
    }
}

/// The values that a group reads and does not make, each once.
fn group_inputs(group: &GroupSteps, view: &GraphView<'_>) -> Vec<ValueId> {
    let is_made = |value: ValueId| view.producer_index(value).is_some_and(|at| group.contains_key(&at));
    let mut inputs = Vec::new();
    for operand in group.values().flatten().flat_map(|step| &step.operands) {
        if let FusedOperand::Value(value) = *operand
            && !is_made(value)
            && !inputs.contains(&value)
        {
            inputs.push(value);
        }
    }
    inputs
}

/// The node that replaces a group; `None` if its inputs do not broadcast to the shape of the result.
fn fused_node(last: &Node, group: &GroupSteps, inputs: &[ValueId], view: &GraphView<'_>) -> Option<Node> {
    let result = last.output(0)?;
    let (read, made) = (inputs.to_vec(), result);
    let has_shape = view.check_shapes(move |graph| {
        let dims = read.iter().map(|input| graph.value(*input).dims()).collect::<Option<Vec<_>>>()?;
        let made = graph.value(made).dims()?;
        let rank = dims.iter().map(|dims| dims.len()).max()?;
        let size = |back: usize| {
            let sizes = dims.iter().filter_map(|dims| Some(dims[dims.len().checked_sub(back)?]));
            sizes.reduce(|size, other| if size == 1 { other } else { size })
        };
        Some(rank == made.len() && (1..=rank).all(|back| size(back) == Some(made[rank - back])))
    });
    let mut places: HashMap<ValueId, i64> = (0..).zip(inputs).map(|(place, input)| (*input, place)).collect();
    let (mut ops, mut operands, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
    for (at, steps) in group {
        for step in steps {
            operands.push(step.operands.len() as i64);
            for operand in &step.operands {
                operands.push(match operand {
                    FusedOperand::Value(value) => *places.get(value)?,
                    FusedOperand::Previous => (inputs.len() + ops.len()) as i64 - 1,
                    FusedOperand::Scalar(scalar) => {
                        scalars.push(*scalar);
                        -(scalars.len() as i64)
                    }
                });
            }
            ops.push(step.op);
        }
        places.insert(view.graph.nodes[*at].output(0)?, (inputs.len() + ops.len()) as i64 - 1);
    }
    let mut node = Node::new(OARLOCK_DOMAIN, FUSED_OP, 1, inputs.iter().copied().map(Some), [Some(result)]);
    node.name = last.name.clone();
    node.attributes.set("steps", Attribute::String(ops.join(",")));
    node.attributes.set("operands", Attribute::Ints(operands));
    if !scalars.is_empty() {
        node.attributes.set("scalars", Attribute::Floats(scalars));
    }
    (has_shape && !inputs.is_empty()).then_some(node)
}
