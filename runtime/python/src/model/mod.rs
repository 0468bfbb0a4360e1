//! Models, loaded from a file or from bytes, and called like functions.

mod fallback;
mod progress;
mod slot;
mod stop;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use oarlock_core::Dtype;
use oarlock_core::flags::FallbackScope;
use oarlock_engine::import::{self, MapKeys, ModelMetadata};
use oarlock_engine::{Model, PrecisionMode, RuntimeValue, SessionOptions};
use pyo3::exceptions::{PyFileNotFoundError, PyIsADirectoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use self::fallback::PendingFallbacks;
use self::progress::ProgressFunction;
pub(crate) use self::slot::Slot;
pub(crate) use self::stop::Stop;
use self::value::{value_from_object, value_to_object};
use crate::device::PyDevice;
use crate::dtype::DtypeLike;
use crate::error::{OrRaise as _, type_name};
use crate::jit::FunctionTrace;
use crate::plan_report;
use crate::startup::shared_runtime;

/// A model that is ready to run, from any number of threads at once.
#[pyclass(frozen, subclass, weakref, module = "oarlock")]
pub(crate) struct Session {
    /// Boxed, because a session needs a larger alignment than objects of the interpreter have.
    session: Box<oarlock_engine::Session>,
    about: ModelProperties,
    /// Fallback warnings that are still waiting.
    untold: Arc<PendingFallbacks>,
}

struct ModelProperties {
    format: String,
    producer: String,
    graph: String,
    opsets: BTreeMap<String, u32>,
    metadata: BTreeMap<String, String>,
    labels: ModelMetadata,
    maps: BTreeMap<String, MapKeys>,
}

#[pymethods]
impl Session {
    /// Reads a model from a file, or from the bytes of one of ONNX, and readies it.
    #[new]
    #[pyo3(signature = (model, /, *, device=None, precision=None, fallback=None, progress=None))]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        device: Option<&Bound<'_, PyAny>>,
        precision: Option<DtypeLike>,
        fallback: Option<&str>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let progress = progress.map(ProgressFunction::new);
        let runtime = shared_runtime(py)?.clone();
        let untold = Arc::new(PendingFallbacks::default());
        let options = SessionOptions {
            devices: device.map_or(Ok(Vec::new()), crate::device::resolve_devices)?,
            fallback: fallback.map(FallbackScope::from_name).transpose().or_raise()?,
            on_fallback: untold.fallback_listener(),
            progress: progress.as_ref().map(ProgressFunction::prepare_listener).unwrap_or_default(),
            precision: precision.map_or(Ok(PrecisionMode::F32), |dtype| parse_precision(dtype.0))?,
            ..SessionOptions::default()
        };
        let source = ModelSource::from_object(model)?;
        let read = || -> oarlock_core::Result<Self> {
            let model = match progress {
                None => source.read_model()?,
                Some(progress) => import::with_read_progress(
                    move |read, all| progress.call_function(read, all, "reading"),
                    || source.read_model(),
                )?,
            };
            let session = oarlock_engine::Session::new(runtime, &model, &options)?;
            let Model { graph, format, producer, opsets, metadata, labels, maps, .. } = model;
            let session = Box::new(session);
            Ok(Self {
                session,
                untold,
                about: ModelProperties {
                    format,
                    producer,
                    graph: graph.name.to_string(),
                    opsets,
                    metadata,
                    labels,
                    maps,
                },
            })
        };
        let result = py.detach(read).map_err(|error| source.to_exception(py, error))?;
        crate::warning::emit_warnings(py)?;
        Ok(result)
    }

    /// The required inputs.
    #[getter]
    fn inputs(&self) -> Vec<Slot> {
        slot::wrap_slots(self.session.inputs())
    }

    /// The optional inputs, given by name. The model has a value for each.
    #[getter]
    fn optional_inputs(&self) -> Vec<Slot> {
        slot::wrap_slots(self.session.optional_inputs())
    }

    /// The outputs.
    #[getter]
    fn outputs(&self) -> Vec<Slot> {
        slot::wrap_slots(self.session.outputs())
    }

    /// The devices that ops run on, in order of preference.
    #[getter]
    fn devices(&self) -> Vec<PyDevice> {
        self.session.devices().iter().cloned().map(PyDevice).collect()
    }

    /// Runs the model on arrays in the order of its inputs. Returns an array, or a tuple of several.
    #[pyo3(signature = (*inputs))]
    fn __call__<'py>(slf: &Bound<'py, Self>, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let mut result = stop::run_interruptible(py, &this.session, &this.order_inputs(inputs)?, None)?;
        this.untold.report_fallbacks(slf)?;
        match result.len() {
            1 => value_to_object(py, result.remove(0)),
            _ => {
                let all = result
                    .into_iter()
                    .map(|value| value_to_object(py, value))
                    .collect::<PyResult<Vec<_>>>()?;
                Ok(PyTuple::new(py, all)?.into_any())
            }
        }
    }

    /// Runs the model on arrays by input name, and returns a dictionary of the outputs.
    #[pyo3(signature = (feeds, /, *, stop=None))]
    fn run<'py>(
        slf: &Bound<'py, Self>,
        feeds: &Bound<'py, PyAny>,
        stop: Option<&Bound<'py, Stop>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let feeds = feeds.cast::<PyDict>().map_err(|_| {
            let found = type_name(feeds);
            PyTypeError::new_err(format!(
                "`run` expected a dictionary of arrays by the names of inputs, found {found}\nhint: call the model itself with \
                 arrays in the order of its inputs"
            ))
        })?;
        let name_of = |name: Bound<'py, PyAny>| {
            name.extract::<String>().map_err(|_| {
                let found = type_name(&name);
                PyTypeError::new_err(format!("`run` expected names of inputs, found {found}"))
            })
        };
        let names: Vec<String> = feeds.keys().into_iter().map(name_of).collect::<PyResult<_>>()?;
        let mut named: Vec<(&str, RuntimeValue)> = Vec::new();
        for (name, value) in names.iter().zip(feeds.values()) {
            named.push((name, value_from_object(&value, this.session.input(name).ok())?));
        }
        let given = this.session.order_inputs(&named).or_raise()?;
        let outputs = stop::run_interruptible(py, &this.session, &given, stop.map(|stop| stop.get()))?;
        this.untold.report_fallbacks(slf)?;
        let result = PyDict::new(py);
        for (slot, value) in this.session.outputs().iter().zip(outputs) {
            result.set_item(&*slot.name, value_to_object(py, value)?)?;
        }
        Ok(result)
    }

    /// The metadata of the model.
    #[getter]
    fn _about<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ModelProperties { format, producer, graph, opsets, metadata, labels, maps } = &self.about;
        let all = PyDict::new(py);
        all.set_item("format", format)?;
        all.set_item("producer", producer)?;
        all.set_item("graph", graph)?;
        all.set_item("opsets", opsets)?;
        all.set_item("metadata", metadata)?;
        all.set_item("producer_name", &labels.producer_name)?;
        all.set_item("domain", &labels.domain)?;
        all.set_item("version", labels.version)?;
        all.set_item("description", &labels.description)?;
        all.set_item("graph_description", &labels.graph_description)?;
        let keys = PyDict::new(py);
        for (output, found) in maps {
            match found {
                MapKeys::Numbers(numbers) => keys.set_item(output, numbers)?,
                MapKeys::Texts(texts) => keys.set_item(output, texts)?,
            }
        }
        all.set_item("maps", keys)?;
        Ok(all)
    }

    /// The bytes of an ONNX file of the optimized model, and the parts of a weights file with this name, each with its
    /// offset.
    fn _onnx<'py>(&self, py: Python<'py>, weights_file: &str) -> PyResult<WrittenModel<'py>> {
        let (metadata, opsets) = (self.about.metadata.clone(), self.about.opsets.clone());
        let about = oarlock_engine::export::onnx::OnnxExportOptions { metadata, opsets, weights_file };
        let files = py.detach(|| self.session.to_onnx(&about)).or_raise()?;
        let part = |(place, bytes): &(u64, bytes::Bytes)| (*place, PyBytes::new(py, bytes));
        Ok((PyBytes::new(py, &files.model), files.weights.iter().map(part).collect()))
    }

    /// How the model is run on such inputs, as `explain` shows it.
    #[pyo3(signature = (*inputs))]
    fn _plan<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyDict>> {
        plan_report::describe_plan(py, &self.session, &self.order_inputs(inputs)?)
    }

    /// A model that is ready is threads and memory of devices, which no file has.
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "expected what can be pickled or copied, found a model that is loaded\nhint: give other processes its path, and \
             load it there with `oarlock.load`; one model may run on many threads at once, without copies",
        ))
    }

    fn __repr__(&self) -> String {
        let ends = |slots: &[oarlock_engine::ModelOperand]| -> String {
            slots.iter().map(|slot| slot.name.to_string()).collect::<Vec<_>>().join(", ")
        };
        format!("Session(({}) -> ({}))", ends(self.session.inputs()), ends(self.session.outputs()))
    }
}

