//! What calls of one op must have in common to be run in the same way.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::tensor::TensorLayout;
use crate::{Constant, Device, Tensor};

/// Inputs whose values shapes depend on, as they were read for one call; empty where the op has none.
pub(crate) type InputValues = Vec<Option<Constant>>;

/// Device, dtypes, shapes and strides, and the values that shapes depend on.
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
            inputs: inputs.iter().map(|input| input.map(|tensor| tensor.form().clone())).collect(),
            values: values.clone(),
            outputs,
        }
    }

    /// Whether a call is alike; one without a device runs on that of its inputs.
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
                (Some(known), Some(input)) => known.is_same_layout(input.form()),
                (None, None) => true,
                _ => false,
            })
            && (values.is_empty() || self.values == *values)
    }
}
