//! Models: loaded from a file, called like functions.

use std::path::PathBuf;
use std::sync::Arc;

use oarlock_engine::{Datum, SessionOptions, import};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::array::Array;
use crate::array::read::asarray;
use crate::device::Device;
use crate::error::OrRaise as _;
use crate::start::runtime;

/// A model that is ready to run, from as many threads at once as one likes.
#[pyclass(frozen, module = "oarlock", weakref)]
pub(crate) struct Session {
    session: Arc<oarlock_engine::Session>,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (file, /, *, device=None))]
    fn new(py: Python<'_>, file: PathBuf, device: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let runtime = runtime(py)?.clone();
        let devices = device.map(|device| crate::device::chosen(py, Some(device))).transpose()?;
        let options = SessionOptions { devices: devices.into_iter().collect(), ..SessionOptions::default() };
        let session = py.detach(|| {
            let model = import::load(&file)?;
            oarlock_engine::Session::new(runtime, &model, &options)
        });
        Ok(Self { session: Arc::new(session.or_raise()?) })
    }

    /// What a run is to be given: name, and dtype with shape as the model says it.
    #[getter]
    fn inputs(&self) -> Vec<(String, String)> {
        self.session.inputs().iter().map(described).collect()
    }

    /// What a run gives.
    #[getter]
    fn outputs(&self) -> Vec<(String, String)> {
        self.session.outputs().iter().map(described).collect()
    }

    /// The devices that its ops run on, the first one first.
    #[getter]
    fn devices(&self) -> Vec<Device> {
        self.session.devices().iter().cloned().map(Device).collect()
    }

    /// Runs the model on arrays in the order of its inputs. What comes back is an array, or a tuple of several.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let given = inputs.iter().map(|input| datum(&input)).collect::<PyResult<Vec<_>>>()?;
        let mut made = self.run_on(py, given)?;
        match made.len() {
            1 => object(py, made.remove(0)),
            _ => {
                let all = made.into_iter().map(|datum| object(py, datum)).collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, all)?.into_any())
            }
        }
    }

    /// Runs the model on arrays by the names of its inputs. What comes back is a dictionary of its outputs.
    #[pyo3(signature = (feeds, /))]
    fn run<'py>(&self, py: Python<'py>, feeds: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let names: Vec<String> = feeds.keys().iter().map(|name| name.extract()).collect::<PyResult<_>>()?;
        let mut named: Vec<(&str, Datum)> = Vec::new();
        for (name, value) in names.iter().zip(feeds.values()) {
            named.push((name, datum(&value)?));
        }
        let given = self.session.in_order(&named).or_raise()?;
        let made = PyDict::new(py);
        for (slot, datum) in self.session.outputs().iter().zip(self.run_on(py, given)?) {
            made.set_item(&*slot.name, object(py, datum)?)?;
        }
        Ok(made)
    }
}

impl Session {
    fn run_on(&self, py: Python<'_>, given: Vec<Datum>) -> PyResult<Vec<Datum>> {
        let wanted = self.session.inputs().len();
        if given.len() < wanted {
            let names: Vec<&str> = self.session.inputs().iter().map(|slot| &*slot.name).collect();
            return Err(PyValueError::new_err(format!(
                "expected {wanted} inputs ({}), found {}",
                names.join(", "),
                given.len()
            )));
        }
        py.detach(|| self.session.run(&given)).or_raise()
    }
}

fn described(slot: &oarlock_engine::Slot) -> (String, String) {
    (slot.name.to_string(), slot.declared.to_string())
}

/// What an object of Python is to a model: an array, a list of them, or nothing.
fn datum(object: &Bound<'_, PyAny>) -> PyResult<Datum> {
    if object.is_none() {
        return Ok(Datum::Nothing);
    }
    if let Ok(array) = object.cast::<Array>() {
        return Ok(Datum::Tensor(array.get().tensor()));
    }
    if let Ok(list) = object.cast::<PyList>()
        && list.iter().all(|item| item.is_instance_of::<Array>())
    {
        return list.iter().map(|item| datum(&item)).collect::<PyResult<Vec<_>>>().map(Datum::Sequence);
    }
    let array = asarray(object, None, None, None)?;
    Ok(Datum::Tensor(array.get().tensor()))
}

fn object(py: Python<'_>, datum: Datum) -> PyResult<Bound<'_, PyAny>> {
    match datum {
        Datum::Tensor(tensor) => Ok(Bound::new(py, Array::new(tensor))?.into_any()),
        Datum::Sequence(all) => {
            let all = all.iter().cloned().map(|datum| object(py, datum)).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, all)?.into_any())
        }
        Datum::Nothing => Ok(py.None().into_bound(py)),
    }
}
