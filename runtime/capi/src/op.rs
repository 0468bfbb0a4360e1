//! Single ops, called without a model.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::c_char;
use std::sync::Arc;

use oarlock_core::{Error, Op, OpInvocation, Result, Runtime, Tensor};
use oarlock_engine::RuntimeValue;

use crate::attributes::AttributesHandle;
use crate::device_handle::DeviceHandle;
use crate::pointer::{
    clear_output_handle, clear_output_handles, deref_nullable, deref_required, into_raw_handle, read_array,
    read_optional_text, read_text,
};
use crate::runtime::RuntimeHandle;
use crate::value::ValueHandle;

pub(crate) use crate::pointer::free_handle;

/// An op with the runtime it belongs to.
pub struct OpHandle {
    op: Op,
    runtime: Arc<Runtime>,
}

pub(crate) unsafe fn create_op(
    runtime: *const RuntimeHandle,
    domain: *const c_char,
    name: *const c_char,
    opset: u32,
    attributes: *const AttributesHandle,
    op: *mut *mut OpHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let (place, runtime) =
        unsafe { (clear_output_handle(op, "op")?, deref_required(runtime, "runtime")?.runtime()) };
    // SAFETY: guaranteed by the caller.
    let (domain, name, attributes) = unsafe {
        (
            read_optional_text(domain, "domain")?.unwrap_or_default(),
            read_text(name, "name")?,
            deref_nullable(attributes),
        )
    };
    let attributes = attributes.map(|handle| handle.attributes().clone()).unwrap_or_default();
    let opset = if opset == 0 { runtime.latest_opset(domain, name) } else { opset };
    let op = Op::new(runtime, domain, name, opset, attributes)?;
    *place = into_raw_handle(OpHandle { op, runtime: runtime.clone() });
    Ok(())
}

pub(crate) unsafe fn run_op(
    op: *const OpHandle,
    device: *const DeviceHandle,
    inputs: *const *const ValueHandle,
    input_count: u64,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let places = unsafe { clear_output_handles(outputs, output_count, "outputs")? };
    // SAFETY: guaranteed by the caller.
    let (OpHandle { op, runtime }, device) = unsafe { (deref_required(op, "op")?, deref_nullable(device)) };
    // SAFETY: guaranteed by the caller.
    let handles = unsafe { read_array(inputs, input_count, "inputs")? };
    let tensor = |handle: &*const ValueHandle| -> Result<Option<&Tensor>> {
        // SAFETY: guaranteed by the caller.
        unsafe { deref_nullable(*handle) }.map(|value| value.runtime_value().as_tensor()).transpose()
    };
    let inputs: Vec<Option<&Tensor>> = handles.iter().map(tensor).collect::<Result<_>>()?;
    let device = device.map(DeviceHandle::device);
    let call = OpInvocation { inputs: &inputs, outputs: places.len(), device, stream: None };
    let missing = || Error::fatal("expected an output, found none").with_op(op.name());
    let result = op.invoke(runtime, &call)?.into_iter().map(|tensor| {
        ValueHandle::from_run_output(runtime, RuntimeValue::Tensor(tensor.ok_or_else(missing)?))
    });
    let result = result.collect::<Result<Vec<_>>>()?;
    if result.len() != places.len() {
        return Err(missing());
    }
    places.iter_mut().zip(result).for_each(|(place, value)| *place = into_raw_handle(value));
    Ok(())
}
