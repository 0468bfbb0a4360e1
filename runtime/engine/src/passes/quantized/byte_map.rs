//! Elementwise ops between 8-bit values. Such a value has 256 states, so whatever is computed from one alone is a table: it is computed
//! once, when the graph is rewritten, by the ops themselves.

use std::collections::{BTreeSet, HashMap};

use oarlock_core::schema::{OARLOCK_DOMAIN, OpFact, has_fact};
use oarlock_core::{Constant, Dtype};

use super::super::constant_evaluation::run_on_host;
use super::super::graph_view::{GraphView, define_pass, replace_nodes};
use super::super::infer::node_op;
use super::super::{GraphPass, PassContext};
use super::quantization::{match_dequantize, match_quantize};
use crate::graph::{Graph, GraphValue, Node, ValueId, Weight};

pub(in super::super) const FUSE_BYTE_MAPS: GraphPass = define_pass(
    "byte map fusion",
    "looks up in a table what elementwise ops make of an 8-bit value",
    fuse_byte_maps,
);

fn fuse_byte_maps(graph: &mut Graph, context: &PassContext<'_>) -> oarlock_core::Result<usize> {
    if !context.has_kernel_for("ByteMap") {
        return Ok(0);
    }
    let found: Vec<(usize, ByteMapRewrite)> = {
        let view = GraphView::of_graph(graph, context);
        let sources = ByteSources::of_graph(&view);
        let nodes = graph.nodes.iter().enumerate();
        nodes.filter_map(|(at, node)| Some((at, find_rewrite(&view, &sources, node)?))).collect()
    };
    let (mut replacements, mut tables) = (HashMap::new(), HashMap::new());
    for (at, rewrite) in found {
        let quantize = graph.nodes[at].clone();
        if let Some(nodes) = rewrite.into_nodes(graph, context, &quantize, &mut tables) {
            replacements.insert(at, nodes);
        }
    }
    Ok(replace_nodes(graph, replacements))
}

/// The tables of 8-bit values that are computed from one other, so that the nodes of a long chain run once.
type KnownTables = HashMap<ValueId, Weight>;

/// For each value that is computed from one 8-bit value alone, that value.
struct ByteSources(HashMap<ValueId, ValueId>);

impl ByteSources {
    /// Goes over the nodes in their order, in which values are computed before they are read.
    fn of_graph(view: &GraphView<'_>) -> Self {
        let mut sources = Self(HashMap::new());
        for node in &view.graph.nodes {
            if let Some((output, source)) = node.output(0).zip(sources.source_of(view, node)) {
                sources.0.insert(output, source);
            }
        }
        sources
    }

    fn source_of(&self, view: &GraphView<'_>, node: &Node) -> Option<ValueId> {
        if let Some(from) = node.output(0).and_then(|output| match_dequantize(view, output)) {
            return Some(self.0.get(&from.value).copied().unwrap_or(from.value));
        }
        if let Some((from, _)) = match_quantize(view, node) {
            return self.0.get(&from).copied();
        }
        if !is_elementwise(node) {
            return None;
        }
        let mut read = node.inputs.iter().flatten();
        let source = *read.clone().find_map(|input| self.0.get(input))?;
        // Constants are looked at last: what is looked at has to be the same for other shapes.
        let is_known = |input: &ValueId| match self.0.get(input) {
            Some(other) => *other == source,
            None => is_scalar_constant(view, *input),
        };
        read.all(is_known).then_some(source)
    }
}

fn is_elementwise(node: &Node) -> bool {
    node.domain.is_empty() && node.outputs.len() == 1 && has_fact(&node.op, OpFact::Elementwise)
}

fn is_scalar_constant(view: &GraphView<'_>, value: ValueId) -> bool {
    let numbers = view.constant(value);
    numbers.is_some_and(|numbers| numbers.dims().iter().product::<i64>() == 1 && numbers.dims().len() <= 1)
}

/// What replaces a node that quantizes.
enum ByteMapRewrite {
    Mapped(ByteMap),
    /// A part of an 8-bit value, which is the output of this number, is mapped after it is taken.
    Taken(Node, usize, ByteMap),
    /// 8-bit values are mapped before they are joined.
    Joined(Node, Vec<ByteMap>),
}

fn find_rewrite(view: &GraphView<'_>, sources: &ByteSources, node: &Node) -> Option<ByteMapRewrite> {
    let (made, _) = match_quantize(view, node)?;
    if let Some(source) = sources.0.get(&made) {
        return Some(ByteMapRewrite::Mapped(ByteMap::between(view, sources, *source, node)?));
    }
    let moving = view.producer(made).filter(|moving| moving.domain.is_empty() && view.is_read_once(made))?;
    match &*moving.op {
        "Concat" => {
            let maps = moving.inputs.iter().map(|input| ByteMap::of_dequantized(view, (*input)?, node));
            Some(ByteMapRewrite::Joined(moving.clone(), maps.collect::<Option<_>>()?))
        }
        "Split" | "Slice" => {
            let place = moving.outputs.iter().position(|output| *output == Some(made))?;
            let map = ByteMap::of_dequantized(view, moving.input(0)?, node)?;
            Some(ByteMapRewrite::Taken(moving.clone(), place, map))
        }
        _ => None,
    }
}

