//! Creates, queries and runs sessions.

#![expect(unsafe_code, reason = "handles, options and a callback come from C as pointers")]

use core::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use oarlock_core::{Device, Error, Result, Runtime};
use oarlock_engine::{
    PrecisionMode, PrepareProgressListener, RuntimeValue, Session, SessionOptions as EngineOptions,
};
use oarlock_host::did_you_mean;

use crate::c_types::{self, ProgressCallback, SessionOptions};
use crate::device_handle::DeviceHandle;
use crate::model::ModelHandle;
use crate::pointer::{
    clear_output_handle, clear_output_handles, deref_nullable, deref_required, into_raw_handle, read_array,
    read_options, read_texts,
};
use crate::runtime::RuntimeHandle;
use crate::slot::SlotHandle;
use crate::value::{ValueHandle, read_inputs};

pub(crate) use crate::pointer::free_handle;

/// A session with its inputs and outputs in C's representation.
pub struct SessionHandle {
    session: Session,
    runtime: Arc<Runtime>,
    inputs: Vec<SlotHandle>,
    outputs: Vec<SlotHandle>,
}

/// C programs may share a session between threads, so this is checked at compile time.
const fn assert_thread_safe<T: Send + Sync>() {}
const _: () = assert_thread_safe::<SessionHandle>();
const _: () = assert_thread_safe::<RuntimeHandle>();
const _: () = assert_thread_safe::<ModelHandle>();
const _: () = assert_thread_safe::<ValueHandle>();
const _: () = assert_thread_safe::<crate::op::OpHandle>();
const _: () = assert_thread_safe::<crate::error::ErrorHandle>();

/// The context pointer of a callback.
struct CallbackContext(*mut c_void);

// SAFETY: the program promises that its function may be called from any thread, with its context.
unsafe impl Send for CallbackContext {}
// SAFETY: as above; it may also be called from several threads at once.
unsafe impl Sync for CallbackContext {}

pub(crate) unsafe fn create_session(
    runtime: *const RuntimeHandle,
    model: *const ModelHandle,
    given: *const SessionOptions,
    session: *mut *mut SessionHandle,
) -> Result<()> {
    // SAFETY: guaranteed by the caller; zeroes are a `SessionOptions`.
    let (place, given) =
        unsafe { (clear_output_handle(session, "session")?, read_options(given, "options")?) };
    // SAFETY: guaranteed by the caller.
    let (runtime, model) =
        unsafe { (deref_required(runtime, "runtime")?.runtime(), deref_required(model, "model")?.model()) };
    // SAFETY: guaranteed by the caller.
    let devices = unsafe { resolve_devices(runtime, &given)? };
    let (precision, progress) = (parse_precision(given.precision)?, progress_callback(&given));
    let options = EngineOptions { devices, precision, progress, ..EngineOptions::default() };
    let session = Session::new(runtime.clone(), model, &options)?;
    *place = into_raw_handle(SessionHandle {
        runtime: runtime.clone(),
        inputs: session.inputs().iter().map(SlotHandle::new).collect(),
        outputs: session.outputs().iter().map(SlotHandle::new).collect(),
        session,
    });
    Ok(())
}

fn parse_precision(given: c_types::Precision) -> Result<PrecisionMode> {
    let found = PrecisionMode::ALL.get(given.0 as usize).copied();
    found.ok_or_else(|| {
        Error::invalid_argument(format!("expected a value of `oarlock_precision`, found {}", given.0))
    })
}

unsafe fn resolve_devices(runtime: &Runtime, given: &SessionOptions) -> Result<Vec<Device>> {
    // SAFETY: guaranteed by the caller.
    let handles = unsafe { read_array(given.devices, given.device_count, "devices")? };
    let device = |handle: &*const DeviceHandle| {
        // SAFETY: guaranteed by the caller.
        let device = unsafe { deref_required(*handle, "device")? }.device();
        if runtime.devices().iter().any(|known| known.is_same_device(device)) {
            return Ok(device.clone());
        }
        let error = Error::invalid_argument("expected a device of the same runtime, found one of another");
        Err(error.with_device(device))
    };
    handles.iter().map(device).collect()
}

