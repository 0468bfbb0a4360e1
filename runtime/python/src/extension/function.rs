//! Functions of Python as ops: each is a kernel for the CPU of a plugin of its own, which is linked in and added when the
//! function is made an op.
//!
//! A call copies the inputs into arrays, so that the function may keep them, and the arrays that it gives into the outputs,
//! whose shapes nobody knows before.

#![expect(unsafe_code, reason = "the operands of a call are bytes behind addresses")]

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::schema::newest_opset;
use oarlock_core::{Dtype, DtypeSet, Tensor};
use oarlock_host::BuiltIn;
use oarlock_sdk::abi::AttributeKind;
use oarlock_sdk::{Call, Error, Host, Kernel, KernelFlags, Operand, OperandFlags, Plugin, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use super::exit::Turn;
use crate::array::{Array, host};
use crate::error::OrRaise as _;
use crate::start::runtime;

/// What an operand is called, and whether it may be left out or stands for all further ones.
type Told = (String, bool, bool);

/// A function that is an op.
struct Function {
    domain: String,
    op: String,
    inputs: Vec<Told>,
    outputs: usize,
    deterministic: bool,
    call: Py<PyAny>,
}

/// The function that is being made an op, for `describe`: who asks for a plugin cannot say which.
static ASKED_FOR: Mutex<Option<Arc<Function>>> = Mutex::new(None);

/// The characters of what a function raised that its error tells.
const LONGEST: usize = 100;

thread_local! {
    /// What a function raised last, and what the error says that the kernel made of it.
    static RAISED: RefCell<Option<(String, PyErr)>> = const { RefCell::new(None) };
}

/// Makes a function an op. `inputs` has the name of each, whether it may be left out, and whether it stands for all further
/// ones.
#[pyfunction]
pub(crate) fn _add_function(
    py: Python<'_>,
    domain: String,
    op: String,
    inputs: Vec<Told>,
    outputs: usize,
    deterministic: bool,
    call: Py<PyAny>,
) -> PyResult<()> {
    static ADDING: Mutex<()> = Mutex::new(());
    if newest_opset(&domain).is_ok() {
        let message = format!("expected a domain of your own, found `{domain}`, whose ops have schemas");
        return Err(PyValueError::new_err(message));
    }
    let runtime = runtime(py)?;
    let function = Arc::new(Function { domain, op, inputs, outputs, deterministic, call });
    let asked_for = || ASKED_FOR.lock().unwrap_or_else(PoisonError::into_inner);
    let add = || {
        let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        *asked_for() = Some(function);
        let added = runtime
            .add_built_in(BuiltIn { name: "a function of Python", query: oarlock_sdk::query!(describe) });
        *asked_for() = None;
        added
    };
    py.detach(add).or_raise().map(drop)
}

fn describe(_: &Host) -> Result<Plugin> {
    let asked_for = ASKED_FOR.lock().unwrap_or_else(PoisonError::into_inner);
    let function =
        asked_for.clone().ok_or_else(|| Error::precondition_not_met("no function was asked for"))?;
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name =
        format!("python.{}.{}", function.domain, function.op).chars().map(plain).take(64).collect::<String>();
    let all = Dtype::ALL.iter().filter(|dtype| **dtype != Dtype::String);
    let all = Operand::new(all.fold(DtypeSet(0), |set, dtype| set.union(dtype.to_set())));
    let flag = |is_so: bool, flag: OperandFlags| if is_so { flag } else { OperandFlags(0) };
    let input = |(name, is_optional, is_variadic): &Told| {
        // An op is never taken away again, so its names may stay as long as the program.
        let named = all.named(String::leak(name.clone()));
        let bits =
            flag(*is_optional, OperandFlags::OPTIONAL).union(flag(*is_variadic, OperandFlags::VARIADIC));
        named.flags(bits)
    };
    let same_each_time = if function.deterministic { KernelFlags::DETERMINISTIC } else { KernelFlags(0) };
    let called = function.clone();
    let kernel = Kernel::new(function.op.clone(), move |_: &(), call| called.run(call))
        .domain(function.domain.clone())
        .device_type("cpu")
        .flags(KernelFlags::ALLOCATES_OUTPUTS)
        .flags(same_each_time)
        .inputs(function.inputs.iter().map(input))
        .outputs((0..function.outputs).map(|_| all));
    Ok(Plugin::without_device(name, env!("CARGO_PKG_VERSION")).kernels([kernel]))
}

impl Function {
    fn run(&self, call: &Call<'_>) -> Result<()> {
        // What waits for its turn in a stream may hold the interpreter, and what the function does may be in this stream.
        if call.stream().0 != 0 {
            return Err(Error::unimplemented(
                "expected an op that is a function of Python outside of streams, found it in one",
            ));
        }
        let _turn = Turn::take()?;
        Python::attach(|py| {
            let made = self.call(py, call).map_err(|error| noted(py, error))?;
            let (expected, found) = (call.output_count(), made.len());
            if expected != found {
                let message = format!("expected {expected} outputs of the function, found {found}");
                return Err(Error::invalid_argument(message));
            }
            let outputs = (0..).zip(&made);
            outputs.into_iter().try_for_each(|(index, (tensor, bytes))| write(call, index, tensor, bytes))
        })
    }

    /// What the function gives for the operands of a call, in order.
    fn call(&self, py: Python<'_>, call: &Call<'_>) -> PyResult<Vec<(Tensor, Vec<u8>)>> {
        let of_sdk = |error: Error| crate::error::Error::new_err(error.message().to_owned());
        let inputs =
            (0..call.input_count()).map(|index| match call.optional_input(index).map_err(of_sdk)? {
                Some(input) => Ok(Some(Bound::new(py, Array::new(copied(py, &input)?))?)),
                None => Ok(None),
            });
        let inputs = PyTuple::new(py, inputs.collect::<PyResult<Vec<_>>>()?)?;
        let attributes = attributes(py, call).map_err(of_sdk)?;
        let given = super::exit::call(self.call.bind(py), &inputs, &attributes)?;
        let given = match given.cast::<PyTuple>() {
            Ok(several) => several.to_list(),
            Err(_) => PyList::new(py, [given])?,
        };
        let asarray = py.import("oarlock")?.getattr("asarray")?;
        let host = host(py)?;
        let read = |one: Bound<'_, PyAny>| {
            let tensor = asarray.call1((one,))?.cast::<Array>()?.get().tensor();
            let tensor = tensor.to(&host).or_raise()?;
            let bytes = tensor.to_bytes().or_raise()?;
            Ok((tensor, bytes))
        };
        given.iter().map(read).collect()
    }
}

