//! Values, with the queries that cannot fail.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

pub(crate) mod create_value;
pub(crate) mod read;

use core::ffi::c_char;
use std::ptr;
use std::sync::OnceLock;

use oarlock_core::{Dtype as CoreDtype, Error, Result, Runtime, Tensor, shape};
use oarlock_engine::RuntimeValue;

use crate::c_types::{Dtype, Kind};
use crate::pointer::{deref_nullable, read_array};
use crate::value_kind::ValueKind;

pub(crate) use crate::pointer::free_handle;

/// A value. Its tensors are contiguous, so that C can read them in place.
pub struct ValueHandle {
    runtime_value: RuntimeValue,
    /// Elements of a string tensor, read when C first asks for one.
    texts: OnceLock<Vec<String>>,
}

impl ValueHandle {
    /// All tensors in the value must be contiguous.
    fn from_contiguous(runtime_value: RuntimeValue) -> Self {
        Self { runtime_value, texts: OnceLock::new() }
    }

    /// Makes the outputs of a run contiguous.
    pub(crate) fn from_run_output(runtime: &Runtime, runtime_value: RuntimeValue) -> Result<Self> {
        make_contiguous(runtime, runtime_value).map(Self::from_contiguous)
    }

    pub(crate) fn runtime_value(&self) -> &RuntimeValue {
        &self.runtime_value
    }

    fn tensor(&self) -> Option<&Tensor> {
        if let RuntimeValue::Tensor(tensor) = &self.runtime_value { Some(tensor) } else { None }
    }
}

fn make_contiguous(runtime: &Runtime, runtime_value: RuntimeValue) -> Result<RuntimeValue> {
    match runtime_value {
        RuntimeValue::Tensor(tensor) if !tensor.is_contiguous() => {
            Ok(RuntimeValue::Tensor(runtime.make_contiguous(&tensor, tensor.device().default_stream()?)?))
        }
        RuntimeValue::Sequence(elements) => {
            let elements = elements.into_iter().map(|element| make_contiguous(runtime, element));
            Ok(RuntimeValue::Sequence(elements.collect::<Result<_>>()?))
        }
        other => Ok(other),
    }
}

/// Collects the inputs of a run.
///
/// # Safety
/// The pointer is NULL or points to `count` handles.
pub(crate) unsafe fn read_inputs(values: *const *const ValueHandle, count: u64) -> Result<Vec<RuntimeValue>> {
    // SAFETY: guaranteed by the caller.
    let handles = unsafe { read_array(values, count, "inputs")? };
    let runtime_value = |(index, handle): (usize, &*const ValueHandle)| {
        // SAFETY: guaranteed by the caller.
        let value = unsafe { deref_nullable(*handle) };
        let missing = || {
            Error::invalid_argument(format!("expected a value as input {index}, found NULL"))
                .with_advice("`oarlock_nothing_create` makes an optional that holds nothing")
        };
        value.map(|value| value.runtime_value.clone()).ok_or_else(missing)
    };
    handles.iter().enumerate().map(runtime_value).collect()
}

/// `None` if the number is no dtype.
fn core_dtype(Dtype(number): Dtype) -> Option<CoreDtype> {
    CoreDtype::ALL.iter().copied().find(|dtype| *dtype as u32 == number)
}

pub(crate) unsafe fn dtype_name(dtype: Dtype) -> *const c_char {
    /// Names as C strings, in the order of the dtypes.
    static DTYPE_NAMES: OnceLock<Vec<std::ffi::CString>> = OnceLock::new();
    let names = DTYPE_NAMES
        .get_or_init(|| CoreDtype::ALL.iter().map(|it| crate::pointer::to_c_string(it.name())).collect());
    let position = CoreDtype::ALL.iter().position(|known| *known as u32 == dtype.0);
    position.and_then(|position| names.get(position)).map_or(ptr::null(), |name| name.as_ptr())
}

pub(crate) unsafe fn dtype_bits(dtype: Dtype) -> u32 {
    core_dtype(dtype).filter(|dtype| *dtype != CoreDtype::String).map_or(0, CoreDtype::bits)
}

pub(crate) unsafe fn value_kind(value: *const ValueHandle) -> Kind {
    // SAFETY: guaranteed by the caller.
    match unsafe { deref_nullable(value) }.map(|value| &value.runtime_value) {
        None => ValueKind::Unknown.into(),
        Some(RuntimeValue::Tensor(_)) => ValueKind::Tensor.into(),
        Some(RuntimeValue::Sequence(_)) => ValueKind::Sequence.into(),
        Some(RuntimeValue::Nothing) => ValueKind::Nothing.into(),
    }
}

/// `None` for NULL and for a value that is no tensor.
unsafe fn tensor_of_value<'a>(value: *const ValueHandle) -> Option<&'a Tensor> {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(value) }.and_then(ValueHandle::tensor)
}

pub(crate) unsafe fn tensor_dtype(value: *const ValueHandle) -> Dtype {
    // SAFETY: guaranteed by the caller.
    Dtype(unsafe { tensor_of_value(value) }.map_or(0, |tensor| tensor.dtype() as u32))
}

pub(crate) unsafe fn tensor_rank(value: *const ValueHandle) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { tensor_of_value(value) }.map_or(-1, |tensor| tensor.dims().len() as i64)
}

pub(crate) unsafe fn tensor_dims(value: *const ValueHandle) -> *const i64 {
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { tensor_of_value(value) }.map(Tensor::dims);
    dims.filter(|dims| !dims.is_empty()).map_or(ptr::null(), <[i64]>::as_ptr)
}

pub(crate) unsafe fn tensor_count(value: *const ValueHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { tensor_of_value(value) }.map_or(0, Tensor::element_count)
}

pub(crate) unsafe fn tensor_size(value: *const ValueHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    let tensor = unsafe { tensor_of_value(value) }.filter(|tensor| tensor.dtype() != CoreDtype::String);
    let size = tensor.and_then(|tensor| shape::size_in_bytes(tensor.dtype(), tensor.dims()).ok());
    size.unwrap_or(0)
}

pub(crate) unsafe fn sequence_size(value: *const ValueHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    match unsafe { deref_nullable(value) }.map(|value| &value.runtime_value) {
        Some(RuntimeValue::Sequence(elements)) => elements.len() as u64,
        _ => 0,
    }
}
