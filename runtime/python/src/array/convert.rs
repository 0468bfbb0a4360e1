//! The elements of tensors as other dtypes, and in memory of their own.

use oarlock_core::{Attribute, Attributes, Dtype, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::only;
use super::operand::Number;
use crate::call::Fixed;
use crate::error::OrRaise as _;
use crate::promote::{Kind, kind};

/// The elements of a tensor as another dtype.
pub(crate) fn cast(py: Python<'_>, tensor: &Tensor, to: Dtype) -> PyResult<Tensor> {
    if tensor.dtype() == to {
        return Ok(tensor.clone());
    }
    if [tensor.dtype(), to].map(kind).contains(&Some(Kind::Complex)) {
        return cast_complex(py, tensor, to);
    }
    if to == Dtype::String {
        return Err(PyTypeError::new_err(format!(
            "expected a dtype of numbers to convert {} to, found str\nhint: make text of each number, as in \
             `oarlock.asarray([str(number) for number in x.tolist()])`",
            tensor.dtype().numpy_name()
        )));
    }
    let attributes = Attributes::new().with("to", Attribute::Int(to.onnx_number()));
    only(crate::call::named(py, "Cast", &[Some(tensor)], attributes, 1)?)
}

/// The same where one of the dtypes is complex, which the op of ONNX does not know.
fn cast_complex(py: Python<'_>, tensor: &Tensor, to: Dtype) -> PyResult<Tensor> {
    static REAL: Fixed = Fixed::own("Real");
    static IMAG: Fixed = Fixed::own("Imag");
    static COMPLEX: Fixed = Fixed::own("Complex");
    static EQUAL: Fixed = Fixed::both("Equal");
    static NOT: Fixed = Fixed::new("Not");
    let number = |dtype| Number::Bool(false).tensor(tensor.device(), dtype);
    let part = if to == Dtype::C64 { Dtype::F32 } else { Dtype::F64 };
    match (kind(tensor.dtype()), to) {
        (Some(Kind::Complex), Dtype::C64 | Dtype::C128) => {
            let (real, imaginary) = (REAL.call(py, &[tensor])?, IMAG.call(py, &[tensor])?);
            COMPLEX.call(py, &[&cast(py, &real, part)?, &cast(py, &imaginary, part)?])
        }
        (Some(_), Dtype::C64 | Dtype::C128) => COMPLEX.call(py, &[&cast(py, tensor, part)?, &number(part)?]),
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

/// A tensor whose memory nobody else writes to. Tensors never do, so one that lies elsewhere than in the memory of the host,
/// where other libraries have theirs, is as good as a copy of itself.
pub(super) fn copied(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    if tensor.dtype() == Dtype::String || tensor.host_address().or_raise()?.is_none() {
        return Ok(tensor.clone());
    }
    let copy = || Tensor::from_bytes(tensor.device(), tensor.dtype(), tensor.dims(), &tensor.to_bytes()?);
    py.detach(copy).or_raise()
}
