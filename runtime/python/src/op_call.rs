//! Op calls. All go through the core's registry, so any device can run them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use oarlock_core::schema::latest_opset;
use oarlock_core::stream::Stream;
use oarlock_core::{Attribute, Attributes, Dtype, Op, OpInvocation, Runtime, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::dtype::DType;
use crate::error::{OrRaise as _, call_exception, type_name};
use crate::recorder;
use crate::signals::detach_interruptible;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;
use crate::trace;
use oarlock_core::schema::OARLOCK_DOMAIN;

/// Calls on fewer elements keep the interpreter attached: detaching and attaching takes about as long as a small op.
const DETACH_THRESHOLD: u64 = 1 << 13;

/// An op with constant attributes, cached at its call site.
pub(crate) struct StaticOp {
    domain: &'static str,
    name: &'static str,
    attributes: &'static [(&'static str, i64)],
    op: OnceLock<Op>,
    /// The complex variant of the op, if there is one; ONNX has none.
    complex: Option<OnceLock<Op>>,
}

impl StaticOp {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self::with_attributes(name, &[])
    }

    pub(crate) const fn with_attributes(
        name: &'static str,
        attributes: &'static [(&'static str, i64)],
    ) -> Self {
        Self { domain: "", name, attributes, op: OnceLock::new(), complex: None }
    }

    /// An ONNX op, with Oarlock's own op for complex numbers.
    pub(crate) const fn complex_aware(name: &'static str) -> Self {
        Self { domain: "", name, attributes: &[], op: OnceLock::new(), complex: Some(OnceLock::new()) }
    }

    pub(crate) const fn oarlock_op(name: &'static str) -> Self {
        Self { domain: OARLOCK_DOMAIN, name, attributes: &[], op: OnceLock::new(), complex: None }
    }

    #[inline]
    fn resolve_op(&self, runtime: &Runtime, dtype: Option<Dtype>) -> PyResult<&Op> {
        let (domain, place) = match &self.complex {
            Some(complex) if matches!(dtype, Some(Dtype::C64 | Dtype::C128)) => (OARLOCK_DOMAIN, complex),
            _ => (self.domain, &self.op),
        };
        match place.get() {
            Some(op) => Ok(op),
            None => {
                let opset = latest_opset(domain).or_raise()?;
                let mut attributes = Attributes::new();
                for (name, value) in self.attributes {
                    attributes.set(*name, Attribute::Int(*value));
                }
                let op = Op::new(runtime, domain, self.name, opset, attributes).or_raise()?;
                Ok(place.get_or_init(|| op))
            }
        }
    }

    /// Calls an op with one output.
    #[inline]
    pub(crate) fn call(&self, py: Python<'_>, inputs: &[&Tensor]) -> PyResult<Tensor> {
        let runtime = shared_runtime(py)?;
        let op = self.resolve_op(runtime, inputs.first().map(|input| input.dtype()))?;
        let stream = stream_for_op(py, inputs.first().copied())?;
        if stream.is_some() || recorder::is_recording() || trace::is_tracing() {
            let inputs: Vec<Option<&Tensor>> = inputs.iter().copied().map(Some).collect();
            let call = OpInvocation { inputs: &inputs, outputs: 1, device: None, stream: stream.as_ref() };
            return crate::tensor::single_output(run_op(py, runtime, op, &call)?);
        }
        let result = if is_small_call(inputs.iter().copied()) {
            op.run(runtime, inputs)
        } else {
            detach_interruptible(py, || op.run(runtime, inputs))?
        };
        let result = result.map_err(call_exception)?;
        crate::warning::emit_warnings(py)?;
        Ok(result)
    }
}

/// The current stream, if it belongs to the device that runs the op.
#[inline]
fn stream_for_op(py: Python<'_>, input: Option<&Tensor>) -> PyResult<Option<Stream>> {
    input.map_or(Ok(None), |input| crate::device::scope::scope_stream(py, input.device()))
}

/// True if the call ends before another thread could do anything useful.
#[inline]
fn is_small_call<'a>(mut inputs: impl Iterator<Item = &'a Tensor>) -> bool {
    inputs.all(|input| input.element_count() <= DETACH_THRESHOLD && input.device().device_type() == "cpu")
}

