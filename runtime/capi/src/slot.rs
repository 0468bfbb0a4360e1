//! Inputs and outputs of models, as C reads them.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::c_char;
use std::ffi::{CStr, CString};
use std::ptr;

use oarlock_engine::Slot;
use oarlock_engine::graph::{Dimension, ValueType};

use crate::interface::{Dtype, Kind};
use crate::pointer::{c_text, look};

/// What values may be, with their numbers in C.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum KindOf {
    Unknown = 0,
    Tensor = 1,
    Sequence = 2,
    Nothing = 3,
    Optional = 4,
    Map = 5,
}

impl From<KindOf> for Kind {
    fn from(kind: KindOf) -> Self {
        Self(kind as u32)
    }
}

pub(crate) fn kinds() -> Vec<(String, u32)> {
    let kinds = [
        ("unknown", KindOf::Unknown),
        ("tensor", KindOf::Tensor),
        ("sequence", KindOf::Sequence),
        ("nothing", KindOf::Nothing),
        ("optional", KindOf::Optional),
        ("map", KindOf::Map),
    ];
    kinds.map(|(name, kind)| (name.to_owned(), kind as u32)).into()
}

/// An input or output with its texts and sizes as C has them.
pub struct SlotHandle {
    name: CString,
    description: CString,
    kind: Kind,
    dtype: Dtype,
    /// None where not even their number is said.
    dims: Option<Vec<i64>>,
    symbols: Vec<Option<CString>>,
}

impl SlotHandle {
    pub(crate) fn new(slot: &Slot) -> Self {
        let (kind, dtype, dimensions) = match &slot.declared {
            ValueType::Unknown => (KindOf::Unknown, None, None),
            ValueType::Tensor { dtype, dims } => (KindOf::Tensor, *dtype, dims.as_deref()),
            ValueType::Sequence(_) => (KindOf::Sequence, None, None),
            ValueType::Optional(_) => (KindOf::Optional, None, None),
            ValueType::Map(..) => (KindOf::Map, None, None),
        };
        let size = |dimension: &Dimension| if let Dimension::Known(size) = dimension { *size } else { -1 };
        let symbol = |dimension: &Dimension| match dimension {
            Dimension::Symbol(name) => Some(c_text(name)),
            Dimension::Known(_) | Dimension::Unknown => None,
        };
        Self {
            name: c_text(&slot.name),
            description: c_text(&slot.to_string()),
            kind: kind.into(),
            dtype: Dtype(dtype.map_or(0, |dtype| dtype as u32)),
            dims: dimensions.map(|dimensions| dimensions.iter().map(size).collect()),
            symbols: dimensions.unwrap_or_default().iter().map(symbol).collect(),
        }
    }
}

pub(crate) unsafe fn name(slot: *const SlotHandle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { look(slot) }.map_or(ptr::null(), |slot| slot.name.as_ptr())
}

pub(crate) unsafe fn description(slot: *const SlotHandle) -> *const c_char {
    // SAFETY: as the caller says.
    unsafe { look(slot) }.map_or(ptr::null(), |slot| slot.description.as_ptr())
}

pub(crate) unsafe fn kind(slot: *const SlotHandle) -> Kind {
    // SAFETY: as the caller says.
    unsafe { look(slot) }.map_or(Kind(0), |slot| slot.kind)
}

pub(crate) unsafe fn dtype(slot: *const SlotHandle) -> Dtype {
    // SAFETY: as the caller says.
    unsafe { look(slot) }.map_or(Dtype(0), |slot| slot.dtype)
}

pub(crate) unsafe fn rank(slot: *const SlotHandle) -> i64 {
    // SAFETY: as the caller says.
    let slot = unsafe { look(slot) };
    slot.and_then(|slot| slot.dims.as_ref()).map_or(-1, |dims| dims.len() as i64)
}

pub(crate) unsafe fn dims(slot: *const SlotHandle) -> *const i64 {
    // SAFETY: as the caller says.
    let dims = unsafe { look(slot) }.and_then(|slot| slot.dims.as_deref());
    dims.filter(|dims| !dims.is_empty()).map_or(ptr::null(), <[i64]>::as_ptr)
}

pub(crate) unsafe fn symbol(slot: *const SlotHandle, dimension: u64) -> *const c_char {
    // SAFETY: as the caller says.
    let slot = unsafe { look(slot) };
    let symbol = slot.and_then(|slot| slot.symbols.get(usize::try_from(dimension).ok()?)?.as_deref());
    symbol.map_or(ptr::null(), CStr::as_ptr)
}
