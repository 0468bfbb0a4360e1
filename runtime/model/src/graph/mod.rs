//! A model as the engine sees it: values, and the nodes that produce them.
//!
//! A [`Graph`] is closed: a node reads only values of its own graph. ONNX lets the body of a loop or the branch of a condition
//! read values of the enclosing graph; here those are inputs of the body, and the node lists in [`Subgraph::captures`] the
//! outer values that go into them. The uses of a value are therefore all in one place.

mod check;
mod edit;
mod node;
mod print;
mod value;

pub use check::check_graph;
pub use node::{Node, Subgraph};
pub use value::{DeclaredDimension, GraphValue, ValueId, ValueType, Weight};

use std::sync::Arc;

/// Values, and nodes in topological order. Clones share every value that neither side changes.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Name in the model.
    pub name: Arc<str>,
    values: Vec<Arc<GraphValue>>,
    /// Nodes in topological order.
    pub nodes: Vec<Node>,
    /// Inputs of a run. In a subgraph, captured values follow the formal inputs.
    pub inputs: Vec<ValueId>,
    /// Outputs of a run, in order; a value may occur more than once.
    pub outputs: Vec<ValueId>,
    /// Overridable initializers, in the order of the model's inputs. In a subgraph they are among the captured values.
    pub overridable_initializers: Vec<ValueId>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a value; nothing reads or writes it yet.
    pub fn add_value(&mut self, value: GraphValue) -> ValueId {
        let id = ValueId::from_index(self.values.len());
        self.values.push(Arc::new(value));
        id
    }

    /// Bytes in constants, those of subgraphs included.
    pub fn weight_bytes(&self) -> u64 {
        let constants = self.values.iter().filter(|value| value.weight.is_some());
        let own: u64 = constants.filter_map(|value| value.size_in_bytes()).sum();
        let subgraphs = self.nodes.iter().flat_map(|node| &node.subgraphs);
        own + subgraphs.map(|subgraph| subgraph.graph.weight_bytes()).sum::<u64>()
    }

    /// Looks up a value. The id must belong to this graph.
    pub fn value(&self, id: ValueId) -> &GraphValue {
        &self.values[id.index()]
    }

    /// Mutable access to a value; clones it first if another graph shares it.
    pub fn value_mut(&mut self, id: ValueId) -> &mut GraphValue {
        Arc::make_mut(&mut self.values[id.index()])
    }

    /// The shared value, to keep it or put it into another graph without a copy.
    pub fn shared_value(&self, id: ValueId) -> &Arc<GraphValue> {
        &self.values[id.index()]
    }

    /// Replaces a value by one that another graph may share.
    pub fn set_shared_value(&mut self, id: ValueId, value: &Arc<GraphValue>) {
        self.values[id.index()].clone_from(value);
    }

    /// Every value ever added, with its id. Passes leave unused values behind, so some have no reader.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (ValueId, &GraphValue)> {
        self.values.iter().enumerate().map(|(index, value)| (ValueId::from_index(index), &**value))
    }

    /// Number of values ever added; ids are below it.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }
}
