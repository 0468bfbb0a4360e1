//! Constants that a run may be given others for.
//!
//! A model may say of a constant that it is what an input is unless a run is given another value. Hardly anybody gives one, so
//! a session takes them for what they are: they are folded, packed and joined as all constants. The first run that is given
//! another value makes a second program, in which those that were ever given are inputs; the first one stays as it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Result;

use crate::datum::Datum;
use crate::environment::Environment;
use crate::graph::{Graph, Value, ValueId, Weight};
use crate::passes::tensor_of;
use crate::program::Program;

/// The constants of a model that a run may be given others for.
pub(crate) struct Defaults {
    /// The model as it was read.
    graph: Graph,
    opened: Mutex<Option<Arc<Opened>>>,
}

/// A program in which some of them are inputs, behind those that always are.
pub(crate) struct Opened {
    pub(crate) environment: Environment,
    pub(crate) program: Program,
    /// Which of them are.
    places: Vec<usize>,
    /// What they are unless a run is given another value.
    usual: Vec<Datum>,
}

impl Defaults {
    /// Those of a model, if it has some.
    pub(crate) fn of(graph: &Graph) -> Option<Self> {
        (!graph.defaults.is_empty()).then(|| Self { graph: graph.clone(), opened: Mutex::default() })
    }

    /// A program in which those at some places are inputs.
    pub(crate) fn opened(
        &self,
        places: &[usize],
        environment: impl FnOnce() -> Result<Environment>,
    ) -> Result<Arc<Opened>> {
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
        let made = Arc::new(Opened::new(self.graph.clone(), all, environment()?)?);
        *opened = Some(made.clone());
        Ok(made)
    }
}

impl Opened {
    fn new(mut graph: Graph, places: Vec<usize>, mut environment: Environment) -> Result<Self> {
        let ids: Vec<ValueId> =
            places.iter().filter_map(|place| graph.defaults.get(*place).copied()).collect();
        let usual = |value: &Value| {
            let weight = value.weight.as_ref()?;
            // Texts are nowhere but on the host.
            let is_text = matches!(weight, Weight::Texts { .. });
            let device = if is_text { &environment.host } else { environment.main_device() };
            Some(tensor_of(weight, device).map(Datum::Tensor))
        };
        let usual = ids.iter().filter_map(|id| usual(graph.value(*id))).collect::<Result<_>>()?;
        open(&mut graph, &ids);
        let program = Program::new(graph, &environment)?;
        environment.keep(program.graph());
        Ok(Self { environment, program, places, usual })
    }

    /// The inputs of the program, of those that always are and of a value for each constant, or none.
    pub(crate) fn inputs(&self, always: &[Datum], given: &[Datum]) -> Vec<Datum> {
        let given = self.places.iter().zip(&self.usual).map(|(place, usual)| match given.get(*place) {
            None | Some(Datum::Nothing) => usual,
            Some(given) => given,
        });
        always.iter().chain(given).cloned().collect()
    }
}

/// Makes inputs of constants, and of what graphs within the graph have of them.
fn open(graph: &mut Graph, ids: &[ValueId]) {
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
        open(&mut subgraph.graph, &own);
        subgraph.captures.extend(outer);
    }
}