impl ByteMapRewrite {
    /// The nodes that write what `quantize` writes; `None` if the device does not support them.
    fn into_nodes(
        self,
        graph: &mut Graph,
        context: &PassContext<'_>,
        quantize: &Node,
        tables: &mut KnownTables,
    ) -> Option<Vec<Node>> {
        let output = quantize.output(0)?;
        let nodes = match self {
            Self::Mapped(map) => {
                let table = map.compute_table(graph, context, tables)?;
                tables.insert(output, Weight::Numbers(table.clone()));
                let identity = || Node::new("", "Identity", 14, [Some(map.source)], [Some(output)]);
                vec![map_node(graph, map.source, table, output, quantize).unwrap_or_else(identity)]
            }
            Self::Taken(mut moving, place, map) => {
                let table = map.compute_table(graph, context, &KnownTables::new())?;
                moving.inputs[0] = Some(map.source);
                for other in moving.outputs.iter_mut().flatten() {
                    *other = add_byte_value(graph, context, map.source, *other)?;
                }
                let part = moving.output(place)?;
                let mapped = map_node(graph, part, table, output, quantize);
                if mapped.is_none() {
                    moving.outputs[place] = Some(output);
                }
                std::iter::once(moving).chain(mapped).collect()
            }
            Self::Joined(mut joining, maps) => {
                let mut nodes = Vec::new();
                for (input, map) in joining.inputs.iter_mut().zip(maps) {
                    let table = map.compute_table(graph, context, &KnownTables::new())?;
                    let mapped = add_byte_value(graph, context, output, map.source)?;
                    let node = map_node(graph, map.source, table, mapped, quantize);
                    *input = Some(if node.is_some() { mapped } else { map.source });
                    nodes.extend(node);
                }
                joining.outputs.clone_from(&quantize.outputs);
                nodes.push(joining);
                nodes
            }
        };
        nodes.iter().all(|node| context.supports_node(graph, node)).then_some(nodes)
    }
}

/// Adds a value with the dtype of one value and the shape of another.
fn add_byte_value(
    graph: &mut Graph,
    context: &PassContext<'_>,
    dtype_of: ValueId,
    shape_of: ValueId,
) -> Option<ValueId> {
    let name = format!("{} in 8 bits", graph.value(shape_of).name);
    context.add_value_with_dims(graph, &name, dtype_of, move |graph| graph.value(shape_of).dims())
}

/// The node that looks values up in a table; `None` if the table changes none.
fn map_node(graph: &mut Graph, from: ValueId, table: Constant, to: ValueId, quantize: &Node) -> Option<Node> {
    let bytes = table.bytes().ok()?;
    if graph.value(from).dtype() == Some(table.dtype()) && bytes.iter().copied().eq(0..=u8::MAX) {
        return None;
    }
    let name = format!("table of {}", quantize.label());
    let table = graph.add_value(GraphValue::with_weight(name, Weight::Numbers(table)));
    let mut node = Node::new(OARLOCK_DOMAIN, "ByteMap", 1, [Some(from), Some(table)], [Some(to)]);
    node.name = quantize.name.clone();
    Some(node)
}

/// The nodes between an 8-bit value and another, in order; the last one quantizes.
struct ByteMap {
    source: ValueId,
    dtypes: [Dtype; 2],
    nodes: Vec<Node>,
}

impl ByteMap {
    /// The nodes behind the last 8-bit values, whose tables are known by then.
    fn between(
        view: &GraphView<'_>,
        sources: &ByteSources,
        source: ValueId,
        quantize: &Node,
    ) -> Option<Self> {
        let (mut open, mut indices) = (vec![quantize.input(0)?], BTreeSet::new());
        while let Some(value) = open.pop() {
            if value == source || view.graph.value(value).weight.is_some() {
                continue;
            }
            let index = view.producer_index(value)?;
            let node = &view.graph.nodes[index];
            let is_mapped = sources.0.contains_key(&value) && match_quantize(view, node).is_some();
            if !is_mapped && indices.insert(index) {
                open.extend(node.inputs.iter().flatten());
            }
        }
        let nodes = indices.into_iter().map(|index| &view.graph.nodes[index]).chain([quantize]);
        Self::new(view, source, nodes.cloned().collect(), quantize)
    }

    /// From what a value is dequantized from to what quantizes it.
    fn of_dequantized(view: &GraphView<'_>, value: ValueId, quantize: &Node) -> Option<Self> {
        let source = match_dequantize(view, value)?.value;
        let mut again = quantize.clone();
        again.inputs[0] = Some(value);
        Self::new(view, source, vec![view.producer(value)?.clone(), again], quantize)
    }

    fn new(view: &GraphView<'_>, source: ValueId, nodes: Vec<Node>, quantize: &Node) -> Option<Self> {
        let dtypes = [view.dtype(source)?, view.dtype(quantize.output(0)?)?];
        Some(Self { source, dtypes, nodes })
    }

    /// Runs the nodes on all 256 values.
    fn compute_table(
        &self,
        graph: &Graph,
        context: &PassContext<'_>,
        tables: &KnownTables,
    ) -> Option<Constant> {
        let all = Constant::new(self.dtypes[0], &[256], (0..=u8::MAX).collect::<Vec<u8>>()).ok()?;
        let mut known = HashMap::from([(self.source, Weight::Numbers(all))]);
        for node in &self.nodes {
            let op = node_op(node, context.runtime).ok()?;
            let found = |input: &ValueId| known.get(input).or_else(|| tables.get(input));
            let weight = |input: &ValueId| found(input).or(graph.value(*input).weight.as_ref());
            let inputs = node.inputs.iter().map(|input| match input {
                Some(input) => weight(input).map(Some),
                None => Some(None),
            });
            let made = run_on_host(node, &op, &inputs.collect::<Option<Vec<_>>>()?, context).ok()?;
            known.insert(node.output(0)?, made.into_iter().next()?);
        }
        let table = known.remove(&self.nodes.last()?.output(0)?)?;
        let table =
            table.as_numbers().filter(|table| table.dims() == [256] && table.dtype() == self.dtypes[1])?;
        Some(table.clone())
    }
}