/// Ops with attributes, keyed by [`op_key`].
static OP_CACHE: RwLock<Option<HashMap<Vec<u8>, Arc<Op>>>> = RwLock::new(None);

/// A unique key of the op and its attributes. Integers, the most common kind, are encoded without formatting text.
fn op_key(domain: &str, name: &str, attributes: &Attributes) -> Vec<u8> {
    let mut key = Vec::with_capacity(128);
    let add = |key: &mut Vec<u8>, text: &str| {
        key.extend(text.len().to_ne_bytes());
        key.extend(text.as_bytes());
    };
    add(&mut key, domain);
    add(&mut key, name);
    for (name, value) in attributes.iter() {
        add(&mut key, name);
        match value {
            Attribute::Int(number) => {
                key.push(0);
                key.extend(number.to_ne_bytes());
            }
            other => {
                key.push(1);
                add(&mut key, &format!("{other:?}"));
            }
        }
    }
    key
}

/// Finds the op in the cache or creates it.
pub(crate) fn find_op(
    runtime: &Runtime,
    domain: &str,
    name: &str,
    attributes: Attributes,
) -> PyResult<Arc<Op>> {
    let key = op_key(domain, name, &attributes);
    let known = OP_CACHE.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(op) = known.as_ref().and_then(|known| known.get(&key)) {
        return Ok(op.clone());
    }
    drop(known);
    let opset = runtime.latest_opset(domain, name);
    let op = Arc::new(Op::new(runtime, domain, name, opset, attributes).or_raise()?);
    let mut known = OP_CACHE.write().unwrap_or_else(PoisonError::into_inner);
    Ok(known.get_or_insert_default().entry(key).or_insert(op).clone())
}

/// Looks an op up by name and calls it.
pub(crate) fn call_named_op(
    py: Python<'_>,
    name: &str,
    inputs: &[Option<&Tensor>],
    attributes: Attributes,
    outputs: usize,
) -> PyResult<Vec<Tensor>> {
    invoke_op(py, "", name, attributes, &OpInvocation { inputs, outputs, device: None, stream: None })
}

/// Calls an op of Oarlock's own domain that has one output.
pub(crate) fn call_oarlock_op(
    py: Python<'_>,
    name: &str,
    inputs: &[Option<&Tensor>],
    attributes: Attributes,
) -> PyResult<Vec<Tensor>> {
    invoke_op(
        py,
        "oarlock",
        name,
        attributes,
        &OpInvocation { inputs, outputs: 1, device: None, stream: None },
    )
}

fn invoke_op(
    py: Python<'_>,
    domain: &str,
    name: &str,
    attributes: Attributes,
    call: &OpInvocation<'_>,
) -> PyResult<Vec<Tensor>> {
    let runtime = shared_runtime(py)?;
    let op = find_op(runtime, domain, name, attributes)?;
    let stream = stream_for_op(py, call.inputs.iter().copied().flatten().next())?;
    let call = &OpInvocation { stream: stream.as_ref(), ..*call };
    run_op(py, runtime, &op, call)
}

/// Calls an op, and records it if a profiler is active.
fn run_op(py: Python<'_>, runtime: &Runtime, op: &Op, call: &OpInvocation<'_>) -> PyResult<Vec<Tensor>> {
    if let Some(results) = trace::record_without_run(py, op, call)? {
        return Ok(results);
    }
    let result = if let Some(recording) = recorder::active_recording() {
        py.detach(|| recording.record_call(runtime, op, call))
    } else if call.stream.is_none() && is_small_call(call.inputs.iter().copied().flatten()) {
        op.invoke(runtime, call)
    } else {
        detach_interruptible(py, || op.invoke(runtime, call))?
    };
    let result: Vec<Tensor> = result.map_err(call_exception)?.into_iter().flatten().collect();
    crate::warning::emit_warnings(py)?;
    trace::record_call(py, op, call.inputs, &result)?;
    Ok(result)
}

