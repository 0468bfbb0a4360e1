//! Imports graphs and the subgraphs of their nodes.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use oarlock_core::Result;

use super::budget::ImportBudget;
use super::external_data::ExternalFiles;
use super::functions::FunctionTable;
use super::messages::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use super::opsets::OpsetImports;
use super::scope::ScopeStack;
use super::{displayed_domain, normalize_domain, sparse_tensor, tensor, topological_order, value_types};
use crate::graph::{Graph, ValueId, ValueType, Weight};
use crate::import::error_location::{ErrorLocation as _, invalid_model, quote_name};

/// State of one import.
pub(super) struct OnnxImporter<'m> {
    pub(super) scopes: ScopeStack<'m>,
    pub(super) functions: FunctionTable<'m>,
    pub(super) external: ExternalFiles,
    pub(super) budget: ImportBudget,
    opsets: &'m OpsetImports<'m>,
}

impl<'m> OnnxImporter<'m> {
    /// Reads the function table. External weights are resolved in `directories`.
    pub(super) fn new(
        model: &'m ModelProto,
        opsets: &'m OpsetImports<'m>,
        directories: Vec<PathBuf>,
    ) -> Result<Self> {
        Ok(Self {
            scopes: ScopeStack::default(),
            functions: FunctionTable::from_protos(&model.functions)?,
            external: ExternalFiles::new(directories),
            budget: ImportBudget::new(),
            opsets,
        })
    }

    /// Imports the outermost graph; returns it with the files that weights were read from.
    pub(super) fn import_model(mut self, graph: &'m GraphProto) -> Result<(Graph, Vec<PathBuf>)> {
        let (graph, _) = self.import_body(graph)?;
        Ok((graph, self.external.into_paths()))
    }

    /// Imports a graph; returns it with the values that it captures from the enclosing one.
    pub(super) fn import_body(&mut self, proto: &'m GraphProto) -> Result<(Graph, Vec<ValueId>)> {
        let place = || format!("graph {}", quote_name(proto.name()));
        self.scopes.open_graph(proto.name()).with_location(place)?;
        self.import_graph(proto).with_location(place)?;
        let (mut graph, captures) =
            self.scopes.close_graph().ok_or_else(|| invalid_model("a graph", "none"))?;
        topological_order::sort_nodes(&mut graph).with_location(place)?;
        Ok((graph, captures))
    }

    fn import_graph(&mut self, proto: &'m GraphProto) -> Result<()> {
        self.import_inputs(proto)?;
        self.import_weights(proto)?;
        self.declare_outputs(&proto.node, &mut HashMap::new())?;
        self.declare_types(&proto.value_info)?;
        self.declare_types(&proto.output)?;
        for node in &proto.node {
            self.import_node(node)?;
        }
        for output in &proto.output {
            let found = self.scopes.find_value(output.name()).with_location(|| "outputs".to_owned())?;
            let id = found
                .ok_or_else(|| invalid_model("outputs that a node produces", quote_name(output.name())))?;
            self.scopes.current_graph().outputs.push(id);
        }
        Ok(())
    }

    /// Imports inputs. An input of the model that is also an initializer becomes a weight; all inputs of a body are real.
    fn import_inputs(&mut self, proto: &'m GraphProto) -> Result<()> {
        let weights: HashSet<&str> = weight_names(proto).collect();
        for input in &proto.input {
            let name = input.name();
            if self.scopes.is_outermost() && weights.contains(name) {
                continue;
            }
            let place = || format!("input {}", quote_name(name));
            let declared = declared_type(input).with_location(place)?;
            let id = self.scopes.define_value(name, declared).with_location(place)?;
            self.scopes.current_graph().inputs.push(id);
        }
        Ok(())
    }

