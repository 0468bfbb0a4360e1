//! Graphs with their nodes. What a body captures it reads by the name that it has around it.

use std::collections::HashMap;

use oarlock_core::{Error, Result, schema};

use super::opsets::Opsets;
use super::weights::Weights;
use super::{attribute, types};
use crate::graph::{Graph, Node, ValueId, ValueType};
use crate::import::onnx::messages::{AttributeProto, GraphProto, NodeProto};
use crate::session::Slot;

/// Everything that is known while a model is written.
pub(super) struct Exporter {
    pub(super) opsets: Opsets,
    pub(super) weights: Weights,
    /// How many nodes others than Oarlock may not understand.
    pub(super) own_nodes: usize,
    /// The names that are taken, each with the number that the next one like it gets. No two values of a model have the
    /// same, in whatever graphs they are.
    taken: HashMap<String, usize>,
}

/// The names of the values of a graph, by their index.
type Names = Vec<Option<String>>;

impl Exporter {
    pub(super) fn new(opsets: Opsets, weights: Weights) -> Self {
        Self { opsets, weights, own_nodes: 0, taken: HashMap::new() }
    }

    /// The graph of a model, whose inputs and outputs are called as these slots are.
    pub(super) fn model(&mut self, graph: &Graph, inputs: &[Slot], outputs: &[Slot]) -> Result<GraphProto> {
        let slots = || inputs.iter().chain(outputs);
        self.taken = slots().map(|slot| (slot.name.to_string(), 2)).collect();
        let mut names: Names = vec![None; graph.value_count()];
        for (id, slot) in graph.inputs.iter().zip(inputs) {
            names[id.index()] = Some(slot.name.to_string());
        }
        let wanted: Vec<String> = outputs.iter().map(|slot| slot.name.to_string()).collect();
        let mut proto = self.graph(graph, names, &wanted)?;
        proto.input = inputs.iter().map(|slot| types::info(&slot.name, &slot.declared)).collect();
        let output = |(slot, id): (&Slot, &ValueId)| match &slot.declared {
            ValueType::Unknown => types::info(&slot.name, &types::found(graph.value(*id))),
            declared => types::info(&slot.name, declared),
        };
        proto.output = outputs.iter().zip(&graph.outputs).map(output).collect();
        Ok(proto)
    }

    /// A branch or a body that captures values of these names.
    fn body(&mut self, graph: &Graph, captured: &[String]) -> Result<GraphProto> {
        let mut names: Names = vec![None; graph.value_count()];
        let (formal, captures) = graph.inputs.split_at(graph.inputs.len().saturating_sub(captured.len()));
        for (id, name) in captures.iter().zip(captured) {
            names[id.index()] = Some(name.clone());
        }
        for id in formal {
            names[id.index()] = Some(self.free(&graph.value(*id).name));
        }
        let wanted: Vec<String> = graph.outputs.iter().map(|id| self.free(&graph.value(*id).name)).collect();
        let info = |name: &str, id: &ValueId| types::info(name, &types::found(graph.value(*id)));
        let inputs = formal.iter().map(|id| info(names[id.index()].as_deref().unwrap_or_default(), id));
        let (input, output) =
            (inputs.collect(), wanted.iter().zip(&graph.outputs).map(|(name, id)| info(name, id)).collect());
        Ok(GraphProto { input, output, ..self.graph(graph, names, &wanted)? })
    }

