//! Python functions as ops. Each becomes a CPU kernel of its own built-in plugin, which is added when the function is
//! registered.
//!
//! A call copies the inputs into arrays, so that the function may keep them, and copies the returned arrays into the outputs,
//! whose shapes are unknown before the call.

#![expect(unsafe_code, reason = "the operands of a call are bytes behind addresses")]

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::schema::latest_opset;
use oarlock_core::{Dtype, DtypeSet, Tensor};
use oarlock_host::BuiltInPlugin;
use oarlock_sdk::abi::AttributeKind;
use oarlock_sdk::{
    HostServices, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Plugin, PluginError, Result,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::shutdown::CallPermit;
use crate::error::OrRaise as _;
use crate::startup::host_memory_device;
use crate::startup::shared_runtime;
use crate::tensor::PyTensor;

/// Name of an operand, true if it is optional, and true if it is variadic.
type OperandDeclaration = (String, bool, bool);

struct PythonOp {
    domain: String,
    op: String,
    inputs: Vec<OperandDeclaration>,
    outputs: usize,
    deterministic: bool,
    call: Py<PyAny>,
}

/// The op being registered. The plugin's `describe` takes no argument, so it finds the op here.
static PENDING_OP: Mutex<Option<Arc<PythonOp>>> = Mutex::new(None);

/// Longest part of a Python exception that the kernel's error quotes.
const MAX_ERROR_LENGTH: usize = 100;

/// Registers a function as an op. `inputs` has the name of each input, whether it is optional, and whether it is variadic.
#[pyfunction]
pub(crate) fn _add_function(
    py: Python<'_>,
    domain: String,
    op: String,
    inputs: Vec<OperandDeclaration>,
    outputs: usize,
    deterministic: bool,
    call: Py<PyAny>,
) -> PyResult<()> {
    static ADDING_LOCK: Mutex<()> = Mutex::new(());
    if latest_opset(&domain).is_ok() {
        let message = format!("expected a domain of your own, found `{domain}`, whose ops have schemas");
        return Err(PyValueError::new_err(message));
    }
    let runtime = shared_runtime(py)?;
    let function = Arc::new(PythonOp { domain, op, inputs, outputs, deterministic, call });
    let asked_for = || PENDING_OP.lock().unwrap_or_else(PoisonError::into_inner);
    let add = || {
        let _adding = ADDING_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        *asked_for() = Some(function);
        let added = runtime.add_built_in(BuiltInPlugin {
            name: "a function of Python",
            query: oarlock_sdk::query!(describe_plugin),
        });
        *asked_for() = None;
        added
    };
    py.detach(add).or_raise().map(drop)
}

fn describe_plugin(_: &HostServices) -> Result<Plugin> {
    let asked_for = PENDING_OP.lock().unwrap_or_else(PoisonError::into_inner);
    let function =
        asked_for.clone().ok_or_else(|| PluginError::precondition_not_met("no function was asked for"))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name =
        format!("python.{}.{}", function.domain, function.op).chars().map(plain).take(64).collect::<String>();
    let all = Dtype::ALL.iter().filter(|dtype| **dtype != Dtype::String);
    let all = OperandSpec::new(all.fold(DtypeSet(0), |set, dtype| set.union(dtype.to_set())));
    let flag = |is_so: bool, flag: OperandFlags| if is_so { flag } else { OperandFlags(0) };
    let input = |(name, is_optional, is_variadic): &OperandDeclaration| {
        // Ops are never removed, so leaking the names wastes nothing.
        let named = all.with_name(String::leak(name.clone()));
        let bits =
            flag(*is_optional, OperandFlags::OPTIONAL).union(flag(*is_variadic, OperandFlags::VARIADIC));
        named.with_flags(bits)
    };
    let same_each_time = if function.deterministic { KernelFlags::DETERMINISTIC } else { KernelFlags(0) };
    let called = function.clone();
    let kernel = Kernel::new(function.op.clone(), move |_: &(), call| called.run_kernel(call))
        .with_domain(function.domain.clone())
        .with_device_type("cpu")
        .with_flags(KernelFlags::ALLOCATES_OUTPUTS)
        .with_flags(same_each_time)
        .with_inputs(function.inputs.iter().map(input))
        .with_outputs((0..function.outputs).map(|_| all));
    Ok(Plugin::for_kernels(name, env!("CARGO_PKG_VERSION")).with_kernels([kernel]))
}

impl PythonOp {
    fn run_kernel(&self, call: &KernelCall<'_>) -> Result<()> {
        // Work queued in a stream may hold the interpreter, while the function itself may use this stream.
        if call.stream().0 != 0 {
            return Err(PluginError::unimplemented(
                "expected an op that is a function of Python outside of streams, found it in one",
            ));
        }
        let _turn = CallPermit::acquire_permit()?;
        Python::attach(|py| {
            let result = self.call_python(py, call).map_err(|error| record_exception(py, error))?;
            let (expected, found) = (call.output_count(), result.len());
            if expected != found {
                let message = format!("expected {expected} outputs of the function, found {found}");
                return Err(PluginError::invalid_argument(message));
            }
            let outputs = (0..).zip(&result);
            outputs
                .into_iter()
                .try_for_each(|(index, (tensor, bytes))| write_output(call, index, tensor, bytes))
        })
    }

    /// Calls the function; returns its outputs in order.
    fn call_python(&self, py: Python<'_>, call: &KernelCall<'_>) -> PyResult<Vec<(Tensor, Vec<u8>)>> {
        let of_sdk = |error: PluginError| crate::error::Error::new_err(error.message().to_owned());
        let inputs =
            (0..call.input_count()).map(|index| match call.optional_input(index).map_err(of_sdk)? {
                Some(input) => Ok(Some(Bound::new(py, PyTensor::new(copy_operand(py, &input)?))?)),
                None => Ok(None),
            });
        let inputs = PyTuple::new(py, inputs.collect::<PyResult<Vec<_>>>()?)?;
        let attributes = read_attributes(py, call).map_err(of_sdk)?;
        let given = super::shutdown::call_function(self.call.bind(py), &inputs, &attributes)?;
        let given = match given.cast::<PyTuple>() {
            Ok(several) => several.to_list(),
            Err(_) => PyList::new(py, [given])?,
        };
        let asarray = py.import("oarlock")?.getattr("asarray")?;
        let host = host_memory_device(py)?;
        let read = |one: Bound<'_, PyAny>| {
            let tensor = asarray.call1((one,))?.cast::<PyTensor>()?.get().tensor();
            let tensor = tensor.to_device(&host).or_raise()?;
            let bytes = tensor.to_bytes().or_raise()?;
            Ok((tensor, bytes))
        };
        given.iter().map(read).collect()
    }
}

