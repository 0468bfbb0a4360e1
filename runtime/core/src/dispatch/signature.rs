//! What calls of one op must have in common to be run in the same way.

use smallvec::SmallVec;

use crate::{Constant, Device, Dims, Dtype, Tensor};

/// Inputs whose values shapes depend on, as they were read for one call; empty where the op has none.
pub(crate) type Values = SmallVec<[Option<Constant>; 4]>;

/// Device, dtypes, shapes and strides, and the values that shapes depend on.
pub(crate) struct Signature {
    device: Device,
    inputs: SmallVec<[Option<Operand>; 3]>,
    values: Values,
    outputs: usize,
}

struct Operand {
    dtype: Dtype,
    dims: Dims,
    strides: Option<Dims>,
}

impl Signature {
    pub(crate) fn new(device: &Device, inputs: &[Option<&Tensor>], values: &Values, outputs: usize) -> Self {
        let operand = |tensor: &Tensor| Operand {
            dtype: tensor.dtype,
            dims: tensor.dims.clone(),
            strides: tensor.strides.clone(),
        };
        Self {
            device: device.clone(),
            inputs: inputs.iter().map(|input| input.map(operand)).collect(),
            values: values.clone(),
            outputs,
        }
    }

    #[inline]
    pub(crate) fn matches(
        &self,
        device: &Device,
        inputs: &[Option<&Tensor>],
        values: &Values,
        outputs: usize,
    ) -> bool {
        self.device.is(device)
            && self.outputs == outputs
            && self.inputs.len() == inputs.len()
            && self.inputs.iter().zip(inputs).all(|(known, input)| match (known, input) {
                (Some(known), Some(input)) => known.matches(input),
                (None, None) => true,
                _ => false,
            })
            && (values.is_empty() || self.values == *values)
    }
}

impl Operand {
    #[inline]
    fn matches(&self, tensor: &Tensor) -> bool {
        self.dtype == tensor.dtype
            && same(&self.dims, &tensor.dims)
            && match (&self.strides, &tensor.strides) {
                (None, None) => true,
                (Some(known), Some(found)) => same(known, found),
                _ => false,
            }
    }
}

/// Whether two short lists are equal. Comparing a few numbers one by one is faster than the call that compares memory.
#[inline]
fn same(left: &[i64], right: &[i64]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left == right)
}