    /// A graph in which inputs have names already, but for what is said of inputs and outputs.
    fn graph(&mut self, graph: &Graph, mut names: Names, outputs: &[String]) -> Result<GraphProto> {
        let mut proto = GraphProto { name: Some(self.title(graph)), ..GraphProto::default() };
        let is_given: Vec<bool> = names.iter().map(Option::is_some).collect();
        let (mut passed, mut given) = (Vec::new(), HashMap::new());
        for (id, wanted) in graph.outputs.iter().zip(outputs) {
            // A model may give a value several times under one name.
            match given.insert(wanted, *id) {
                Some(other) if other == *id => continue,
                Some(_) => {
                    let message = format!("expected outputs of names of their own, found `{wanted}` twice");
                    return Err(Error::invalid_argument(message));
                }
                None => {}
            }
            if graph.value(*id).weight.is_some() {
                // Not everybody takes a constant that no node reads.
                self.name(graph, *id, &mut names);
            }
            match &names[id.index()] {
                None => names[id.index()] = Some(wanted.clone()),
                Some(name) if name == wanted => {}
                // An input, a constant, or an output for the second time.
                Some(name) => passed.push(passed_on(name, wanted)),
            }
        }
        for node in &graph.nodes {
            let made = self.node(graph, node, &mut names)?;
            proto.node.push(made);
        }
        proto.node.append(&mut passed);
        for (id, value) in graph.values() {
            let Some(name) = &names[id.index()] else { continue };
            match &value.weight {
                _ if is_given[id.index()] => {}
                Some(weight) => proto.initializer.push(self.weights.add(name, weight)),
                None if outputs.contains(name) => {}
                None => proto.value_info.push(types::info(name, &types::found(value))),
            }
        }
        proto.value_info.retain(|info| info.r#type.is_some());
        Ok(proto)
    }

    fn node(&mut self, graph: &Graph, node: &Node, names: &mut Names) -> Result<NodeProto> {
        let mut attributes: Vec<AttributeProto> =
            node.attributes.iter().map(|(name, value)| attribute::value(name, value)).collect();
        for subgraph in &node.subgraphs {
            let captures = subgraph.captures.iter();
            let captured: Vec<String> = captures.map(|id| self.name(graph, *id, names)).collect();
            let body = self.body(&subgraph.graph, &captured)?;
            attributes.push(attribute::graph(&subgraph.attribute, body));
        }
        if node.is("Optional") && node.input(0).is_none() {
            // What it is that is missing.
            if let Some(ValueType::Optional(of)) = node.output(0).map(|id| &graph.value(id).declared) {
                attributes.push(attribute::declared("type", of));
            }
        }
        let mut operands = |ids: &[Option<ValueId>]| -> Vec<String> {
            let name = |id: &Option<ValueId>| id.map_or_else(String::new, |id| self.name(graph, id, names));
            ids.iter().map(name).collect()
        };
        let (input, output) = (operands(&node.inputs), operands(&node.outputs));
        let proto = NodeProto {
            name: (!node.name.is_empty()).then(|| node.name.to_string()),
            op_type: Some(node.op.to_string()),
            domain: (!node.domain.is_empty()).then(|| node.domain.to_string()),
            attribute: attributes,
            input,
            output,
            ..NodeProto::default()
        };
        let suits = self.opsets.suits(node);
        let is_known = node.domain.is_empty() || node.domain.starts_with(schema::ONNX);
        self.own_nodes += usize::from(!suits || !is_known);
        if suits { Ok(proto) } else { self.opsets.call(node, proto) }
    }

    /// The name of a value, which has one from now on.
    fn name(&mut self, graph: &Graph, id: ValueId, names: &mut Names) -> String {
        let name = names[id.index()].take().unwrap_or_else(|| self.free(&graph.value(id).name));
        names[id.index()].insert(name).clone()
    }

    /// A name that is not taken, as near to this one as can be.
    fn free(&mut self, wanted: &str) -> String {
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

    /// The name of a graph. ONNX wants that it has one.
    fn title(&self, graph: &Graph) -> String {
        if graph.name.is_empty() { "graph".to_owned() } else { graph.name.to_string() }
    }
}

/// A node that gives a value a second name.
fn passed_on(from: &str, to: &str) -> NodeProto {
    NodeProto {
        op_type: Some("Identity".to_owned()),
        input: vec![from.to_owned()],
        output: vec![to.to_owned()],
        ..NodeProto::default()
    }
}