fn progress_callback(given: &SessionOptions) -> PrepareProgressListener {
    let ProgressCallback(Some(callback)) = given.progress else { return PrepareProgressListener::default() };
    let context = CallbackContext(given.progress_context);
    PrepareProgressListener::new(move |ready, all| {
        // Capture the whole wrapper, which is `Send`, and not just the pointer in it.
        let CallbackContext(context) = &context;
        // SAFETY: the program keeps function and context valid as long as the session lives.
        unsafe { callback(*context, ready as u64, all as u64) };
    })
}

pub(crate) unsafe fn input_count(session: *const SessionHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(session) }.map_or(0, |session| session.inputs.len() as u64)
}

pub(crate) unsafe fn session_input(session: *const SessionHandle, index: u64) -> *const SlotHandle {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(session) }.map_or(ptr::null(), |session| slot_at(&session.inputs, index))
}

pub(crate) unsafe fn output_count(session: *const SessionHandle) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(session) }.map_or(0, |session| session.outputs.len() as u64)
}

pub(crate) unsafe fn session_output(session: *const SessionHandle, index: u64) -> *const SlotHandle {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(session) }.map_or(ptr::null(), |session| slot_at(&session.outputs, index))
}

fn slot_at(slots: &[SlotHandle], index: u64) -> *const SlotHandle {
    let slot = usize::try_from(index).ok().and_then(|index| slots.get(index));
    slot.map_or(ptr::null(), ptr::from_ref)
}

pub(crate) unsafe fn run_session(
    session: *const SessionHandle,
    inputs: *const *const ValueHandle,
    input_count: u64,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let places = unsafe { clear_output_handles(outputs, output_count, "outputs")? };
    // SAFETY: guaranteed by the caller.
    let (session, inputs) =
        unsafe { (deref_required(session, "session")?, read_inputs(inputs, input_count)?) };
    if places.len() != session.outputs.len() {
        let (expected, found) = (session.outputs.len(), places.len());
        return Err(Error::invalid_argument(format!("expected room for {expected} outputs, found {found}")));
    }
    let made = session.session.run(&inputs)?;
    let made =
        made.into_iter().map(|runtime_value| ValueHandle::from_run_output(&session.runtime, runtime_value));
    let made = made.collect::<Result<Vec<_>>>()?;
    places.iter_mut().zip(made).for_each(|(place, value)| *place = into_raw_handle(value));
    Ok(())
}

pub(crate) unsafe fn run_session_named(
    session: *const SessionHandle,
    input_names: *const *const c_char,
    inputs: *const *const ValueHandle,
    input_count: u64,
    output_names: *const *const c_char,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let places = unsafe { clear_output_handles(outputs, output_count, "outputs")? };
    // SAFETY: guaranteed by the caller.
    let (session, inputs) =
        unsafe { (deref_required(session, "session")?, read_inputs(inputs, input_count)?) };
    // SAFETY: guaranteed by the caller.
    let (input_names, output_names) = unsafe {
        (
            read_texts(input_names, input_count, "input_names")?,
            read_texts(output_names, output_count, "output_names")?,
        )
    };
    let session_outputs = session.session.outputs();
    let position = |name: &&str| {
        let names = || session_outputs.iter().map(|slot| &*slot.name);
        names().position(|known| known == *name).ok_or_else(|| {
            let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            let nearest = did_you_mean(name, names());
            let all = all.join(", ");
            Error::not_found(format!("expected one of the outputs {all}, found `{name}`{nearest}"))
        })
    };
    let wanted: Vec<usize> = output_names.iter().map(position).collect::<Result<_>>()?;
    let feeds: Vec<(&str, RuntimeValue)> = input_names.into_iter().zip(inputs).collect();
    let made = session.session.run_named(&feeds)?;
    let made: Vec<ValueHandle> = wanted
        .into_iter()
        .map(|index| ValueHandle::from_run_output(&session.runtime, made[index].clone()))
        .collect::<Result<_>>()?;
    places.iter_mut().zip(made).for_each(|(place, value)| *place = into_raw_handle(value));
    Ok(())
}