    fn import_weights(&mut self, proto: &'m GraphProto) -> Result<()> {
        let inputs: HashMap<&str, &ValueInfoProto> =
            proto.input.iter().map(|input| (input.name(), input)).collect();
        let is_given = !self.scopes.is_outermost();
        for tensor in proto.initializer.iter().filter(|it| !(is_given && inputs.contains_key(it.name()))) {
            let place = || format!("initializer {}", quote_name(tensor.name()));
            let weight = tensor::import_weight(tensor, &mut self.external).with_location(place)?;
            self.add_weight(tensor.name(), weight, inputs.get(tensor.name()).copied())
                .with_location(place)?;
        }
        for tensor in &proto.sparse_initializer {
            let name = tensor.values.as_ref().map(|values| values.name()).unwrap_or_default();
            let place = || format!("sparse initializer {}", quote_name(name));
            let weight = sparse_tensor::densify_weight(tensor, &mut self.external, &mut self.budget)
                .with_location(place)?;
            self.add_weight(name, weight, inputs.get(name).copied()).with_location(place)?;
        }
        Ok(())
    }

    /// Adds a constant. If it is an input as well, a run may override it.
    fn add_weight(&mut self, name: &'m str, weight: Weight, input: Option<&'m ValueInfoProto>) -> Result<()> {
        let declared = input.map_or(Ok(ValueType::Unknown), declared_type)?;
        let id = self.scopes.define_value(name, declared)?;
        let graph = self.scopes.current_graph();
        graph.value_mut(id).weight = Some(weight);
        if input.is_some() {
            graph.overridable_initializers.push(id);
        }
        Ok(())
    }

    /// Creates values for all outputs before the nodes, so that a name means the same before and behind its node. Names in
    /// `known` exist already, such as outputs of an inlined function; those that are found are removed from it.
    pub(super) fn declare_outputs(
        &mut self,
        nodes: &'m [NodeProto],
        known: &mut HashMap<&'m str, ValueId>,
    ) -> Result<()> {
        for node in nodes {
            for output in node.output.iter().filter(|output| !output.is_empty()) {
                match known.remove(output.as_str()) {
                    Some(id) => self.scopes.bind_name(output, Some(id)),
                    None => self.scopes.define_value(output, ValueType::Unknown).map(|_| ()),
                }
                .with_location(|| node_label(node))?;
            }
        }
        Ok(())
    }

    /// Records declared types of values of this graph; those of other names are ignored.
    pub(super) fn declare_types(&mut self, infos: &'m [ValueInfoProto]) -> Result<()> {
        for info in infos {
            let declared =
                declared_type(info).with_location(|| format!("the type of {}", quote_name(info.name())))?;
            if let Some(Some(id)) = self.scopes.find_own(info.name())
                && declared != ValueType::Unknown
            {
                self.scopes.current_graph().value_mut(id).declared = declared;
            }
        }
        Ok(())
    }

    /// The imported opset of a domain: that of the enclosing function, or of the model.
    pub(super) fn domain_opset(&self, domain: &str) -> Result<u32> {
        let of_function = self.scopes.enclosing_calls().next().and_then(|call| call.opsets.get(domain));
        of_function.or_else(|| self.opsets.get(domain)).copied().ok_or_else(|| {
            let expected = format!(
                "an opset of {} among those that the model imports",
                quote_name(displayed_domain(domain))
            );
            let known: Vec<String> =
                self.opsets.keys().map(|domain| quote_name(displayed_domain(domain))).collect();
            invalid_model(
                expected,
                if known.is_empty() { "none at all".to_owned() } else { known.join(", ") },
            )
        })
    }
}

fn weight_names(proto: &GraphProto) -> impl Iterator<Item = &str> {
    let sparse = proto.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_deref());
    proto.initializer.iter().chain(sparse).map(|tensor| tensor.name())
}

fn declared_type(info: &ValueInfoProto) -> Result<ValueType> {
    info.r#type.as_ref().map_or(Ok(ValueType::Unknown), value_types::import_value_type)
}

pub(super) fn node_label(node: &NodeProto) -> String {
    let domain = normalize_domain(node.domain());
    let op = match domain {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    };
    match (node.name(), node.output.iter().find(|output| !output.is_empty())) {
        ("", Some(output)) => format!("the {} that makes {}", quote_name(&op), quote_name(output)),
        ("", None) => quote_name(&op),
        (name, _) => format!("{} ({})", quote_name(&op), quote_name(name)),
    }
}
