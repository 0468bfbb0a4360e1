//! The trace of a function, as Python sees it.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use oarlock_core::Tensor;
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::{Model, Session, SessionOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::graph_trace::{FinishedGraph, GraphTrace, operand_value};
use super::{TRACE_COUNT, TRACES};
use crate::error::OrRaise as _;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;

/// A function, branch or loop body while it is traced, and its graph afterwards.
#[pyclass(frozen, module = "oarlock", name = "_Trace")]
pub(crate) struct Trace {
    function: String,
    finished: Mutex<Option<FinishedGraph>>,
}

#[pymethods]
impl Trace {
    #[new]
    fn new(function: String) -> Self {
        Self { function, finished: Mutex::default() }
    }

    /// Starts to trace on this thread. Returns the arguments of the function: new arrays, which are the inputs of the graph.
    fn begin(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        arrays: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<Vec<PyTensor>> {
        let mut trace = GraphTrace::new(&self.function);
        let mut given = Vec::new();
        for (name, array) in names.iter().zip(&arrays) {
            let argument = fresh_tensor(py, &array.get().tensor())?;
            trace.add_input(name, &argument);
            given.push(PyTensor::new(argument));
        }
        TRACES.with_borrow_mut(|traces| traces.push(trace));
        TRACE_COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(given)
    }

    /// Ends the graph with its outputs.
    fn end(&self, names: Vec<String>, outputs: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
        let finished = TRACES.with_borrow_mut(|traces| {
            let values = outputs.iter().map(|output| operand_value(traces, &output.get().tensor()));
            let values = values.collect::<PyResult<Vec<_>>>()?;
            let trace = traces.pop().ok_or_else(|| PyTypeError::new_err("expected a trace, found none"))?;
            TRACE_COUNT.fetch_sub(1, Ordering::Relaxed);
            trace.finish(&values, &names)
        })?;
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
        Ok(())
    }

    /// Ends without a graph, after an error.
    fn abandon(&self) {
        if TRACES.with_borrow_mut(|traces| traces.pop()).is_some() {
            TRACE_COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The graph as the bytes of an ONNX file, with ops as the function called them.
    fn onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (runtime, model) = (shared_runtime(py)?.clone(), self.model()?);
        let options = SessionOptions { is_plain: true, ..SessionOptions::default() };
        let about = OnnxExportOptions {
            metadata: model.metadata.clone(),
            opsets: model.opsets.clone(),
            weights_file: "",
        };
        let files = py.detach(|| Session::new(runtime, &model, &options)?.to_onnx(&about)).or_raise()?;
        if files.weights.is_empty() {
            return Ok(PyBytes::new(py, &files.model));
        }
        Err(PyValueError::new_err(
            "expected weights that fit into one ONNX file, found some for a file of their own\nhint: `session(…).save(file)` writes \
             both files",
        ))
    }

    fn __repr__(&self) -> String {
        format!("_Trace({:?})", self.function)
    }
}

impl Trace {
    /// The graph as a model.
    pub(crate) fn model(&self) -> PyResult<Model> {
        self.finished()?.into_model()
    }

    /// The graph with its captures, for a branch or loop body.
    pub(super) fn finished(&self) -> PyResult<FinishedGraph> {
        let finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner).clone();
        finished
            .ok_or_else(|| PyTypeError::new_err("expected a trace that has ended, found one that has not"))
    }
}

/// Whether this thread traces a function.
#[pyfunction]
pub(crate) fn _is_tracing() -> bool {
    TRACES.with_borrow(|traces| !traces.is_empty())
}

/// Whether an array depends on the arguments of the function that is traced.
#[pyfunction]
pub(crate) fn _is_traced(array: &Bound<'_, PyTensor>) -> bool {
    super::is_traced(&array.get().tensor())
}

/// The same elements as a tensor of its own, in memory of its own and contiguous as all results of ops are.
fn fresh_tensor(py: Python<'_>, tensor: &Tensor) -> PyResult<Tensor> {
    if tensor.is_contiguous() {
        // Only the memory of the host is compared with that of constants.
        return match tensor.host_bytes().or_raise()? {
            Some(bytes) => {
                Tensor::from_bytes(tensor.device(), tensor.dtype(), tensor.dims(), bytes).or_raise()
            }
            None => tensor.reshape(tensor.dims()).or_raise(),
        };
    }
    let stream = tensor.device().default_stream().or_raise()?;
    shared_runtime(py)?.make_contiguous(tensor, stream).or_raise()
}

/// The innermost line of Python outside of this package, as `file.py:12`.
pub(super) fn python_line(py: Python<'_>) -> PyResult<String> {
    let package = py.import("oarlock")?.getattr("__path__")?.get_item(0)?.extract::<String>()?;
    let mut frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    loop {
        let file = frame.getattr("f_code")?.getattr("co_filename")?.extract::<String>()?;
        let outer = frame.getattr("f_back")?;
        if !file.starts_with(&package) || outer.is_none() {
            let name = file.rsplit('/').next().unwrap_or_default();
            return Ok(format!("{name}:{}", frame.getattr("f_lineno")?));
        }
        frame = outer;
    }
}
