//! Exports graphs with their nodes. A body refers to captured values by their outer names.
//!
//! Export is deterministic: a file that is read and written again stays the same. Value infos are sorted by name, and all
//! constants are initializers of the model's graph.

use std::collections::{BTreeMap, HashMap};

use oarlock_core::{Dtype, Error, Result, schema};

use super::opsets::ExportOpsets;
use super::weights::WeightWriter;
use super::{attribute, compact_constants, types};
use crate::graph::{Graph, Node, ValueId, ValueType, Weight};
use crate::import::onnx::messages::{AttributeProto, GraphProto, NodeProto};
use crate::model_operand::ModelOperand;

/// State of one export.
pub(super) struct OnnxExporter {
    pub(super) opsets: ExportOpsets,
    pub(super) weights: WeightWriter,
    /// Number of nodes that other programs may not understand.
    pub(super) own_nodes: usize,
    /// Names in use, each with the suffix for the next value of that name. Names are unique across all graphs of the model.
    taken: HashMap<String, usize>,
    /// Names of constants, by the address of their elements. Each graph has its own copy of a captured constant, but the file
    /// must contain it once.
    constants: HashMap<WeightIdentity, String>,
    /// Constants of all graphs; they become initializers of the outermost one.
    initializers: BTreeMap<String, Weight>,
}

/// Identifies a constant by address, dtype and shape.
#[derive(PartialEq, Eq, Hash)]
struct WeightIdentity {
    address: usize,
    dtype: Dtype,
    dims: Vec<i64>,
}

impl WeightIdentity {
    fn from_weight(weight: &Weight) -> Self {
        let address = match weight {
            Weight::Numbers(constant) => constant.address(),
            Weight::Texts { texts, .. } => texts.as_ptr().addr(),
        };
        Self { address, dtype: weight.dtype(), dims: weight.dims().to_vec() }
    }
}

/// Names assigned to the values of a graph.
struct ValueNames {
    /// Names, by the index of the value.
    of: Vec<Option<String>>,
    /// Values that were named while nodes were exported and still need a value info or an initializer.
    new: Vec<ValueId>,
}

impl ValueNames {
    fn for_graph(graph: &Graph) -> Self {
        Self { of: vec![None; graph.value_count()], new: Vec::new() }
    }

    fn find_name(&self, id: ValueId) -> Option<&String> {
        self.of[id.index()].as_ref()
    }

    fn set_name(&mut self, id: ValueId, name: String) {
        self.of[id.index()] = Some(name);
    }
}

impl OnnxExporter {
    pub(super) fn new(opsets: ExportOpsets, weights: WeightWriter) -> Self {
        let (taken, constants, initializers) = <_>::default();
        Self { opsets, weights, own_nodes: 0, taken, constants, initializers }
    }

    /// Exports the outermost graph, with inputs and outputs named as given. Some of its constants may be outputs of `folded`
    /// nodes.
    pub(super) fn export_model(
        &mut self,
        graph: &Graph,
        folded: &[Node],
        inputs: &[ModelOperand],
        outputs: &[ModelOperand],
    ) -> Result<GraphProto> {
        let slots = || inputs.iter().chain(outputs);
        self.taken = slots().map(|slot| (slot.name.to_string(), 2)).collect();
        let mut names = ValueNames::for_graph(graph);
        for (id, slot) in graph.inputs.iter().zip(inputs) {
            names.set_name(*id, slot.name.to_string());
        }
        // Paddle programs may assign to the name of an input, so an output can have the name of another value.
        let is_other = |slot: &ModelOperand, id: &ValueId| {
            let same = inputs.iter().position(|input| input.name == slot.name);
            same.is_some_and(|place| graph.inputs.get(place) != Some(id))
        };
        if let Some((slot, _)) = outputs.iter().zip(&graph.outputs).find(|(slot, id)| is_other(slot, id)) {
            let name = &slot.name;
            return Err(Error::invalid_argument(format!(
                "expected outputs and inputs to have different names, as ONNX requires, found an input and an output `{name}`"
            )));
        }
        let wanted: Vec<String> = outputs.iter().map(|slot| slot.name.to_string()).collect();
        let mut proto = self.export_graph(graph, folded, names, &wanted)?;
        for (name, weight) in std::mem::take(&mut self.initializers) {
            proto.initializer.push(self.weights.add_weight(&name, &weight)?);
        }
        proto.input = inputs.iter().map(|slot| types::value_info(&slot.name, &slot.declared)).collect();
        let output = |(slot, id): (&ModelOperand, &ValueId)| match &slot.declared {
            ValueType::Unknown => types::value_info(&slot.name, &types::resolved_type(graph.value(*id))),
            declared => types::value_info(&slot.name, declared),
        };
        proto.output = outputs.iter().zip(&graph.outputs).map(output).collect();
        Ok(proto)
    }

