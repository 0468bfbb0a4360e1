//! Shared parts of the operators of arrays.

use std::cmp::Ordering;

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::PyTensor;
use super::operand::{self, ArrayOperand};
use crate::elementwise as ops;
use crate::python_number::{PythonNumber, number_beyond};

impl PyTensor {
    /// Stores the result of an in-place operator; dtype and shape must not change.
    pub(super) fn store_result(&self, py: Python<'_>, operator: &str, made: Self) -> PyResult<()> {
        let (own, made) = (self.tensor(), made.tensor());
        if own.dtype() == made.dtype() && own.dims() == made.dims() {
            // The memory that is written to has one owner, and is not copied.
            drop(own);
            self.check_assignment(Some(&made))?;
            return self.replace_tensor(py, made);
        }
        Err(operand::in_place_error(operator, &own, &made))
    }

    /// Compares elementwise.
    pub(super) fn compare_elements(
        &self,
        py: Python<'_>,
        other: &ArrayOperand,
        by: CompareOp,
    ) -> PyResult<Self> {
        if let ArrayOperand::Number(PythonNumber::Integer(number)) = other
            && let Some(side) = number_beyond(*number, self.tensor().dtype())
        {
            let truth = match by {
                CompareOp::Eq => false,
                CompareOp::Ne => true,
                CompareOp::Lt | CompareOp::Le => side == Ordering::Greater,
                CompareOp::Gt | CompareOp::Ge => side == Ordering::Less,
            };
            return ops::bool_like(py, &self.tensor(), truth).map(Self::new);
        }
        match by {
            CompareOp::Eq => ops::equal(py, self, other),
            CompareOp::Ne => ops::not_equal(py, self, other),
            CompareOp::Lt => ops::less(py, self, other),
            CompareOp::Le => ops::less_equal(py, self, other),
            CompareOp::Gt => ops::greater(py, self, other),
            CompareOp::Ge => ops::greater_equal(py, self, other),
        }
    }
}

/// The operand of a comparison; `None` for objects with a comparison of their own, such as one that equals anything, and for
/// `None` under `==` and `!=`. Bytes are an error as for other operators: `False` would look like an answer.
pub(super) fn comparison_operand(other: &Bound<'_, PyAny>, by: CompareOp) -> PyResult<Option<ArrayOperand>> {
    let may_differ = matches!(by, CompareOp::Eq | CompareOp::Ne);
    let is_sequence = other.is_instance_of::<PyList>()
        || other.is_instance_of::<PyTuple>()
        || other.is_instance_of::<PyBytes>();
    match other.extract() {
        Ok(ArrayOperand::Refused(_)) if may_differ && !is_sequence => Ok(None),
        Ok(operand) => Ok(Some(operand)),
        Err(error) if is_sequence || !error.is_instance_of::<PyTypeError>(other.py()) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Python's `pow` takes a third operand for its own numbers only.
pub(super) fn refuse_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(modulo) if !modulo.is_none() => {
            Err(PyTypeError::new_err("expected two operands for `pow` of arrays, found a third"))
        }
        _ => Ok(()),
    }
}