/// The error of a kernel for what a function raised.
fn noted(py: Python<'_>, error: PyErr) -> Error {
    let text = oarlock_host::clean_text(&error.to_string());
    // A longer one would come back cut off.
    let message: String = format!("the function raised {text}").chars().take(LONGEST).collect();
    RAISED.with_borrow_mut(|raised| *raised = Some((message.clone(), error.clone_ref(py))));
    Error::fatal(message)
}

/// What a function raised, if it is what an error tells of.
pub(crate) fn raised(message: &str) -> Option<PyErr> {
    let is_it = |(noted, _): &mut (String, PyErr)| message.contains(noted.as_str());
    RAISED.with_borrow_mut(|raised| raised.take_if(is_it)).map(|(_, error)| error)
}

/// An operand as an array of its own.
fn copied(py: Python<'_>, operand: &oarlock_sdk::Tensor<'_>) -> PyResult<Tensor> {
    let (block, offset) = operand.place();
    let address = block.0.wrapping_add(offset) as *const u8;
    let size = usize::try_from(operand.size_in_bytes())?;
    let bytes = if size == 0 || address.is_null() {
        &[]
    } else {
        // SAFETY: the kernel is for the CPU, where a block is an address, and demands contiguous operands, whose elements
        // are so many bytes and are not written while the call runs.
        unsafe { std::slice::from_raw_parts(address, size) }
    };
    let dtype = Dtype::from_contract(operand.dtype());
    let dtype = dtype.ok_or_else(|| crate::error::Error::new_err("expected a dtype that is known"))?;
    Tensor::from_bytes(&host(py)?, dtype, operand.dims(), bytes).or_raise()
}

/// Puts what a function gave into an output.
fn write(call: &Call<'_>, index: u32, tensor: &Tensor, bytes: &[u8]) -> Result<()> {
    call.allocate_output(index, tensor.dtype().to_contract(), tensor.dims())?;
    let output = call.output(index as usize)?;
    let (block, offset) = output.place();
    let address = block.0.wrapping_add(offset) as *mut u8;
    if bytes.is_empty() {
        return Ok(());
    }
    if address.is_null() || output.size_in_bytes() < bytes.len() as u64 {
        return Err(Error::fatal(format!(
            "expected room for {} bytes of an output, found less",
            bytes.len()
        )));
    }
    // SAFETY: the kernel is for the CPU, where a block is an address; the output has room for these bytes, was made for this
    // call a moment ago and is nobody else's.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address, bytes.len()) };
    Ok(())
}

/// The attributes of a call by their names.
fn attributes<'py>(py: Python<'py>, call: &Call<'_>) -> Result<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let raw = call.raw();
    for index in 0..raw.attributes_count as usize {
        // SAFETY: the host has the list match its count, and each attribute and its name live as long as the call.
        let (name, kind) = unsafe {
            let attribute = &**raw.attributes.add(index);
            (attribute.name.text().unwrap_or_default(), attribute.kind)
        };
        let set = match kind {
            AttributeKind::INT => all.set_item(name, call.int(name)?),
            AttributeKind::FLOAT => all.set_item(name, call.float(name)?),
            AttributeKind::STRING => all.set_item(name, call.string(name)?),
            AttributeKind::INTS => all.set_item(name, call.ints(name)?),
            AttributeKind::FLOATS => all.set_item(name, call.floats(name)?),
            _ => {
                let found = kind.name().unwrap_or("something unknown");
                let message = format!("expected `{name}` to hold numbers or one text, found {found}");
                return Err(Error::unimplemented(message));
            }
        };
        set.map_err(|error| Error::fatal(error.to_string()))?;
    }
    Ok(all)
}
