//! A model as the engine sees it: values, and the nodes that make them.
//!
//! A [`Graph`] is closed: a node reads what its own graph holds and nothing else. Where ONNX lets the body of a loop or
//! the branch of a condition read values of the graph around it, here they are inputs of the body, and the node lists in
//! [`Subgraph::captures`] what goes into them. So whoever looks for the uses of a value has one place to look.

mod check;
mod edit;
mod node;
mod print;
mod value;

pub use check::check_graph;
pub(crate) use node::ONNXRUNTIME_DOMAIN;
pub use node::{Node, Subgraph};
pub use value::{DeclaredDimension, GraphValue, ValueId, ValueType, Weight};

use std::sync::Arc;

/// Values, and nodes in an order in which each finds its inputs made. Clones share the values that neither changes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// What the model calls it.
    pub name: Arc<str>,
    values: Vec<Arc<GraphValue>>,
    /// The nodes, each behind those whose outputs it reads.
    pub nodes: Vec<Node>,
    /// The values that a run is given. In a subgraph those that it captures follow the formal ones.
    pub inputs: Vec<ValueId>,
    /// The values that a run is to give.
    pub outputs: Vec<ValueId>,
    /// Constants of the model that a run may be given others for, in their order. In a subgraph those are among them that it
    /// captures.
    pub defaults: Vec<ValueId>,
}

impl Graph {
    /// A graph without anything in it.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a value.
    pub fn add_value(&mut self, value: GraphValue) -> ValueId {
        let id = ValueId::from_index(self.values.len());
        self.values.push(Arc::new(value));
        id
    }

    /// How many bytes its constants have, those of its subgraphs too.
    pub fn weight_bytes(&self) -> u64 {
        let constants = self.values.iter().filter(|value| value.weight.is_some());
        let own: u64 = constants.filter_map(|value| value.size_in_bytes()).sum();
        let subgraphs = self.nodes.iter().flat_map(|node| &node.subgraphs);
        own + subgraphs.map(|subgraph| subgraph.graph.weight_bytes()).sum::<u64>()
    }

    /// A value. An id of another graph means nothing here.
    pub fn value(&self, id: ValueId) -> &GraphValue {
        &self.values[id.index()]
    }

    /// A value, to be changed.
    pub fn value_mut(&mut self, id: ValueId) -> &mut GraphValue {
        Arc::make_mut(&mut self.values[id.index()])
    }

    /// A value, to be kept or put into another graph.
    pub(crate) fn shared_value(&self, id: ValueId) -> &Arc<GraphValue> {
        &self.values[id.index()]
    }

    /// Puts another value into the place of one.
    pub(crate) fn set_shared_value(&mut self, id: ValueId, value: &Arc<GraphValue>) {
        self.values[id.index()].clone_from(value);
    }

    /// Every value that was ever added, with its id. Not all of them are used.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (ValueId, &GraphValue)> {
        self.values.iter().enumerate().map(|(index, value)| (ValueId::from_index(index), &**value))
    }

    /// How many values were ever added.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }
}