/// Calls an op of ONNX or of another domain by name: `op("Gemm", [a, b], {"transB": 1})`.
///
/// An omitted input is `None`. Returns an array, or a tuple if more than one output is requested.
#[pyfunction]
#[pyo3(signature = (name, inputs, attributes=None, *, outputs=1, domain="", device=None))]
pub(crate) fn op<'py>(
    py: Python<'py>,
    name: &str,
    inputs: &Bound<'py, PyAny>,
    attributes: Option<&Bound<'py, PyDict>>,
    outputs: usize,
    domain: &str,
    device: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let inputs = parse_operands(name, inputs)?;
    let tensors: Vec<Option<Tensor>> =
        inputs.iter().map(|input| Some(input.as_ref()?.get().tensor())).collect();
    let inputs: Vec<Option<&Tensor>> = tensors.iter().map(Option::as_ref).collect();
    let device = device.map(|device| crate::device::resolve_device(py, Some(device))).transpose()?;
    let attributes = attributes.map(|given| parse_attributes(name, given)).transpose()?.unwrap_or_default();
    let call = OpInvocation { inputs: &inputs, outputs, device: device.as_ref(), stream: None };
    let mut result = invoke_op(py, domain, name, attributes, &call)?.into_iter().map(PyTensor::new);
    match outputs {
        1 => {
            let only = result.next().ok_or_else(|| PyTypeError::new_err("expected an output, found none"))?;
            Ok(Bound::new(py, only)?.into_any())
        }
        _ => Ok(PyTuple::new(py, result.map(|array| Bound::new(py, array)).collect::<PyResult<Vec<_>>>()?)?
            .into_any()),
    }
}

/// The operands of a call; `None` for one that is left out. A single array is refused, although it is a sequence of its rows.
fn parse_operands<'py>(op: &str, given: &Bound<'py, PyAny>) -> PyResult<Vec<Option<Bound<'py, PyTensor>>>> {
    if !given.is_instance_of::<PyTensor>()
        && let Ok(operands) = given.extract()
    {
        return Ok(operands);
    }
    let wrong = |each: &Bound<'_, PyAny>| !each.is_none() && !each.is_instance_of::<PyTensor>();
    let is_list = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    let found = if is_list { given.try_iter()?.flatten().find(wrong) } else { None };
    Err(PyTypeError::new_err(match found {
        Some(found) => format!(
            "expected arrays as operands of `{op}`, found {}\nhint: make it an array with `oarlock.asarray`",
            type_name(&found)
        ),
        None => format!(
            "expected the operands of `{op}` in a list, found {}\nhint: write `oarlock.op(\"{op}\", [x, …])`",
            type_name(given)
        ),
    }))
}

fn parse_attributes(op: &str, given: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let mut attributes = Attributes::new();
    for (name, value) in given {
        let name = name.extract::<String>()?;
        let value = parse_attribute(&value).map_err(|error| {
            if !error.is_instance_of::<PyTypeError>(value.py()) {
                return error;
            }
            let found = type_name(&value);
            PyTypeError::new_err(format!(
                "expected a number, text, an array, or a list of numbers or texts for `{name}` of `{op}`, found {found}"
            ))
        })?;
        attributes.set(name, value);
    }
    Ok(attributes)
}

fn parse_attribute(value: &Bound<'_, PyAny>) -> PyResult<Attribute> {
    if let Ok(dtype) = value.cast::<DType>() {
        return Ok(Attribute::Int(dtype.get().0.onnx_number()));
    }
    if let Ok(array) = value.cast::<PyTensor>() {
        let tensor = array.get().tensor();
        trace::refuse_read(&tensor)?;
        return Ok(Attribute::Tensor(tensor.to_constant().or_raise()?));
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyInt>() {
        return Ok(Attribute::Int(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Attribute::String(value.extract()?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return match value.extract::<Vec<i64>>() {
            Ok(ints) => Ok(Attribute::Ints(ints)),
            Err(_) => match value.extract() {
                Ok(floats) => Ok(Attribute::Floats(floats)),
                Err(_) => Ok(Attribute::Strings(value.extract()?)),
            },
        };
    }
    Ok(Attribute::Float(value.extract()?))
}
