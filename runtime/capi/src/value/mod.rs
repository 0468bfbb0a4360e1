//! Values: what C asks of them without being able to fail.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

pub(crate) mod make;
pub(crate) mod read;

use core::ffi::c_char;
use std::ptr;
use std::sync::OnceLock;

use oarlock_core::{Dtype as CoreDtype, Error, Result, Runtime, Tensor, shape};
use oarlock_engine::Datum;

use crate::interface::{Dtype, Kind};
use crate::pointer::{list, look};
use crate::slot::KindOf;

pub(crate) use crate::pointer::free;

/// A value. Elements of its tensors lie one after the other, so that C can read them where they are.
pub struct ValueHandle {
    datum: Datum,
    /// The elements of a tensor of strings, once somebody asked for one.
    texts: OnceLock<Vec<String>>,
}

impl ValueHandle {
    /// Of a value whose tensors are contiguous.
    fn of(datum: Datum) -> Self {
        Self { datum, texts: OnceLock::new() }
    }

    /// Of what a run made.
    pub(crate) fn made(runtime: &Runtime, datum: Datum) -> Result<Self> {
        contiguous(runtime, datum).map(Self::of)
    }

    pub(crate) fn datum(&self) -> &Datum {
        &self.datum
    }

    fn tensor(&self) -> Option<&Tensor> {
        if let Datum::Tensor(tensor) = &self.datum { Some(tensor) } else { None }
    }
}

fn contiguous(runtime: &Runtime, datum: Datum) -> Result<Datum> {
    match datum {
        Datum::Tensor(tensor) if !tensor.is_contiguous() => {
            Ok(Datum::Tensor(runtime.contiguous(&tensor, tensor.device().stream()?)?))
        }
        Datum::Sequence(elements) => {
            let elements = elements.into_iter().map(|element| contiguous(runtime, element));
            Ok(Datum::Sequence(elements.collect::<Result<_>>()?))
        }
        other => Ok(other),
    }
}

/// What is given to a run.
///
/// # Safety
/// The pointer is NULL or points to so many handles.
pub(crate) unsafe fn given(values: *const *const ValueHandle, count: u64) -> Result<Vec<Datum>> {
    // SAFETY: as the caller says.
    let handles = unsafe { list(values, count, "inputs")? };
    let datum = |(index, handle): (usize, &*const ValueHandle)| {
        // SAFETY: as the caller says.
        let value = unsafe { look(*handle) };
        let missing = || {
            Error::invalid_argument(format!("expected a value as input {index}, found NULL"))
                .hint("`oarlock_nothing_create` makes an optional that holds nothing")
        };
        value.map(|value| value.datum.clone()).ok_or_else(missing)
    };
    handles.iter().enumerate().map(datum).collect()
}

/// The dtype behind a number.
fn known(Dtype(number): Dtype) -> Option<CoreDtype> {
    CoreDtype::ALL.iter().copied().find(|dtype| *dtype as u32 == number)
}

pub(crate) unsafe fn dtype_name(dtype: Dtype) -> *const c_char {
    /// The names with the zeroes that C wants, in the order of the dtypes.
    static NAMES: OnceLock<Vec<std::ffi::CString>> = OnceLock::new();
    let names =
        NAMES.get_or_init(|| CoreDtype::ALL.iter().map(|it| crate::pointer::c_text(it.name())).collect());
    let position = CoreDtype::ALL.iter().position(|known| *known as u32 == dtype.0);
    position.and_then(|position| names.get(position)).map_or(ptr::null(), |name| name.as_ptr())
}

pub(crate) unsafe fn dtype_bits(dtype: Dtype) -> u32 {
    known(dtype).filter(|dtype| *dtype != CoreDtype::String).map_or(0, CoreDtype::bits)
}

pub(crate) unsafe fn kind(value: *const ValueHandle) -> Kind {
    // SAFETY: as the caller says.
    match unsafe { look(value) }.map(|value| &value.datum) {
        None => KindOf::Unknown.into(),
        Some(Datum::Tensor(_)) => KindOf::Tensor.into(),
        Some(Datum::Sequence(_)) => KindOf::Sequence.into(),
        Some(Datum::Nothing) => KindOf::Nothing.into(),
    }
}

/// The tensor that a value is.
unsafe fn tensor<'a>(value: *const ValueHandle) -> Option<&'a Tensor> {
    // SAFETY: as the caller says.
    unsafe { look(value) }.and_then(ValueHandle::tensor)
}

pub(crate) unsafe fn dtype(value: *const ValueHandle) -> Dtype {
    // SAFETY: as the caller says.
    Dtype(unsafe { tensor(value) }.map_or(0, |tensor| tensor.dtype() as u32))
}

pub(crate) unsafe fn rank(value: *const ValueHandle) -> i64 {
    // SAFETY: as the caller says.
    unsafe { tensor(value) }.map_or(-1, |tensor| tensor.dims().len() as i64)
}

pub(crate) unsafe fn dims(value: *const ValueHandle) -> *const i64 {
    // SAFETY: as the caller says.
    let dims = unsafe { tensor(value) }.map(Tensor::dims);
    dims.filter(|dims| !dims.is_empty()).map_or(ptr::null(), <[i64]>::as_ptr)
}

pub(crate) unsafe fn count(value: *const ValueHandle) -> u64 {
    // SAFETY: as the caller says.
    unsafe { tensor(value) }.map_or(0, Tensor::element_count)
}

pub(crate) unsafe fn size(value: *const ValueHandle) -> u64 {
    // SAFETY: as the caller says.
    let tensor = unsafe { tensor(value) }.filter(|tensor| tensor.dtype() != CoreDtype::String);
    let size = tensor.and_then(|tensor| shape::size_in_bytes(tensor.dtype(), tensor.dims()).ok());
    size.unwrap_or(0)
}

pub(crate) unsafe fn sequence_size(value: *const ValueHandle) -> u64 {
    // SAFETY: as the caller says.
    match unsafe { look(value) }.map(|value| &value.datum) {
        Some(Datum::Sequence(elements)) => elements.len() as u64,
        _ => 0,
    }
}
