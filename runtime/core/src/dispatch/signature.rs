//! Signatures: the properties that two calls of an op must have in common to share a resolved call.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::tensor::TensorLayout;
use crate::{Constant, Device, Tensor};

/// Values of inputs that shapes depend on, as read for one call; empty if the op has none.
pub(crate) type InputValues = Vec<Option<Constant>>;

/// Device, layouts of the inputs, values that shapes depend on, and the number of outputs.
pub(crate) struct CallSignature {
    pub(crate) device: Device,
    inputs: SmallVec<[Option<Arc<TensorLayout>>; 3]>,
    values: InputValues,
    outputs: usize,
}

impl CallSignature {
    pub(crate) fn new(
        device: &Device,
        inputs: &[Option<&Tensor>],
        values: &InputValues,
        outputs: usize,
    ) -> Self {
        Self {
            device: device.clone(),
            inputs: inputs.iter().map(|input| input.map(|tensor| tensor.layout().clone())).collect(),
            values: values.clone(),
            outputs,
        }
    }

    /// If `device` is `None`, the layouts of the inputs determine it, since they include their device.
    #[inline]
    pub(crate) fn matches_call(
        &self,
        device: Option<&Device>,
        inputs: &[Option<&Tensor>],
        values: &InputValues,
        outputs: usize,
    ) -> bool {
        device.is_none_or(|device| self.device.is_same_device(device))
            && self.outputs == outputs
            && self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(known, input)| match (known, input) {
                (Some(known), Some(input)) => known.is_same_layout(input.layout()),
                (None, None) => true,
                _ => false,
            })
            && (values.is_empty() || self.values == *values)
    }
}
