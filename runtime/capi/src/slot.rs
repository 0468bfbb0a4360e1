//! Declared inputs and outputs of models, as C reads them.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::c_char;
use std::ffi::{CStr, CString};
use std::ptr;

use oarlock_engine::ModelOperand;
use oarlock_engine::graph::{DeclaredDimension, ValueType};

use crate::c_types::{Dtype, Kind};
use crate::pointer::{deref_nullable, to_c_string};
use crate::value_kind::ValueKind;

/// An input or output with its texts and sizes in C's representation.
pub struct SlotHandle {
    name: CString,
    description: CString,
    kind: Kind,
    dtype: Dtype,
    /// `None` if the rank is unknown.
    dims: Option<Vec<i64>>,
    symbols: Vec<Option<CString>>,
}

impl SlotHandle {
    pub(crate) fn new(slot: &ModelOperand) -> Self {
        let (kind, dtype, dimensions) = match &slot.declared {
            ValueType::Unknown => (ValueKind::Unknown, None, None),
            ValueType::Tensor { dtype, dims } => (ValueKind::Tensor, *dtype, dims.as_deref()),
            ValueType::Sequence(_) => (ValueKind::Sequence, None, None),
            ValueType::Optional(_) => (ValueKind::Optional, None, None),
            ValueType::Map(..) => (ValueKind::Map, None, None),
        };
        let size = |dimension: &DeclaredDimension| {
            if let DeclaredDimension::Known(size) = dimension { *size } else { -1 }
        };
        let symbol = |dimension: &DeclaredDimension| match dimension {
            DeclaredDimension::Symbol(name) => Some(to_c_string(name)),
            DeclaredDimension::Known(_) | DeclaredDimension::Unknown => None,
        };
        Self {
            name: to_c_string(&slot.name),
            description: to_c_string(&slot.to_string()),
            kind: kind.into(),
            dtype: Dtype(dtype.map_or(0, |dtype| dtype as u32)),
            dims: dimensions.map(|dimensions| dimensions.iter().map(size).collect()),
            symbols: dimensions.unwrap_or_default().iter().map(symbol).collect(),
        }
    }
}

pub(crate) unsafe fn slot_name(slot: *const SlotHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(slot) }.map_or(ptr::null(), |slot| slot.name.as_ptr())
}

pub(crate) unsafe fn slot_description(slot: *const SlotHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(slot) }.map_or(ptr::null(), |slot| slot.description.as_ptr())
}

pub(crate) unsafe fn slot_kind(slot: *const SlotHandle) -> Kind {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(slot) }.map_or(Kind(0), |slot| slot.kind)
}

pub(crate) unsafe fn slot_dtype(slot: *const SlotHandle) -> Dtype {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(slot) }.map_or(Dtype(0), |slot| slot.dtype)
}

pub(crate) unsafe fn slot_rank(slot: *const SlotHandle) -> i64 {
    // SAFETY: guaranteed by the caller.
    let slot = unsafe { deref_nullable(slot) };
    slot.and_then(|slot| slot.dims.as_ref()).map_or(-1, |dims| dims.len() as i64)
}

pub(crate) unsafe fn slot_dims(slot: *const SlotHandle) -> *const i64 {
    // SAFETY: guaranteed by the caller.
    let dims = unsafe { deref_nullable(slot) }.and_then(|slot| slot.dims.as_deref());
    dims.filter(|dims| !dims.is_empty()).map_or(ptr::null(), <[i64]>::as_ptr)
}

pub(crate) unsafe fn slot_symbol(slot: *const SlotHandle, dimension: u64) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let slot = unsafe { deref_nullable(slot) };
    let symbol = slot.and_then(|slot| slot.symbols.get(usize::try_from(dimension).ok()?)?.as_deref());
    symbol.map_or(ptr::null(), CStr::as_ptr)
}
