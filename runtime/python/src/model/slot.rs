//! Declared inputs and outputs of a model.

use oarlock_engine::graph::{DeclaredDimension, ValueType};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dtype::{self, DType};

/// An input or output of a model.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct Slot(oarlock_engine::ModelOperand);

#[pymethods]
impl Slot {
    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// The dtype; `None` if the model does not state it or it is not an array.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Option<Py<DType>>> {
        let ValueType::Tensor { dtype: Some(dtype), .. } = &self.0.declared else { return Ok(None) };
        dtype::dtype_object(py, *dtype).map(Some)
    }

    /// The shape: each size is a number, a name that stands for the same number everywhere, or `None` for any number.
    /// `None` if the model does not state a shape or it is not an array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let ValueType::Tensor { dims: Some(dims), .. } = &self.0.declared else { return Ok(None) };
        let size = |dimension: &DeclaredDimension| match dimension {
            DeclaredDimension::Known(size) => Ok(size.into_pyobject(py)?.into_any()),
            DeclaredDimension::Symbol(name) => Ok(name.as_ref().into_pyobject(py)?.into_any()),
            DeclaredDimension::Unknown => Ok(py.None().into_bound(py)),
        };
        PyTuple::new(py, dims.iter().map(size).collect::<PyResult<Vec<_>>>()?).map(Some)
    }

    /// The type as text, such as `float32[batch, 3, 224, 224]` or `sequence of int64[?]`.
    #[getter]
    fn kind(&self) -> String {
        type_text(&self.0.declared)
    }

    fn __repr__(&self) -> String {
        format!("Slot({:?}, {})", self.0.name, self.kind())
    }
}

pub(super) fn wrap_slots(slots: &[oarlock_engine::ModelOperand]) -> Vec<Slot> {
    slots.iter().cloned().map(Slot).collect()
}

/// A type in Python's notation, with NumPy's names of dtypes.
fn type_text(declared: &ValueType) -> String {
    match declared {
        ValueType::Tensor { dtype: Some(dtype), dims } => {
            let nameless = ValueType::Tensor { dtype: None, dims: dims.clone() }.to_string();
            format!("{}{}", dtype.numpy_name(), nameless.trim_start_matches('?'))
        }
        ValueType::Sequence(of) => format!("sequence of {}", type_text(of)),
        ValueType::Optional(of) => format!("optional {}", type_text(of)),
        ValueType::Map(key, of) => format!("map of {} to {}", key.numpy_name(), type_text(of)),
        ValueType::Tensor { dtype: None, .. } | ValueType::Unknown => declared.to_string(),
    }
}
