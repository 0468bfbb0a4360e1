//! Chooses the opsets of a file.
//!
//! A file imports one opset for each domain, while nodes of a graph may be of several: passes add nodes of whichever opset has
//! what they need. The file imports the opset in which most of its nodes mean the same. Other nodes are wrapped in functions,
//! which import opsets of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use oarlock_core::{Error, Result, schema};
use prost::Message as _;

use crate::graph::{Graph, Node};
use crate::import::onnx::messages::{FunctionProto, NodeProto, OperatorSetIdProto};

/// The domain of the wrapper functions.
const FUNCTION_DOMAIN: &str = "oarlock.opsets";

/// The chosen opsets, and the functions that wrap nodes of others.
pub(super) struct ExportOpsets {
    chosen: BTreeMap<Arc<str>, u32>,
    functions: Vec<FunctionProto>,
    /// Names of functions by their encoded content, so that equal ones are written once.
    names: HashMap<Vec<u8>, String>,
}

impl ExportOpsets {
    /// Chooses opsets for a graph: those of the imported model, unless another suits more nodes.
    pub(super) fn choose_opsets(graph: &Graph, model: &BTreeMap<String, u32>) -> Result<Self> {
        let own = |domain: &str| {
            model.iter().find(|(own, _)| schema::normalize_domain(own) == domain).map(|(_, opset)| *opset)
        };
        let mut meant = BTreeMap::new();
        count_opset_usage(graph, &mut meant)?;
        let mut chosen = BTreeMap::new();
        for (domain, nodes) in &meant {
            let kept = |opset: u32| -> usize {
                let same =
                    nodes.iter().filter(|((op, other), _)| is_same_op_version(domain, op, *other, opset));
                same.map(|(_, count)| count).sum()
            };
            let own = own(domain);
            let opsets = nodes.keys().map(|(_, opset)| *opset).chain(own);
            let best = opsets.max_by_key(|opset| (kept(*opset), own == Some(*opset), *opset));
            chosen.extend(best.map(|opset| (domain.clone(), opset)));
        }
        // Outputs may need an `Identity` node, and even a model without nodes must import ONNX's opset.
        let newest = schema::latest_opset(schema::ONNX_DOMAIN).unwrap_or(1);
        chosen.entry("".into()).or_insert(own("").unwrap_or(newest));
        Ok(Self { chosen, functions: Vec::new(), names: HashMap::new() })
    }

    /// True if a node means the same in the chosen opset.
    pub(super) fn suits_node(&self, node: &Node) -> bool {
        let chosen = self.chosen.get(schema::normalize_domain(&node.domain));
        chosen.is_some_and(|chosen| is_same_op_version(&node.domain, &node.op, node.opset, *chosen))
    }

    /// Wraps a node of another opset in a function of its own and returns the call.
    pub(super) fn wrap_in_function(&mut self, node: &Node, proto: NodeProto) -> Result<NodeProto> {
        if !node.subgraphs.is_empty() {
            let found = format!("{} of opset {}", node.label(), node.opset);
            let expected = "branches and bodies of the opset that the model as a whole has";
            return Err(Error::unimplemented(format!("expected {expected}, found {found}")));
        }
        let formal = |letter: char, names: &[String]| -> Vec<String> {
            let name = |(at, name): (usize, &String)| {
                if name.is_empty() { String::new() } else { format!("{letter}{at}") }
            };
            names.iter().enumerate().map(name).collect()
        };
        let (inputs, outputs) = (formal('x', &proto.input), formal('y', &proto.output));
        let given = |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect();
        let mut function = FunctionProto {
            domain: Some(FUNCTION_DOMAIN.to_owned()),
            input: given(&inputs),
            output: given(&outputs),
            opset_import: vec![opset_import(&node.domain, node.opset)],
            node: vec![NodeProto {
                op_type: proto.op_type,
                domain: proto.domain,
                attribute: proto.attribute,
                input: inputs,
                output: outputs,
                ..NodeProto::default()
            }],
            ..FunctionProto::default()
        };
        let next = format!("{}_{}_{}", node.op, node.opset, self.functions.len());
        let name = self.names.entry(function.encode_to_vec()).or_insert_with_key(|_| {
            function.name = Some(next.clone());
            self.functions.push(std::mem::take(&mut function));
            next
        });
        Ok(NodeProto {
            name: proto.name,
            domain: Some(FUNCTION_DOMAIN.to_owned()),
            op_type: Some(name.clone()),
            input: given(&proto.input),
            output: given(&proto.output),
            ..NodeProto::default()
        })
    }

    /// Opset imports and functions of the file.
    pub(super) fn finish(self) -> (Vec<OperatorSetIdProto>, Vec<FunctionProto>) {
        let mut imports: Vec<OperatorSetIdProto> =
            self.chosen.iter().map(|(domain, opset)| opset_import(domain, *opset)).collect();
        if !self.functions.is_empty() {
            imports.push(opset_import(FUNCTION_DOMAIN, 1));
        }
        (imports, self.functions)
    }
}

fn opset_import(domain: &str, opset: u32) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.to_owned()), version: Some(opset.into()) }
}

/// Number of nodes for each op and opset, by domain.
type OpsetUsage = BTreeMap<Arc<str>, BTreeMap<(Arc<str>, u32), usize>>;

fn count_opset_usage(graph: &Graph, meant: &mut OpsetUsage) -> Result<()> {
    for node in &graph.nodes {
        let newest = schema::latest_opset(&node.domain).unwrap_or(u32::MAX);
        if !(1..=newest).contains(&node.opset) {
            let (label, found) = (node.label(), node.opset);
            let message = format!("{label}: expected an opset from 1 to {newest}, found {found}");
            return Err(Error::invalid_argument(message));
        }
        let of_domain = meant.entry(schema::normalize_domain(&node.domain).into()).or_default();
        *of_domain.entry((node.op.clone(), node.opset)).or_default() += 1;
        node.subgraphs.iter().try_for_each(|subgraph| count_opset_usage(&subgraph.graph, meant))?;
    }
    Ok(())
}

/// True if an op has the same schema version in both opsets.
fn is_same_op_version(domain: &str, op: &str, one: u32, other: u32) -> bool {
    // Versions of these differ only in the types that they may carry.
    let carries = domain.is_empty() && (op == "If" || op == "Loop");
    let since = |opset| schema::find_schema(domain, op, opset).ok().map(|schema| schema.since_version);
    one == other || carries || since(one).is_some_and(|since_one| since(other) == Some(since_one))
}
