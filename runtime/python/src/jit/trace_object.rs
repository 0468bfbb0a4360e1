//! The trace of a function, as Python sees it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::Tensor;
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::export::portable::decompose_own_ops;
use oarlock_engine::{Model, Session, SessionOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::OrRaise as _;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;
use crate::trace::{FinishedGraph, GraphTrace, TRACE_COUNT, TRACES, is_traced, operand_value};

/// A function, branch or loop body while it is traced, and its graph afterwards.
#[pyclass(frozen, module = "oarlock", name = "_Trace")]
pub(crate) struct FunctionTrace {
    function: String,
    finished: Mutex<Option<FinishedGraph>>,
    /// Shared with the arrays that depend on the arguments.
    alive: Arc<()>,
}

#[pymethods]
impl FunctionTrace {
    #[new]
    fn new(function: String) -> Self {
        Self { function, finished: Mutex::default(), alive: Arc::default() }
    }

    /// Starts to trace on this thread. Returns the arguments of the function: new arrays, which are the inputs of the graph.
    fn begin(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        arrays: Vec<Bound<'_, PyTensor>>,
    ) -> PyResult<Vec<PyTensor>> {
        let mut trace = GraphTrace::new(&self.function, self.alive.clone());
        let mut arguments = Vec::new();
        for (name, array) in names.iter().zip(&arrays) {
            let argument = fresh_tensor(py, &array.get().tensor())?;
            trace.add_input(name, &argument);
            arguments.push(argument);
        }
        TRACES.with_borrow_mut(|traces| traces.push(trace));
        TRACE_COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(arguments.into_iter().map(PyTensor::new).collect())
    }

    /// Ends the graph with its outputs.
    fn end(&self, names: Vec<String>, outputs: Vec<Bound<'_, PyTensor>>) -> PyResult<()> {
        let outputs: Vec<Tensor> = outputs.iter().map(|output| output.get().tensor()).collect();
        let finished = TRACES.with_borrow_mut(|traces| {
            let values = outputs.iter().map(|output| operand_value(traces, output));
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

    /// The number of arrays that depend on the arguments and still exist.
    fn kept(&self) -> usize {
        Arc::strong_count(&self.alive) - 1
    }

    /// The graph as the bytes of an ONNX file, with ops as the function called them where ONNX has them.
    fn onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (runtime, mut model) = (shared_runtime(py)?.clone(), self.model()?);
        decompose_own_ops(&mut model.graph).or_raise()?;
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

impl FunctionTrace {
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
    is_traced(&array.get().tensor())
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
