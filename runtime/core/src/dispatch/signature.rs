//! Signatures: the properties that two calls of an op must have in common to share a resolved call.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::tensor::TensorLayout;
use crate::{Constant, Device, Tensor};

/// Values of inputs that shapes depend on, as read for one call; empty if the op has none.
pub(crate) type InputValues = Vec<Option<Constant>>;

/// Device, layouts of the inputs, values that shapes depend on, the number of outputs, and constants.
pub(crate) struct CallSignature {
    pub(crate) device: Device,
    inputs: SmallVec<[Option<Arc<TensorLayout>>; 3]>,
    values: InputValues,
    outputs: usize,
    /// The inputs that the kernel was prepared for as constants. While they are kept here, no other tensor gets their memory.
    constants: SmallVec<[Option<Tensor>; 0]>,
}

impl CallSignature {
    pub(crate) fn new(
        device: &Device,
        inputs: &[Option<&Tensor>],
        values: &InputValues,
        outputs: usize,
        constant_inputs: u64,
    ) -> Self {
        let constant =
            |index: usize| is_bit_set(constant_inputs, index).then(|| inputs[index].cloned()).flatten();
        let constants = if constant_inputs == 0 { 0 } else { inputs.len() };
        Self {
            device: device.clone(),
            inputs: inputs.iter().map(|input| input.map(|tensor| tensor.layout().clone())).collect(),
            values: values.clone(),
            outputs,
            constants: (0..constants).map(constant).collect(),
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
        constant_inputs: u64,
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
            && (constant_inputs == 0 && self.constants.is_empty()
                || self.has_constants(inputs, constant_inputs))
    }

    /// True if the same inputs are constant, and are the same tensors.
    fn has_constants(&self, inputs: &[Option<&Tensor>], constant_inputs: u64) -> bool {
        self.constants.len() == inputs.len()
            && self.constants.iter().zip(inputs).enumerate().all(|(index, (known, input))| {
                match (known, input.filter(|_| is_bit_set(constant_inputs, index))) {
                    (Some(known), Some(input)) => known.memory_location() == input.memory_location(),
                    (known, input) => known.is_none() && input.is_none(),
                }
            })
    }
}

/// True if a set of inputs has this one. Those beyond 64 are in no set.
pub(crate) fn is_bit_set(bits: u64, index: usize) -> bool {
    index < 64 && bits >> index & 1 == 1
}
