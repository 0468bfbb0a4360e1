//! Initializers that a run may override.
//!
//! A model may declare an initializer that is also an optional input. Few callers ever override one, so a session treats them
//! as constants and folds, packs and fuses them like any other. The first run that overrides one prepares a second graph, in
//! which every initializer that was ever overridden is an input; the first graph stays as it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Result;

use crate::environment::SessionEnvironment;
use crate::graph::{Graph, GraphValue, ValueId, Weight};
use crate::passes::weight_to_tensor;
use crate::run::PlannedGraph;
use crate::runtime_value::RuntimeValue;

pub(crate) struct OverridableInitializers {
    /// The model as imported, before any pass.
    graph: Graph,
    opened: Mutex<Option<Arc<OverriddenGraph>>>,
}

/// A graph in which some overridable initializers are inputs, behind the required ones.
pub(crate) struct OverriddenGraph {
    pub(crate) environment: SessionEnvironment,
    pub(crate) program: PlannedGraph,
    /// Positions of the initializers that are inputs here.
    places: Vec<usize>,
    /// Their values in the model, for runs that do not override them.
    usual: Vec<RuntimeValue>,
}

impl OverridableInitializers {
    /// `None` if the model has no overridable initializers.
    pub(crate) fn from_graph(graph: &Graph) -> Option<Self> {
        (!graph.defaults.is_empty()).then(|| Self { graph: graph.clone(), opened: Mutex::default() })
    }

    /// Returns a graph in which at least the initializers at `places` are inputs.
    pub(crate) fn override_at(
        &self,
        places: &[usize],
        environment: impl FnOnce() -> Result<SessionEnvironment>,
    ) -> Result<Arc<OverriddenGraph>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<usize> = places.to_vec();
        if let Some(opened) = &*opened {
            if places.iter().all(|place| opened.places.contains(place)) {
                return Ok(opened.clone());
            }
            all.extend(&opened.places);
        }
        all.sort_unstable();
        all.dedup();
        let made = Arc::new(OverriddenGraph::new(self.graph.clone(), all, environment()?)?);
        *opened = Some(made.clone());
        Ok(made)
    }
}

impl OverriddenGraph {
    fn new(mut graph: Graph, places: Vec<usize>, mut environment: SessionEnvironment) -> Result<Self> {
        let ids: Vec<ValueId> =
            places.iter().filter_map(|place| graph.defaults.get(*place).copied()).collect();
        let usual = |value: &GraphValue| {
            let weight = value.weight.as_ref()?;
            // Text exists only on the host.
            let is_text = matches!(weight, Weight::Texts { .. });
            let device = if is_text { &environment.host } else { environment.main_device() };
            Some(weight_to_tensor(weight, device).map(RuntimeValue::Tensor))
        };
        let usual = ids.iter().filter_map(|id| usual(graph.value(*id))).collect::<Result<_>>()?;
        convert_to_inputs(&mut graph, &ids);
        let program = PlannedGraph::new(graph, &environment)?;
        environment.keep_constants(program.graph());
        Ok(Self { environment, program, places, usual })
    }

    /// Builds the input list: the required inputs, then for each overridable initializer the given value or its default.
    pub(crate) fn merge_inputs(&self, always: &[RuntimeValue], given: &[RuntimeValue]) -> Vec<RuntimeValue> {
        let given = self.places.iter().zip(&self.usual).map(|(place, usual)| match given.get(*place) {
            None | Some(RuntimeValue::Nothing) => usual,
            Some(given) => given,
        });
        always.iter().chain(given).cloned().collect()
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
        let own = inner.defaults.iter().filter_map(|id| Some((*id, *names.get(&inner.value(*id).name)?)));
        let (own, outer): (Vec<ValueId>, Vec<ValueId>) = own.unzip();
        convert_to_inputs(&mut subgraph.graph, &own);
        subgraph.captures.extend(outer);
    }
}
