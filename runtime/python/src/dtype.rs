//! Dtypes as Python objects.

use oarlock_core::Dtype;
use pyo3::PyTypeInfo as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyType};

/// The type of the elements of an array, such as `oarlock.float32`.
///
/// Called, it converts: `oarlock.float32(3)` is an array of one number.
#[pyclass(frozen, module = "oarlock")]
pub(crate) struct DType(pub(crate) Dtype);

#[pymethods]
impl DType {
    /// The name, as in NumPy.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.numpy_name()
    }

    /// The size of an element in bytes.
    #[getter]
    fn itemsize(&self) -> u32 {
        self.0.bits().div_ceil(8)
    }

    fn __repr__(&self) -> String {
        format!("oarlock.{}", self.0.numpy_name())
    }

    fn __str__(&self) -> &'static str {
        self.0.numpy_name()
    }

    /// NumPy's dtype of the same name, for `numpy.dtype(…)`.
    #[getter]
    fn __numpy_dtype__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("numpy")?.call_method1("dtype", (self.0.numpy_name(),))
    }

    /// A number or an array in the dtype, as NumPy's types give it. Numbers have to fit; floats lose what is behind the point in
    /// integers.
    fn __call__<'py>(slf: &Bound<'py, Self>, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("oarlock._conversion")?.call_method1("converted", (slf, value))
    }

    /// Equals the same dtype of NumPy, and its name.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.extract::<DtypeLike>().is_ok_and(|other| other.0 == self.0)
    }

    fn __hash__(&self) -> u32 {
        self.0 as u32
    }

    /// By its name, under which not every one is in the package.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        Ok((py.import("oarlock._oarlock")?.getattr("_dtype")?, (self.0.numpy_name(),)))
    }
}

/// The dtype with a name, for unpickling.
#[pyfunction]
pub(crate) fn _dtype(py: Python<'_>, name: DtypeLike) -> PyResult<Py<DType>> {
    dtype_object(py, name.0)
}

static DTYPE_OBJECTS: PyOnceLock<Vec<Py<DType>>> = PyOnceLock::new();

pub(crate) fn register_dtypes(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    for (dtype, object) in Dtype::ALL.iter().zip(dtype_objects(py)?) {
        module.add(dtype.numpy_name(), object)?;
    }
    Ok(())
}

fn dtype_objects(py: Python<'_>) -> PyResult<&Vec<Py<DType>>> {
    DTYPE_OBJECTS.get_or_try_init(py, || Dtype::ALL.iter().map(|dtype| Py::new(py, DType(*dtype))).collect())
}

/// The singleton for a dtype.
pub(crate) fn dtype_object(py: Python<'_>, dtype: Dtype) -> PyResult<Py<DType>> {
    let at = Dtype::ALL.iter().position(|known| *known == dtype);
    let object = at.and_then(|at| dtype_objects(py).ok()?.get(at));
    object
        .map(|object| object.clone_ref(py))
        .ok_or_else(|| PyTypeError::new_err("expected a dtype that Python has"))
}

/// A dtype argument: a dtype of the package, a type of Python or NumPy, or a name.
pub(crate) struct DtypeLike(pub(crate) Dtype);

impl FromPyObject<'_, '_> for DtypeLike {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(dtype) = object.cast::<DType>() {
            return Ok(Self(dtype.get().0));
        }
        let py = object.py();
        let builtin = [
            (PyBool::type_object(py), Dtype::Bool),
            (PyInt::type_object(py), Dtype::I64),
            (PyFloat::type_object(py), Dtype::F32),
            (PyComplex::type_object(py), Dtype::C64),
            (PyString::type_object(py), Dtype::String),
        ];
        if let Some((_, dtype)) = builtin.iter().find(|(builtin, _)| object.is(builtin)) {
            return Ok(Self(*dtype));
        }
        let name = if object.is_instance_of::<PyString>() {
            Some(object.extract::<String>()?)
        } else if object.is_instance_of::<PyType>() {
            Some(object.getattr("__name__")?.extract()?)
        } else {
            object.getattr("name").and_then(|name| name.extract()).ok()
        };
        let found = name.as_deref().and_then(dtype_by_name);
        found.map(Self).ok_or_else(|| {
            let found = object.repr().map_or_else(|_| "another object".to_owned(), |text| text.to_string());
            PyTypeError::new_err(format!("expected a dtype such as `oarlock.float32`, found {found}"))
        })
    }
}

/// Other names of dtypes: NumPy's codes, PyTorch's names, and those of Python's types.
const DTYPE_ALIASES: [(&str, Dtype); 26] = [
    ("?", Dtype::Bool),
    ("b1", Dtype::Bool),
    ("byte", Dtype::I8),
    ("i1", Dtype::I8),
    ("ubyte", Dtype::U8),
    ("u1", Dtype::U8),
    ("short", Dtype::I16),
    ("i2", Dtype::I16),
    ("u2", Dtype::U16),
    ("intc", Dtype::I32),
    ("i4", Dtype::I32),
    ("u4", Dtype::U32),
    ("int", Dtype::I64),
    ("long", Dtype::I64),
    ("i8", Dtype::I64),
    ("u8", Dtype::U64),
    ("half", Dtype::F16),
    ("f2", Dtype::F16),
    ("float", Dtype::F32),
    ("single", Dtype::F32),
    ("f4", Dtype::F32),
    ("double", Dtype::F64),
    ("f8", Dtype::F64),
    ("complex", Dtype::C64),
    ("c8", Dtype::C64),
    ("c16", Dtype::C128),
];

/// Accepts names of NumPy, of PyTorch and of the core; `i8` is NumPy's int64, not an int8 as in the core.
pub(crate) fn dtype_by_name(name: &str) -> Option<Dtype> {
    let by_name = |has_name: &dyn Fn(&Dtype) -> bool| Dtype::ALL.iter().copied().find(has_name);
    // NumPy writes the order of bytes first: of this machine, or none.
    let code = name.strip_prefix(['<', '=', '|']).unwrap_or(name);
    let alias = || DTYPE_ALIASES.iter().find(|(alias, _)| *alias == code).map(|(_, dtype)| *dtype);
    by_name(&|dtype| dtype.numpy_name() == name)
        .or_else(alias)
        .or_else(|| by_name(&|dtype| dtype.name() == name))
}