    /// Exports a branch or body. `captured` are the outer names of its captures, `None` for those it does not read.
    fn export_body(&mut self, graph: &Graph, captured: &[Option<String>]) -> Result<GraphProto> {
        let mut names = ValueNames::for_graph(graph);
        let (formal, captures) = graph.inputs.split_at(graph.inputs.len().saturating_sub(captured.len()));
        for (id, name) in captures.iter().zip(captured) {
            names.of[id.index()].clone_from(name);
        }
        for id in formal {
            names.set_name(*id, self.unused_name(&graph.value(*id).name));
        }
        let wanted: Vec<String> =
            graph.outputs.iter().map(|id| self.unused_name(&graph.value(*id).name)).collect();
        let info =
            |name: &str, id: &ValueId| types::value_info(name, &types::resolved_type(graph.value(*id)));
        let inputs = formal.iter().map(|id| info(names.find_name(*id).map_or("", String::as_str), id));
        let (input, output) =
            (inputs.collect(), wanted.iter().zip(&graph.outputs).map(|(name, id)| info(name, id)).collect());
        Ok(GraphProto { input, output, ..self.export_graph(graph, &[], names, &wanted)? })
    }

    /// Exports a graph whose inputs are named already; value infos of inputs and outputs are added by the caller.
    fn export_graph(
        &mut self,
        graph: &Graph,
        folded: &[Node],
        mut names: ValueNames,
        outputs: &[String],
    ) -> Result<GraphProto> {
        let mut proto = GraphProto { name: Some(self.graph_title(graph)), ..GraphProto::default() };
        let (mut passed, mut given) = (Vec::new(), HashMap::new());
        for (id, wanted) in graph.outputs.iter().zip(outputs) {
            // A model may list one value several times under one name.
            match given.insert(wanted, *id) {
                Some(other) if other == *id => continue,
                Some(_) => {
                    let message = format!("expected outputs of names of their own, found `{wanted}` twice");
                    return Err(Error::invalid_argument(message));
                }
                None => {}
            }
            if graph.value(*id).weight.is_some() {
                // Some programs refuse an initializer that only an output uses; an `Identity` node reads it here.
                self.value_name(graph, *id, &mut names);
            }
            match names.find_name(*id) {
                None => names.set_name(*id, wanted.clone()),
                Some(name) if name == wanted => {}
                // An input, a constant, or an output that is listed again.
                Some(name) => passed.push(identity_node(name, wanted)),
            }
        }
        for node in &graph.nodes {
            let result = self.export_node(graph, node, &mut names)?;
            proto.node.push(result);
        }
        proto.node.append(&mut passed);
        let opsets = &self.opsets;
        let shorter = compact_constants::find_compact_producers(graph, folded, |node| {
            is_onnx_op(node) && opsets.suits_node(node)
        });
        let (mut makers, mut at) = (BTreeMap::new(), 0);
        // Inputs of compact constants are named on the way, so the list grows during the loop.
        while let Some(id) = names.new.get(at).copied() {
            let (value, name) = (graph.value(id), self.value_name(graph, id, &mut names));
            match (&value.weight, shorter.get(&id)) {
                (Some(weight), None) => drop(self.initializers.insert(name, weight.clone())),
                (None, _) => proto.value_info.push(types::value_info(&name, &types::resolved_type(value))),
                (Some(_), Some((place, maker))) => {
                    makers.insert(place, self.export_node(graph, maker, &mut names)?);
                    proto.value_info.push(types::value_info(&name, &types::resolved_type(value)));
                }
            }
            at += 1;
        }
        proto.node.splice(0..0, makers.into_values());
        proto.value_info.retain(|info| info.r#type.is_some());
        proto.value_info.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(proto)
    }

    fn export_node(&mut self, graph: &Graph, node: &Node, names: &mut ValueNames) -> Result<NodeProto> {
        // ONNX's own products have no such attribute.
        let is_kept = |name: &str| name != schema::ACCURACY_LEVEL || !node.domain.is_empty();
        let kept = node.attributes.iter().filter(|(name, _)| is_kept(name));
        let mut attributes: Vec<AttributeProto> =
            kept.map(|(name, value)| attribute::encode_attribute(name, value)).collect::<Result<_>>()?;
        for subgraph in &node.subgraphs {
            // A captured value that the body does not read needs no name.
            let own = subgraph.graph.inputs.iter().rev().take(subgraph.captures.len()).rev();
            let counts = subgraph.graph.use_counts();
            let is_read = own.map(|id| counts[id.index()] > 0);
            let captures = subgraph.captures.iter().zip(is_read);
            let name = |(id, is_read): (&ValueId, bool)| is_read.then(|| self.value_name(graph, *id, names));
            let captured: Vec<Option<String>> = captures.map(name).collect();
            let body = self.export_body(&subgraph.graph, &captured)?;
            attributes.push(attribute::graph_attribute(&subgraph.attribute, body));
        }
        if node.is_op("Optional") && node.input(0).is_none() {
            // `type` says what an empty optional would hold.
            if let Some(ValueType::Optional(of)) = node.output(0).map(|id| &graph.value(id).declared) {
                attributes.push(attribute::type_attribute("type", of));
            }
        }
        let mut operands = |ids: &[Option<ValueId>]| -> Vec<String> {
            let name =
                |id: &Option<ValueId>| id.map_or_else(String::new, |id| self.value_name(graph, id, names));
            ids.iter().map(name).collect()
        };
        let (mut input, mut output) = (operands(&node.inputs), operands(&node.outputs));
        self.name_required_outputs(node, &mut output);
        input.truncate(input.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1));
        let proto = NodeProto {
            name: (!node.name.is_empty()).then(|| node.name.to_string()),
            op_type: Some(node.op.to_string()),
            domain: (!node.domain.is_empty()).then(|| node.domain.to_string()),
            attribute: attributes,
            input,
            output,
            ..NodeProto::default()
        };
        let suits = self.opsets.suits_node(node);
        self.own_nodes += usize::from(!suits || !is_onnx_op(node));
        if suits { Ok(proto) } else { self.opsets.wrap_in_function(node, proto) }
    }