/// Remembers the exception and makes the kernel's error from it.
fn record_exception(py: Python<'_>, error: PyErr) -> PluginError {
    let text = oarlock_host::sanitize_text(&error.to_string());
    // The host would truncate a longer message.
    let message: String = format!("the function raised {text}").chars().take(MAX_ERROR_LENGTH).collect();
    crate::error::remember_exception(&message, error.clone_ref(py));
    PluginError::fatal(message)
}

/// Copies an operand into an array of its own.
fn copy_operand(py: Python<'_>, operand: &oarlock_sdk::TensorView<'_>) -> PyResult<Tensor> {
    let (block, offset) = operand.memory_location();
    let address = block.0.wrapping_add(offset) as *const u8;
    let size = usize::try_from(operand.size_in_bytes())?;
    let bytes = if size == 0 || address.is_null() {
        &[]
    } else {
        // SAFETY: this is a CPU kernel, where a block is an address. It requires contiguous operands, which have that many
        // bytes and are not written during the call.
        unsafe { std::slice::from_raw_parts(address, size) }
    };
    let dtype = Dtype::from_abi(operand.dtype());
    let dtype = dtype.ok_or_else(|| crate::error::Error::new_err("expected a dtype that is known"))?;
    Tensor::from_bytes(&host_memory_device(py)?, dtype, operand.dims(), bytes).or_raise()
}

/// Copies a returned array into an output.
fn write_output(call: &KernelCall<'_>, index: u32, tensor: &Tensor, bytes: &[u8]) -> Result<()> {
    call.allocate_output(index, tensor.dtype().to_abi(), tensor.dims())?;
    let output = call.output(index as usize)?;
    let (block, offset) = output.memory_location();
    let address = block.0.wrapping_add(offset) as *mut u8;
    if bytes.is_empty() {
        return Ok(());
    }
    if address.is_null() || output.size_in_bytes() < bytes.len() as u64 {
        return Err(PluginError::fatal(format!(
            "expected room for {} bytes of an output, found less",
            bytes.len()
        )));
    }
    // SAFETY: this is a CPU kernel, where a block is an address. The output has room for these bytes; it was just allocated
    // for this call and has no other user.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
    Ok(())
}

/// The attributes of a call as a dictionary.
fn read_attributes<'py>(py: Python<'py>, call: &KernelCall<'_>) -> Result<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let raw = call.as_raw();
    for index in 0..raw.attributes_count as usize {
        // SAFETY: the host guarantees that the list has `count` entries and that each attribute and its name live as long as
        // the call.
        let (name, kind) = unsafe {
            let attribute = &**raw.attributes.add(index);
            (attribute.name.text().unwrap_or_default(), attribute.kind)
        };
        let set = match kind {
            AttributeKind::INT => all.set_item(name, call.int_attribute(name)?),
            AttributeKind::FLOAT => all.set_item(name, call.float_attribute(name)?),
            AttributeKind::STRING => all.set_item(name, call.string_attribute(name)?),
            AttributeKind::INTS => all.set_item(name, call.ints_attribute(name)?),
            AttributeKind::FLOATS => all.set_item(name, call.floats_attribute(name)?),
            _ => {
                let found = kind.name().unwrap_or("something unknown");
                let message = format!("expected `{name}` to hold numbers or one text, found {found}");
                return Err(PluginError::unimplemented(message));
            }
        };
        set.map_err(|error| PluginError::fatal(error.to_string()))?;
    }
    Ok(all)
}