impl Session {
    /// Converts arrays in the order of the inputs.
    fn order_inputs(&self, inputs: &Bound<'_, PyTuple>) -> PyResult<Vec<RuntimeValue>> {
        let wanted = self.session.inputs().len();
        if inputs.len() != wanted {
            let names: Vec<&str> = self.session.inputs().iter().map(|slot| &*slot.name).collect();
            return Err(PyValueError::new_err(format!(
                "expected {wanted} inputs ({}), found {}",
                names.join(", "),
                inputs.len()
            )));
        }
        let slots = self.session.inputs();
        inputs.iter().zip(slots).map(|(input, slot)| value_from_object(&input, Some(slot))).collect()
    }
}

/// A model file, and pieces of its weights file with their offsets.
type WrittenModel<'py> = (Bound<'py, PyBytes>, Vec<(u64, Bound<'py, PyBytes>)>);

enum ModelSource {
    File(PathBuf),
    Bytes(bytes::Bytes),
    Traced(Box<Model>),
}

impl ModelSource {
    fn from_object(model: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(trace) = model.cast::<FunctionTrace>() {
            return Ok(Self::Traced(Box::new(trace.get().model()?)));
        }
        match model.cast::<PyBytes>() {
            Ok(given) => Ok(Self::Bytes(bytes::Bytes::copy_from_slice(given.as_bytes()))),
            Err(_) => model.extract().map(Self::File).map_err(|_| {
                let found = type_name(model);
                PyTypeError::new_err(format!(
                    "expected the path of a model or its bytes for `load`, found {found}"
                ))
            }),
        }
    }

    fn read_model(&self) -> oarlock_core::Result<Model> {
        match self {
            Self::File(file) => import::load_model(file),
            Self::Bytes(bytes) => import::onnx::decode_onnx(bytes.clone(), None),
            Self::Traced(model) => Ok(Model::clone(model)),
        }
    }

    /// Raises Python's own exception for a missing file.
    fn to_exception(&self, py: Python<'_>, error: oarlock_core::Error) -> PyErr {
        let result = crate::error::to_exception(error);
        let message = || result.value(py).to_string();
        match self {
            Self::File(file) if file.is_dir() => PyIsADirectoryError::new_err(message()),
            Self::File(file) if !file.exists() => PyFileNotFoundError::new_err(message()),
            _ => result,
        }
    }
}

/// The precision that products may be rounded to.
fn parse_precision(dtype: Dtype) -> PyResult<PrecisionMode> {
    match dtype {
        Dtype::F32 => Ok(PrecisionMode::F32),
        Dtype::BF16 => Ok(PrecisionMode::Bf16),
        other => Err(PyValueError::new_err(format!(
            "expected `float32` or `bfloat16` for `precision`, found `{}`",
            other.numpy_name()
        ))),
    }
}
