//! Attributes of single ops, put together one by one.

#![expect(unsafe_code, reason = "handles and lists come from C as pointers")]

use core::ffi::c_char;

use oarlock_core::{Attribute, Attributes, Result};

use crate::pointer::{give, held, held_mut, list, place, text, texts};
use crate::value::ValueHandle;

pub(crate) use crate::pointer::free;

/// Attributes by name.
pub struct AttributesHandle(Attributes);

impl AttributesHandle {
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.0
    }
}

pub(crate) unsafe fn create(attributes: *mut *mut AttributesHandle) -> Result<()> {
    // SAFETY: as the caller says.
    *unsafe { place(attributes, "attributes")? } = give(AttributesHandle(Attributes::new()));
    Ok(())
}

unsafe fn set(attributes: *mut AttributesHandle, name: *const c_char, value: Attribute) -> Result<()> {
    // SAFETY: as the caller says.
    let (attributes, name) = unsafe { (held_mut(attributes, "attributes")?, text(name, "name")?) };
    attributes.0.set(name, value);
    Ok(())
}

pub(crate) unsafe fn set_int(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: i64,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Int(value)) }
}

pub(crate) unsafe fn set_float(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: f64,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Float(value)) }
}

pub(crate) unsafe fn set_string(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const c_char,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::String(text(value, "value")?.to_owned())) }
}

pub(crate) unsafe fn set_tensor(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const ValueHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let constant = unsafe { held(value, "value")? }.datum().tensor()?.to_constant()?;
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Tensor(constant)) }
}

pub(crate) unsafe fn set_ints(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const i64,
    count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Ints(list(values, count, "values")?.to_vec())) }
}

pub(crate) unsafe fn set_floats(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const f64,
    count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Floats(list(values, count, "values")?.to_vec())) }
}

pub(crate) unsafe fn set_strings(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const *const c_char,
    count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    let values = unsafe { texts(values, count, "values")? };
    let values = values.into_iter().map(str::to_owned).collect();
    // SAFETY: as the caller says.
    unsafe { set(attributes, name, Attribute::Strings(values)) }
}
