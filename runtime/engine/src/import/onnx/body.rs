//! Graphs of the model, and the graphs within their nodes.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use oarlock_core::Result;

use super::budget::Budget;
use super::call::Functions;
use super::external::External;
use super::messages::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use super::opsets::Opsets;
use super::scope::Scopes;
use super::{domain_of, order, shown, sparse, tensor, types};
use crate::graph::{Graph, ValueId, ValueType, Weight};
use crate::import::place::{Within as _, quoted, wrong};

/// Everything that is known while a model is read.
pub(super) struct Importer<'m> {
    pub(super) scopes: Scopes<'m>,
    pub(super) functions: Functions<'m>,
    pub(super) external: External,
    pub(super) budget: Budget,
    opsets: &'m Opsets<'m>,
}

impl<'m> Importer<'m> {
    /// Reads what the functions of a model are called. Weights in files are looked for in directories.
    pub(super) fn new(
        model: &'m ModelProto,
        opsets: &'m Opsets<'m>,
        directories: Vec<PathBuf>,
    ) -> Result<Self> {
        Ok(Self {
            scopes: Scopes::default(),
            functions: Functions::of(&model.functions)?,
            external: External::new(directories),
            budget: Budget::new(),
            opsets,
        })
    }

    /// Makes the graph of the model.
    pub(super) fn model(mut self, graph: &'m GraphProto) -> Result<Graph> {
        Ok(self.body(graph)?.0)
    }

    /// Makes a graph; gives it and the values that it captures from the one around it.
    pub(super) fn body(&mut self, proto: &'m GraphProto) -> Result<(Graph, Vec<ValueId>)> {
        let place = || format!("graph {}", quoted(proto.name()));
        self.scopes.open_graph(proto.name()).within(place)?;
        self.fill(proto).within(place)?;
        let (mut graph, captures) = self.scopes.close_graph().ok_or_else(|| wrong("a graph", "none"))?;
        order::sort(&mut graph).within(place)?;
        Ok((graph, captures))
    }

    fn fill(&mut self, proto: &'m GraphProto) -> Result<()> {
        self.inputs(proto)?;
        self.weights(proto)?;
        self.promise(&proto.node, &mut HashMap::new())?;
        self.declare(&proto.value_info)?;
        self.declare(&proto.output)?;
        for node in &proto.node {
            self.node(node)?;
        }
        for output in &proto.output {
            let found = self.scopes.find(output.name()).within(|| "outputs".to_owned())?;
            let id = found.ok_or_else(|| wrong("outputs that are made", quoted(output.name())))?;
            self.scopes.graph().outputs.push(id);
        }
        Ok(())
    }

    /// Inputs. One of the model that is a weight too is made as such, while a body is always given all of its own.
    fn inputs(&mut self, proto: &'m GraphProto) -> Result<()> {
        let weights: HashSet<&str> = weight_names(proto).collect();
        for input in &proto.input {
            let name = input.name();
            if self.scopes.is_outermost() && weights.contains(name) {
                continue;
            }
            let place = || format!("input {}", quoted(name));
            let declared = declared(input).within(place)?;
            let id = self.scopes.define(name, declared).within(place)?;
            self.scopes.graph().inputs.push(id);
        }
        Ok(())
    }

    fn weights(&mut self, proto: &'m GraphProto) -> Result<()> {
        let inputs: HashMap<&str, &ValueInfoProto> =
            proto.input.iter().map(|input| (input.name(), input)).collect();
        let is_given = !self.scopes.is_outermost();
        for tensor in proto.initializer.iter().filter(|it| !(is_given && inputs.contains_key(it.name()))) {
            let place = || format!("initializer {}", quoted(tensor.name()));
            let weight = tensor::weight(tensor, &mut self.external).within(place)?;
            self.weight(tensor.name(), weight, inputs.get(tensor.name()).copied()).within(place)?;
        }
        for tensor in &proto.sparse_initializer {
            let name = tensor.values.as_ref().map(|values| values.name()).unwrap_or_default();
            let place = || format!("sparse initializer {}", quoted(name));
            let weight = sparse::weight(tensor, &mut self.external, &mut self.budget).within(place)?;
            self.weight(name, weight, inputs.get(name).copied()).within(place)?;
        }
        Ok(())
    }

    /// Makes a constant, which is a default where it is an input of the model too.
    fn weight(&mut self, name: &'m str, weight: Weight, input: Option<&'m ValueInfoProto>) -> Result<()> {
        let declared = input.map_or(Ok(ValueType::Unknown), declared)?;
        let id = self.scopes.define(name, declared)?;
        let graph = self.scopes.graph();
        graph.value_mut(id).weight = Some(weight);
        if input.is_some() {
            graph.defaults.push(id);
        }
        Ok(())
    }

    /// Names what nodes will make, so that a name means the same before and behind its node. Some are values already, such
    /// as the outputs of a function; those that are found are taken.
    pub(super) fn promise(
        &mut self,
        nodes: &'m [NodeProto],
        known: &mut HashMap<&'m str, ValueId>,
    ) -> Result<()> {
        for node in nodes {
            for output in node.output.iter().filter(|output| !output.is_empty()) {
                match known.remove(output.as_str()) {
                    Some(id) => self.scopes.name(output, Some(id)),
                    None => self.scopes.define(output, ValueType::Unknown).map(|_| ()),
                }
                .within(|| label(node))?;
            }
        }
        Ok(())
    }

    /// Notes what the model says about types of values that are made here. What it says about others is of no use.
    pub(super) fn declare(&mut self, infos: &'m [ValueInfoProto]) -> Result<()> {
        for info in infos {
            let declared = declared(info).within(|| format!("the type of {}", quoted(info.name())))?;
            if let Some(Some(id)) = self.scopes.own(info.name())
                && declared != ValueType::Unknown
            {
                self.scopes.graph().value_mut(id).declared = declared;
            }
        }
        Ok(())
    }

    /// The opset of a domain that nodes here mean: that of the function, or of the model.
    pub(super) fn opset(&self, domain: &str) -> Result<u32> {
        let of_function = self.scopes.calls().next().and_then(|call| call.opsets.get(domain));
        of_function.or_else(|| self.opsets.get(domain)).copied().ok_or_else(|| {
            let expected =
                format!("an opset of {} among those that the model imports", quoted(shown(domain)));
            let known: Vec<String> = self.opsets.keys().map(|domain| quoted(shown(domain))).collect();
            wrong(expected, if known.is_empty() { "none at all".to_owned() } else { known.join(", ") })
        })
    }
}

fn weight_names(proto: &GraphProto) -> impl Iterator<Item = &str> {
    let sparse = proto.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_deref());
    proto.initializer.iter().chain(sparse).map(|tensor| tensor.name())
}

fn declared(info: &ValueInfoProto) -> Result<ValueType> {
    info.r#type.as_ref().map_or(Ok(ValueType::Unknown), types::value_type)
}

/// What messages call a node.
pub(super) fn label(node: &NodeProto) -> String {
    let domain = domain_of(node.domain());
    let op = match domain {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    };
    match (node.name(), node.output.iter().find(|output| !output.is_empty())) {
        ("", Some(output)) => format!("the {} that makes {}", quoted(&op), quoted(output)),
        ("", None) => quoted(&op),
        (name, _) => format!("{} ({})", quoted(&op), quoted(name)),
    }
}
