//! Converts tensors to other dtypes, and copies them.

use oarlock_core::{Attribute, Attributes, Dtype, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::OrRaise as _;
use crate::op_call::StaticOp;
use crate::promote::{DtypeKind, dtype_kind};
use crate::python_number::PythonNumber;
use crate::startup::shared_runtime;
use crate::tensor::single_output;
use crate::trace::is_traced;

pub(crate) fn cast_tensor(py: Python<'_>, tensor: &Tensor, to: Dtype) -> PyResult<Tensor> {
    if tensor.dtype() == to {
        return Ok(tensor.clone());
    }
    if [tensor.dtype(), to].map(dtype_kind).contains(&Some(DtypeKind::Complex)) {
        return cast_complex_tensor(py, tensor, to);
    }
    if to == Dtype::String {
        return Err(PyTypeError::new_err(format!(
            "expected a dtype of numbers to convert {} to, found str\nhint: make text of each number, as in \
             `oarlock.asarray([str(number) for number in x.tolist()])`",
            tensor.dtype().numpy_name()
        )));
    }
    let attributes = Attributes::new().with_attribute("to", Attribute::Int(to.onnx_number()));
    single_output(crate::op_call::call_named_op(py, "Cast", &[Some(tensor)], attributes, 1)?)
}

/// Casts from or to a complex dtype, which ONNX's op does not support.
fn cast_complex_tensor(py: Python<'_>, tensor: &Tensor, to: Dtype) -> PyResult<Tensor> {
    static REAL: StaticOp = StaticOp::oarlock_op("Real");
    static IMAG: StaticOp = StaticOp::oarlock_op("Imag");
    static COMPLEX: StaticOp = StaticOp::oarlock_op("Complex");
    static EQUAL: StaticOp = StaticOp::complex_aware("Equal");
    static NOT: StaticOp = StaticOp::new("Not");
    let number = |dtype| PythonNumber::Bool(false).to_tensor(tensor.device(), dtype);
    let part = if to == Dtype::C64 { Dtype::F32 } else { Dtype::F64 };
    match (dtype_kind(tensor.dtype()), to) {
        (Some(DtypeKind::Complex), Dtype::C64 | Dtype::C128) => {
            let (real, imaginary) = (REAL.call(py, &[tensor])?, IMAG.call(py, &[tensor])?);
            COMPLEX.call(py, &[&cast_tensor(py, &real, part)?, &cast_tensor(py, &imaginary, part)?])
        }
        (Some(_), Dtype::C64 | Dtype::C128) => {
            COMPLEX.call(py, &[&cast_tensor(py, tensor, part)?, &number(part)?])
        }
        (_, Dtype::Bool) => NOT.call(py, &[&EQUAL.call(py, &[tensor, &number(tensor.dtype())?])?]),
        (None, _) => Err(PyTypeError::new_err(format!(
            "expected numbers to make complex ones of, found {}\nhint: convert it with `astype(oarlock.float32)` first",
            tensor.dtype().numpy_name()
        ))),
        (_, other) => Err(PyTypeError::new_err(format!(
            "expected complex numbers or truths to be made of complex numbers, found {}\nhint: take the `real` part first",
            other.numpy_name()
        ))),
    }
}

/// A tensor in memory that nothing else writes to. Tensors are immutable, so only one in host memory, which other libraries
/// may share, has to be copied.
pub(crate) fn copy_tensor(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    // Nothing writes to traced tensors either.
    if tensor.dtype() == Dtype::String || is_traced(tensor) || tensor.host_address().or_raise()?.is_none() {
        return Ok(tensor.clone());
    }
    let runtime = shared_runtime(py)?;
    let copy = || match tensor.host_bytes()? {
        Some(bytes) => Tensor::from_bytes(tensor.device(), tensor.dtype(), tensor.dims(), bytes),
        None => runtime.make_contiguous(tensor, tensor.device().default_stream()?),
    };
    py.detach(copy).or_raise()
}
