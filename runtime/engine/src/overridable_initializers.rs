//! Initializers that a run may override.
//!
//! A model may declare an initializer that is also an optional input. Few callers ever override one, so a session treats them
//! as constants and folds, packs and fuses them like any other. The first run that overrides one prepares a second graph, in
//! which every initializer that was ever overridden is an input; the first graph stays as it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Result;

use crate::graph::{Graph, GraphValue, ValueId, Weight};
use crate::passes::weight_to_tensor;
use crate::run::PlannedGraph;
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

pub(crate) struct OverridableInitializers {
    /// The model as imported, before any pass.
    graph: Graph,
    overridden_graph: Mutex<Option<Arc<OverriddenGraph>>>,
}

/// A graph in which some overridable initializers are inputs, behind the required ones.
pub(crate) struct OverriddenGraph {
    pub(crate) environment: SessionEnvironment,
    pub(crate) planned_graph: PlannedGraph,
    /// Positions of the initializers that are inputs here.
    initializer_indices: Vec<usize>,
    /// Their values in the model, for runs that do not override them.
    default_values: Vec<RuntimeValue>,
}

impl OverridableInitializers {
    /// `None` if the model has no overridable initializers.
    pub(crate) fn from_graph(graph: &Graph) -> Option<Self> {
        (!graph.overridable_initializers.is_empty())
            .then(|| Self { graph: graph.clone(), overridden_graph: Mutex::default() })
    }

    /// Returns a graph in which at least the initializers at `initializer_indices` are inputs.
    pub(crate) fn graph_with_overrides(
        &self,
        initializer_indices: &[usize],
        environment: impl FnOnce() -> SessionEnvironment,
    ) -> Result<Arc<OverriddenGraph>> {
        let mut overridden_graph = self.overridden_graph.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<usize> = initializer_indices.to_vec();
        if let Some(overridden_graph) = &*overridden_graph {
            if initializer_indices.iter().all(|index| overridden_graph.initializer_indices.contains(index)) {
                return Ok(overridden_graph.clone());
            }
            all.extend(&overridden_graph.initializer_indices);
        }
        all.sort_unstable();
        all.dedup();
        let result = Arc::new(OverriddenGraph::new(self.graph.clone(), all, environment())?);
        *overridden_graph = Some(result.clone());
        Ok(result)
    }
}

impl OverriddenGraph {
    fn new(
        mut graph: Graph,
        initializer_indices: Vec<usize>,
        mut environment: SessionEnvironment,
    ) -> Result<Self> {
        let ids: Vec<ValueId> = initializer_indices
            .iter()
            .filter_map(|index| graph.overridable_initializers.get(*index).copied())
            .collect();
        let default_value = |value: &GraphValue| {
            let weight = value.weight.as_ref()?;
            // Text exists only on the host.
            let is_text = matches!(weight, Weight::Texts { .. });
            let device = if is_text { &environment.host } else { environment.main_device() };
            Some(weight_to_tensor(weight, device).map(RuntimeValue::Tensor))
        };
        let default_values =
            ids.iter().filter_map(|id| default_value(graph.value(*id))).collect::<Result<_>>()?;
        convert_to_inputs(&mut graph, &ids);
        let planned_graph = PlannedGraph::new(graph, &environment)?;
        environment.keep_constants(planned_graph.graph());
        Ok(Self { environment, planned_graph, initializer_indices, default_values })
    }

    /// Builds the input list: the required inputs, then for each overridable initializer the given value or its default.
    pub(crate) fn merge_inputs(
        &self,
        required: &[RuntimeValue],
        given: &[RuntimeValue],
    ) -> Vec<RuntimeValue> {
        let given = self.initializer_indices.iter().zip(&self.default_values).map(
            |(index, default_value)| match given.get(*index) {
                None | Some(RuntimeValue::Nothing) => default_value,
                Some(given) => given,
            },
        );
        required.iter().chain(given).cloned().collect()
    }
}

/// Turns constants into inputs, in subgraphs that capture them too.
fn convert_to_inputs(graph: &mut Graph, ids: &[ValueId]) {
    let mut names: HashMap<Arc<str>, ValueId> = HashMap::new();
    for id in ids {
        let value = graph.value_mut(*id);
        value.weight = None;
        names.insert(value.name.clone(), *id);
        graph.inputs.push(*id);
    }
    for subgraph in graph.nodes.iter_mut().flat_map(|node| &mut node.subgraphs) {
        let inner = &subgraph.graph;
        let own = inner
            .overridable_initializers
            .iter()
            .filter_map(|id| Some((*id, *names.get(&inner.value(*id).name)?)));
        let (own, outer): (Vec<ValueId>, Vec<ValueId>) = own.unzip();
        convert_to_inputs(&mut subgraph.graph, &own);
        subgraph.captures.extend(outer);
    }
}