    /// Names the outputs that the node must have, even if nobody reads them.
    fn name_required_outputs(&mut self, node: &Node, names: &mut Vec<String>) {
        let Ok(schema) = schema::find_schema(&node.domain, &node.op, node.opset) else { return };
        let required =
            schema.outputs.iter().take_while(|output| output.arity == schema::OperandArity::Required).count();
        names.resize(names.len().max(required), String::new());
        for name in &mut names[..required] {
            if name.is_empty() {
                *name = self.unused_name("unused");
            }
        }
    }

    /// Returns the name of a value, assigning one if needed.
    fn value_name(&mut self, graph: &Graph, id: ValueId, names: &mut ValueNames) -> String {
        if let Some(name) = names.find_name(id) {
            return name.clone();
        }
        let value = graph.value(id);
        let place = value.weight.as_ref().map(WeightIdentity::from_weight);
        let known = place.as_ref().and_then(|place| self.constants.get(place)).cloned();
        let name = known.unwrap_or_else(|| {
            names.new.push(id);
            self.unused_name(&value.name)
        });
        self.constants.extend(place.map(|place| (place, name.clone())));
        names.set_name(id, name.clone());
        name
    }

    /// Returns an unused name that is as close as possible to the wanted one.
    fn unused_name(&mut self, wanted: &str) -> String {
        let wanted = if wanted.is_empty() { "value" } else { wanted };
        let mut name = wanted.to_owned();
        while self.taken.contains_key(&name) {
            let number = self.taken.entry(wanted.to_owned()).or_insert(2);
            name = format!("{wanted}_{number}");
            *number += 1;
        }
        self.taken.insert(name.clone(), 2);
        name
    }

    /// The name of a graph; ONNX requires it to be nonempty.
    fn graph_title(&self, graph: &Graph) -> String {
        if graph.name.is_empty() { "graph".to_owned() } else { graph.name.to_string() }
    }
}

fn is_onnx_op(node: &Node) -> bool {
    node.domain.is_empty() || node.domain.starts_with(schema::ONNX_DOMAIN)
}

/// A node that gives a value another name.
fn identity_node(from: &str, to: &str) -> NodeProto {
    NodeProto {
        op_type: Some("Identity".to_owned()),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        ..NodeProto::default()
    }
}
