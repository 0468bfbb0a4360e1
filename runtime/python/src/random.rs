//! Random numbers of a generator.

use oarlock_core::{Attribute, Attributes, Tensor};
use pyo3::prelude::*;

use crate::convert::{cast_tensor, copy_tensor};
use crate::dtype::DtypeLike;
use crate::error::{OrRaise as _, call_exception, rename_op};
use crate::op_call::call_oarlock_op;
use crate::startup::host_memory_device;
use crate::tensor::{PyTensor, single_output};

/// Numbers of a distribution in a shape, in the memory of the host. Parameters repeat to the shape; they are converted to a dtype.
#[pyfunction]
#[pyo3(signature = (distribution, dtype, state, shape, parameters, parameter_dtype))]
pub(crate) fn _sampled(
    py: Python<'_>,
    distribution: &str,
    dtype: DtypeLike,
    state: [u64; 2],
    shape: Vec<i64>,
    parameters: Vec<Bound<'_, PyTensor>>,
    parameter_dtype: DtypeLike,
) -> PyResult<PyTensor> {
    crate::trace::refuse_random()?;
    let host = host_memory_device(py)?;
    // A number that repeats takes no memory, whatever the shape. The size of the result is checked before it is made.
    let one = Tensor::from_slice(&host, &[], &[0f32]).or_raise()?;
    let like = one.expand(&shape).map_err(|error| call_exception(error.with_op("random")))?;
    let state = Tensor::from_slice(&host, &[2], &state).or_raise()?;
    let parameters = parameters.iter().map(|given| {
        let given = cast_tensor(py, &given.get().tensor().to_device(&host).or_raise()?, parameter_dtype.0)?;
        // The op takes one parameter for all numbers, or one for each.
        match given.element_count() {
            1 => given.reshape(&[1]).or_raise(),
            _ => copy_tensor(py, &given.expand(&shape).or_raise()?),
        }
    });
    let parameters = parameters.collect::<PyResult<Vec<_>>>()?;
    let inputs: Vec<Option<&Tensor>> = [&like, &state].into_iter().chain(&parameters).map(Some).collect();
    let attributes = Attributes::new()
        .with_attribute("distribution", Attribute::String(distribution.to_owned()))
        .with_attribute("dtype", Attribute::Int(dtype.0.onnx_number()));
    let made = call_oarlock_op(py, "RandomSample", &inputs, attributes).and_then(single_output);
    made.map(PyTensor::new).map_err(|error| rename_op(py, "random", error))
}
