//! A subgraph of a branch or a loop, and what is common to all ops that run one.

use std::ops::Range;

use oarlock_core::infer::TensorFact;
use oarlock_core::{Dtype, Error, Result, Tensor};

use super::PlannedGraph;
use crate::graph::{DeclaredDimension, Node, ValueType};
use crate::host_ops::concatenate_tensors;
use crate::passes::value_fact;
use crate::run::RunScope;
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

/// A subgraph that is ready to run.
pub(super) struct PlannedSubgraph {
    planned_graph: PlannedGraph,
    /// Range of its captures among those of all subgraphs of the node.
    captures: Range<usize>,
}

impl PlannedSubgraph {
    pub(super) fn from_attribute(
        node: &Node,
        attribute: &str,
        environment: &SessionEnvironment,
    ) -> Result<Self> {
        let mut first = 0;
        for subgraph in &node.subgraphs {
            let captures = first..first + subgraph.captures.len();
            if &*subgraph.attribute == attribute {
                let mut graph = subgraph.graph.clone();
                // Declared input types of a body are not checked, and the actual types may change between iterations.
                for input in graph.inputs.clone() {
                    graph.value_mut(input).declared = ValueType::Unknown;
                }
                return Ok(Self { planned_graph: PlannedGraph::new(graph, environment)?, captures });
            }
            first = captures.end;
        }
        Err(Error::invalid_argument(format!("expected the graph `{attribute}`, found none"))
            .with_op(&node.op))
    }

    pub(super) fn run(
        &self,
        run: RunScope<'_>,
        mut inputs: Vec<RuntimeValue>,
        captured: &[RuntimeValue],
    ) -> Result<Vec<RuntimeValue>> {
        let own = self.planned_graph.graph().inputs.len().saturating_sub(self.captures.len());
        if inputs.len() != own {
            let given = inputs.len();
            return Err(Error::invalid_argument(format!(
                "expected a body with {given} inputs, as many as it is given, found one with {own}"
            )));
        }
        inputs.extend_from_slice(captured.get(self.captures.clone()).unwrap_or_default());
        self.planned_graph.run_within(run, &inputs)
    }

    pub(super) fn planned_graph(&self) -> &PlannedGraph {
        &self.planned_graph
    }

    pub(super) fn output_count(&self) -> usize {
        self.planned_graph.graph().outputs.len()
    }

    /// Infers dtype and shape of an output for inputs of these shapes, for a body that runs zero times.
    pub(super) fn infer_empty_output(
        &self,
        run: RunScope<'_>,
        mut inputs: Vec<RuntimeValue>,
        captured: &[RuntimeValue],
        index: usize,
    ) -> (Dtype, Vec<i64>) {
        inputs.extend_from_slice(captured.get(self.captures.clone()).unwrap_or_default());
        let plan = self.planned_graph.plan_for(run.environment, &inputs).ok();
        let fact = plan.and_then(|known| {
            let plan = &known.plan;
            value_fact(plan.graph.value(*plan.graph.outputs.get(index)?))
        });
        match fact {
            Some(TensorFact { dtype, dims: Some(dims), .. }) => {
                (dtype, dims.iter().map(|dim| dim.known_size().unwrap_or(0)).collect())
            }
            _ => self.declared_output(index),
        }
    }

    /// Dtype and shape of an output that was never computed: inferred from the body, or else as declared.
    pub(super) fn declared_output(&self, index: usize) -> (Dtype, Vec<i64>) {
        let graph = self.planned_graph.graph();
        let Some(value) = graph.outputs.get(index).map(|output| graph.value(*output)) else {
            return (Dtype::F32, Vec::new());
        };
        match (&value.fact, &value.declared) {
            (Some(TensorFact { dtype, dims: Some(dims), .. }), _) => {
                (*dtype, dims.iter().map(|dim| dim.known_size().unwrap_or(0)).collect())
            }
            (fact, ValueType::Tensor { dtype, dims }) => {
                let size = |dim: &DeclaredDimension| {
                    if let DeclaredDimension::Known(size) = dim { *size } else { 0 }
                };
                let dtype = fact.as_ref().map(|fact| fact.dtype).or(*dtype).unwrap_or(Dtype::F32);
                (dtype, dims.iter().flatten().map(size).collect())
            }
            (fact, _) => (fact.as_ref().map_or(Dtype::F32, |fact| fact.dtype), Vec::new()),
        }
    }
}

#[cold]
pub(super) fn too_few_inputs(what: &str) -> Error {
    Error::invalid_argument(format!("expected {what} among the outputs of the body, found none"))
}

/// Stacks tensors of one shape along a new axis. Without tensors, `empty` gives the dtype and shape of an element.
pub(super) fn stack_tensors(
    environment: &SessionEnvironment,
    tensors: &[Tensor],
    axis: i64,
    empty: impl FnOnce() -> (Dtype, Vec<i64>),
) -> Result<Tensor> {
    if tensors.is_empty() {
        let (dtype, mut dims) = empty();
        let axis = usize::try_from(axis).unwrap_or(0).min(dims.len());
        dims.insert(axis, 0);
        return Tensor::from_bytes(&environment.host, dtype, &dims, &[]);
    }
    concatenate_tensors(environment, tensors, axis, true)
}
