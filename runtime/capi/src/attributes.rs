//! Attributes of single ops, added one by one.

#![expect(unsafe_code, reason = "handles and lists come from C as pointers")]

use core::ffi::c_char;

use oarlock_core::{Attribute, Attributes, Result};

use crate::pointer::{
    clear_output_handle, deref_required, deref_required_mut, into_raw_handle, read_array, read_text,
    read_texts,
};
use crate::value::ValueHandle;

pub(crate) use crate::pointer::free_handle;

/// Attributes by name. This handle is the only mutable one.
pub struct AttributesHandle(Attributes);

impl AttributesHandle {
    pub(crate) fn attributes(&self) -> &Attributes {
        &self.0
    }
}

pub(crate) unsafe fn create_attributes(attributes: *mut *mut AttributesHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    *unsafe { clear_output_handle(attributes, "attributes")? } =
        into_raw_handle(AttributesHandle(Attributes::new()));
    Ok(())
}

unsafe fn set_attribute(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: Attribute,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (attributes, name) =
        unsafe { (deref_required_mut(attributes, "attributes")?, read_text(name, "name")?) };
    attributes.0.set(name, value);
    Ok(())
}

pub(crate) unsafe fn set_int(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: i64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::Int(value)) }
}

pub(crate) unsafe fn set_float(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: f64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::Float(value)) }
}

pub(crate) unsafe fn set_string(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const c_char,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::String(read_text(value, "value")?.to_owned())) }
}

pub(crate) unsafe fn set_tensor(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    value: *const ValueHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let constant = unsafe { deref_required(value, "value")? }.runtime_value().as_tensor()?.to_constant()?;
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::Tensor(constant)) }
}

pub(crate) unsafe fn set_ints(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const i64,
    count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::Ints(read_array(values, count, "values")?.to_vec())) }
}

pub(crate) unsafe fn set_floats(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const f64,
    count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        set_attribute(attributes, name, Attribute::Floats(read_array(values, count, "values")?.to_vec()))
    }
}

pub(crate) unsafe fn set_strings(
    attributes: *mut AttributesHandle,
    name: *const c_char,
    values: *const *const c_char,
    count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let values = unsafe { read_texts(values, count, "values")? };
    let values = values.into_iter().map(str::to_owned).collect();
    // SAFETY: guaranteed by the caller.
    unsafe { set_attribute(attributes, name, Attribute::Strings(values)) }
}
