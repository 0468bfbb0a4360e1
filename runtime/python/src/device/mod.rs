//! Devices and the default device.

pub(crate) mod scope;
mod scope_stack;
pub(crate) mod stream;

use oarlock_core::ErrorKind;
use oarlock_host::{PluginOutcome, PluginReport};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use crate::error::{Error, OrRaise as _, to_exception};
use crate::startup::shared_runtime;

/// A device that holds arrays and runs ops, such as `cpu:0`.
#[pyclass(frozen, module = "oarlock", name = "Device")]
pub(crate) struct PyDevice(pub(crate) oarlock_core::Device);

#[pymethods]
impl PyDevice {
    /// The device of a name: `Device("cuda:1")`.
    #[new]
    fn new(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        resolve_device(name.py(), Some(name)).map(Self)
    }

    /// The device type, such as `cuda`.
    #[getter(r#type)]
    fn kind(&self) -> &str {
        self.0.device_type()
    }

    /// The index among devices of its type.
    #[getter]
    fn index(&self) -> u32 {
        self.0.id()
    }

    /// The type and index, such as `cuda:0`.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The vendor's name for it.
    #[getter]
    fn description(&self) -> String {
        self.0.description().name.clone()
    }

    /// Waits until all work on the device has finished.
    fn synchronize(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.synchronize()).or_raise()
    }

    /// Memory in bytes: `allocated` and `reserved`, each with its peak.
    fn memory_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = self.0.memory_pool().or_raise()?.statistics();
        let all = PyDict::new(py);
        for (name, value) in [
            ("allocated", statistics.allocated),
            ("reserved", statistics.reserved),
            ("peak_allocated", statistics.peak_allocated),
            ("peak_reserved", statistics.peak_reserved),
            ("hits", statistics.hits),
            ("misses", statistics.misses),
            ("device_allocations", statistics.device_allocations),
        ] {
            all.set_item(name, value)?;
        }
        Ok(all)
    }

    /// Returns unused memory to the device, and the number of bytes to the caller.
    fn release_memory(&self) -> PyResult<u64> {
        Ok(self.0.memory_pool().or_raise()?.trim())
    }

    /// Within `with device:` it is the one that is used when none is named.
    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        scope_stack::enter_scope(slf.as_any())?;
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        scope_stack::leave_scope(py)
    }

    /// Pickles the name, which is looked up on unpickling.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (slf.get_type(), (slf.get().0.name().to_owned(),))
    }

    fn __repr__(&self) -> String {
        format!("Place({})", self.0.name())
    }

    fn __str__(&self) -> &str {
        self.0.name()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0.is_same_device(&other.0)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        self.0.name().hash(&mut hasher);
        hasher.finish()
    }
}

/// Resolves a device argument; `None` means the default.
pub(crate) fn resolve_device(
    py: Python<'_>,
    wish: Option<&Bound<'_, PyAny>>,
) -> PyResult<oarlock_core::Device> {
    let runtime = shared_runtime(py)?;
    let Some(wish) = wish else {
        return match scope::scope_device(py)? {
            Some(device) => Ok(device),
            None => Ok(runtime.default_device().or_raise()?.clone()),
        };
    };
    if let Ok(device) = wish.cast::<PyDevice>() {
        return Ok(device.get().0.clone());
    }
    let name: String = wish.extract().map_err(|_| {
        let found = wish.get_type().name().map_or_else(|_| "another".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "expected a device or its name, such as `cpu` or `cuda:1`, found {found}"
        ))
    })?;
    runtime.device(&name).map_err(|error| missing_device_error(py, &name, error))
}

/// Resolves one device or a list.
pub(crate) fn resolve_devices(wish: &Bound<'_, PyAny>) -> PyResult<Vec<oarlock_core::Device>> {
    let one = |wish: &Bound<'_, PyAny>| resolve_device(wish.py(), Some(wish));
    if wish.is_instance_of::<PyList>() || wish.is_instance_of::<PyTuple>() {
        wish.try_iter()?.map(|each| one(&each?)).collect()
    } else {
        one(wish).map(|device| vec![device])
    }
}

/// The exception for a missing device, with the package to install for it on this machine if known.
#[cold]
fn missing_device_error(py: Python<'_>, name: &str, error: oarlock_core::Error) -> PyErr {
    let hint = || -> PyResult<Option<String>> {
        py.import("oarlock._install_advice")?.call_method1("hint", (name,))?.extract()
    };
    // The hint is optional: if finding it fails, the original error still matters.
    match hint() {
        Ok(Some(hint)) if error.kind() == ErrorKind::NotFound => to_exception(error.with_advice(hint)),
        _ => to_exception(error),
    }
}

/// All devices, in order of preference.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    let all: Vec<PyDevice> = shared_runtime(py)?.devices().iter().cloned().map(PyDevice).collect();
    PyTuple::new(py, all)
}

/// The default device.
#[pyfunction]
pub(crate) fn default_device(py: Python<'_>) -> PyResult<PyDevice> {
    resolve_device(py, None).map(PyDevice)
}

/// Sets the default device.
#[pyfunction]
pub(crate) fn set_default_device(device: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = device.py();
    let name = resolve_device(py, Some(device))?.name().to_owned();
    shared_runtime(py)?.set_device(&name).or_raise()
}

/// The report of all plugins, as JSON.
#[pyfunction]
pub(crate) fn _plugins(py: Python<'_>) -> PyResult<String> {
    let report = shared_runtime(py)?.host().report();
    let entry = |plugin: &PluginReport| {
        let mut entry = serde_json::to_value(plugin)?;
        entry["is_wrong"] =
            matches!(&plugin.outcome, PluginOutcome::Refused(why) if report.is_fault(why)).into();
        Ok(entry)
    };
    let entry: Result<Vec<_>, serde_json::Error> = report.plugins.iter().map(entry).collect();
    entry.and_then(|entry| serde_json::to_string(&entry)).map_err(|error| Error::new_err(error.to_string()))
}
