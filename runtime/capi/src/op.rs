//! Single ops, called without a model.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::c_char;
use std::sync::Arc;

use oarlock_core::{Error, Invocation, Op, Result, Runtime, Tensor, schema};
use oarlock_engine::Datum;

use crate::attributes::AttributesHandle;
use crate::device::DeviceHandle;
use crate::pointer::{give, held, list, look, place, places, text, text_if_any};
use crate::runtime::RuntimeHandle;
use crate::value::ValueHandle;

pub(crate) use crate::pointer::free;

/// An op with the runtime that it was made for.
pub struct OpHandle {
    op: Op,
    runtime: Arc<Runtime>,
}

pub(crate) unsafe fn create(
    runtime: *const RuntimeHandle,
    domain: *const c_char,
    name: *const c_char,
    opset: u32,
    attributes: *const AttributesHandle,
    op: *mut *mut OpHandle,
) -> Result<()> {
    // SAFETY: as the caller says.
    let (place, runtime) = unsafe { (place(op, "op")?, held(runtime, "runtime")?.runtime()) };
    // SAFETY: as the caller says.
    let (domain, name, attributes) = unsafe {
        (text_if_any(domain, "domain")?.unwrap_or_default(), text(name, "name")?, look(attributes))
    };
    let attributes = attributes.map(|handle| handle.attributes().clone()).unwrap_or_default();
    let opset = if opset == 0 { schema::newest_opset(domain)? } else { opset };
    let op = Op::new(runtime, domain, name, opset, attributes)?;
    *place = give(OpHandle { op, runtime: runtime.clone() });
    Ok(())
}

pub(crate) unsafe fn run(
    op: *const OpHandle,
    device: *const DeviceHandle,
    inputs: *const *const ValueHandle,
    input_count: u64,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    let places = unsafe { places(outputs, output_count, "outputs")? };
    // SAFETY: as the caller says.
    let (OpHandle { op, runtime }, device) = unsafe { (held(op, "op")?, look(device)) };
    // SAFETY: as the caller says.
    let handles = unsafe { list(inputs, input_count, "inputs")? };
    let tensor = |handle: &*const ValueHandle| -> Result<Option<&Tensor>> {
        // SAFETY: as the caller says.
        unsafe { look(*handle) }.map(|value| value.datum().tensor()).transpose()
    };
    let inputs: Vec<Option<&Tensor>> = handles.iter().map(tensor).collect::<Result<_>>()?;
    let device = device.map(DeviceHandle::device);
    let call = Invocation { inputs: &inputs, outputs: places.len(), device, stream: None };
    let missing = || Error::fatal("expected an output, found none").of_op(op.name());
    let made = op
        .invoke(runtime, &call)?
        .into_iter()
        .map(|tensor| ValueHandle::made(runtime, Datum::Tensor(tensor.ok_or_else(missing)?)));
    let made = made.collect::<Result<Vec<_>>>()?;
    if made.len() != places.len() {
        return Err(missing());
    }
    places.iter_mut().zip(made).for_each(|(place, value)| *place = give(value));
    Ok(())
}
