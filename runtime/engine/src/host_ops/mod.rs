//! Ops that the engine runs itself, on the host: sequences, optional values and new text.

mod sequence;
mod text;

use oarlock_core::{Constant, Device, Dtype, Error, Result, Tensor};

use self::sequence::SequenceOp;
pub(crate) use self::sequence::{concatenate_tensors, select_index, sequence_element};
use self::text::TextOp;
pub use self::text::{creates_text, run_text_op};
use crate::graph::Node;
use crate::runtime_value::RuntimeValue;
use crate::session_environment::SessionEnvironment;

/// An op that the engine runs on the host.
pub(crate) enum HostOp {
    Sequence(SequenceOp),
    Text(TextOp),
}

impl HostOp {
    /// Returns `None` for a node that kernels run, or that has subgraphs.
    pub(crate) fn from_node(node: &Node) -> Result<Option<Self>> {
        let sequence = if node.domain.is_empty() { SequenceOp::from_node(node)? } else { None };
        match sequence {
            Some(op) => Ok(Some(Self::Sequence(op))),
            None => Ok(TextOp::from_node(node)?.map(Self::Text)),
        }
    }

    pub(crate) fn run(
        &self,
        environment: &SessionEnvironment,
        inputs: &[Option<RuntimeValue>],
    ) -> Result<RuntimeValue> {
        match self {
            Self::Sequence(op) => op.run(environment, inputs),
            Self::Text(op) => op.run(&environment.host, inputs),
        }
    }
}

/// Returns an input, or an error if it is omitted.
pub(crate) fn required_input(inputs: &[Option<RuntimeValue>], index: usize) -> Result<&RuntimeValue> {
    let missing =
        || Error::invalid_argument("expected a value, found none").with_operand(format!("input {index}"));
    inputs.get(index).and_then(Option::as_ref).ok_or_else(missing)
}

/// A scalar on the host.
pub(crate) fn host_scalar(device: &Device, dtype: Dtype, bytes: Vec<u8>) -> Result<RuntimeValue> {
    Tensor::from_constant(device, &Constant::new(dtype, &[], bytes)?).map(RuntimeValue::Tensor)
}
