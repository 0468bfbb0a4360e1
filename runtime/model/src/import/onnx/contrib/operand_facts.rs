//! Facts that an import has about operands before shape inference.

use oarlock_core::schema::find_schema;
use oarlock_core::{Constant, Dtype, Error, Result};

use super::lowering::ContribLowering;
use crate::graph::{Node, ValueId, ValueType};

/// Limit on producers to follow when looking for a dtype or rank.
const MAX_PRODUCER_STEPS: usize = 16;

impl ContribLowering<'_> {
    /// True if a value is known to have one element; `None` if unknown.
    pub(super) fn has_one_element(&self, value: ValueId) -> Option<bool> {
        match self.known_constant(value) {
            Some(known) => Some(known.dims().iter().all(|dim| *dim == 1)),
            None => (self.rank(value) == Some(0)).then_some(true),
        }
    }

    pub(super) fn known_constant(&self, id: ValueId) -> Option<&Constant> {
        self.graph.value(id).weight.as_ref()?.as_numbers()
    }

    /// An input that must be a constant.
    pub(super) fn known_input(&self, index: usize, name: &str) -> Result<Constant> {
        self.known_constant(self.input(index)?).cloned().ok_or_else(|| {
            Error::unimplemented(format!("expected a constant for `{name}`, found that it is computed"))
        })
    }

    /// The dtype of a value, as declared or implied by its producers.
    pub(super) fn dtype(&self, mut id: ValueId) -> Option<Dtype> {
        for _ in 0..MAX_PRODUCER_STEPS {
            if let Some(dtype) = self.stated_dtype(id) {
                return Some(dtype);
            }
            let maker = self.producer(id)?;
            if maker.is_op("Cast") {
                return Dtype::from_onnx(maker.attributes.get_int("to").ok()??);
            }
            let alike = inputs_with_output_dtype(maker);
            if let Some(dtype) = alike.iter().find_map(|input| self.stated_dtype(*input)) {
                return Some(dtype);
            }
            id = *alike.first()?;
        }
        None
    }

    fn stated_dtype(&self, id: ValueId) -> Option<Dtype> {
        let value = self.graph.value(id);
        match (&value.weight, &value.declared) {
            (Some(weight), _) => Some(weight.dtype()),
            (None, ValueType::Tensor { dtype, .. }) => *dtype,
            _ => None,
        }
    }

    fn producer(&self, id: ValueId) -> Option<&Node> {
        self.graph.nodes.iter().rev().find(|node| node.written_values().any(|result| result == id))
    }

    /// The rank of a value, as declared or implied by its producers.
    pub(super) fn rank(&self, mut id: ValueId) -> Option<usize> {
        for _ in 0..MAX_PRODUCER_STEPS {
            let value = self.graph.value(id);
            match (&value.weight, &value.declared) {
                (Some(weight), _) => return Some(weight.dims().len()),
                (None, ValueType::Tensor { dims: Some(dims), .. }) => return Some(dims.len()),
                _ => {}
            }
            let maker = self.producer(id)?;
            let same = ["Cast", "CastLike", "Identity", "Transpose", "Clip", "Neg", "Not", "Relu"];
            id = maker.input(0).filter(|_| same.iter().any(|op| maker.is_op(op)))?;
        }
        None
    }
}

/// The inputs of a node that have the dtype of its first output, as its schema has it.
fn inputs_with_output_dtype(node: &Node) -> Vec<ValueId> {
    let Ok(schema) = find_schema(&node.domain, &node.op, node.opset) else { return Vec::new() };
    let Some(output) = schema.outputs.first() else { return Vec::new() };
    let formal = |index: usize| schema.inputs.get(index).or(schema.inputs.last());
    let is_alike = |index: usize| {
        formal(index).is_some_and(|input| input.type_index == output.type_index && !input.arity.is_mixed())
    };
    let inputs = node.inputs.iter().enumerate();
    inputs.filter(|(index, _)| is_alike(*index)).filter_map(|(_, input)| *input).collect()
}
