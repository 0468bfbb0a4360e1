//! Sessions: made, asked and run.

#![expect(unsafe_code, reason = "handles, options and a callback come from C as pointers")]

use core::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

use oarlock_core::{Device, Error, Result, Runtime};
use oarlock_engine::{Datum, Precision, Progress, Session, SessionOptions as EngineOptions};
use oarlock_host::did_you_mean;

use crate::device::DeviceHandle;
use crate::interface::{self, ProgressCallback, SessionOptions};
use crate::model::ModelHandle;
use crate::pointer::{give, held, list, look, options, place, places, texts};
use crate::runtime::RuntimeHandle;
use crate::slot::SlotHandle;
use crate::value::{ValueHandle, given};

pub(crate) use crate::pointer::free;

/// A session with its inputs and outputs as C reads them.
pub struct SessionHandle {
    session: Session,
    runtime: Arc<Runtime>,
    inputs: Vec<SlotHandle>,
    outputs: Vec<SlotHandle>,
}

/// One session serves many threads of a C program, so it must be fit for that.
const fn serves_many_threads<T: Send + Sync>() {}
const _: () = serves_many_threads::<SessionHandle>();
const _: () = serves_many_threads::<RuntimeHandle>();
const _: () = serves_many_threads::<ModelHandle>();
const _: () = serves_many_threads::<ValueHandle>();
const _: () = serves_many_threads::<crate::op::OpHandle>();
const _: () = serves_many_threads::<crate::error::ErrorHandle>();

/// What the program wants to be called with.
struct Context(*mut c_void);

// SAFETY: the program says that its function may be called from any thread, with its context.
unsafe impl Send for Context {}
// SAFETY: as above, from several at once.
unsafe impl Sync for Context {}

pub(crate) unsafe fn create(
    runtime: *const RuntimeHandle,
    model: *const ModelHandle,
    given: *const SessionOptions,
    session: *mut *mut SessionHandle,
) -> Result<()> {
    // SAFETY: as the caller says; zeroes are a `SessionOptions`.
    let (place, given) = unsafe { (place(session, "session")?, options(given, "options")?) };
    // SAFETY: as the caller says.
    let (runtime, model) = unsafe { (held(runtime, "runtime")?.runtime(), held(model, "model")?.model()) };
    // SAFETY: as the caller says.
    let devices = unsafe { devices(runtime, &given)? };
    let (precision, progress) = (precision(given.precision)?, progress(&given));
    let options = EngineOptions { devices, precision, progress, ..EngineOptions::default() };
    let session = Session::new(runtime.clone(), model, &options)?;
    *place = give(SessionHandle {
        runtime: runtime.clone(),
        inputs: session.inputs().iter().map(SlotHandle::new).collect(),
        outputs: session.outputs().iter().map(SlotHandle::new).collect(),
        session,
    });
    Ok(())
}

/// Precisions with their numbers in C.
pub(crate) fn precisions() -> Vec<(String, u32)> {
    (0..).zip(Precision::ALL).map(|(number, precision)| (precision.name().to_owned(), number)).collect()
}

fn precision(given: interface::Precision) -> Result<Precision> {
    let found = Precision::ALL.get(given.0 as usize).copied();
    found.ok_or_else(|| {
        Error::invalid_argument(format!("expected a value of `oarlock_precision`, found {}", given.0))
    })
}

unsafe fn devices(runtime: &Runtime, given: &SessionOptions) -> Result<Vec<Device>> {
    // SAFETY: as the caller says.
    let handles = unsafe { list(given.devices, given.device_count, "devices")? };
    let device = |handle: &*const DeviceHandle| {
        // SAFETY: as the caller says.
        let device = unsafe { held(*handle, "device")? }.device();
        if runtime.devices().iter().any(|known| known.is(device)) {
            return Ok(device.clone());
        }
        let error = Error::invalid_argument("expected a device of the same runtime, found one of another");
        Err(error.on_device(device))
    };
    handles.iter().map(device).collect()
}

fn progress(given: &SessionOptions) -> Progress {
    let ProgressCallback(Some(callback)) = given.progress else { return Progress::default() };
    let context = Context(given.progress_context);
    Progress::new(move |ready, all| {
        // The whole of it is what may go from thread to thread.
        let Context(context) = &context;
        // SAFETY: the program keeps function and context for as long as the session is there.
        unsafe { callback(*context, ready as u64, all as u64) };
    })
}

pub(crate) unsafe fn input_count(session: *const SessionHandle) -> u64 {
    // SAFETY: as the caller says.
    unsafe { look(session) }.map_or(0, |session| session.inputs.len() as u64)
}

pub(crate) unsafe fn input(session: *const SessionHandle, index: u64) -> *const SlotHandle {
    // SAFETY: as the caller says.
    unsafe { look(session) }.map_or(ptr::null(), |session| at(&session.inputs, index))
}

pub(crate) unsafe fn output_count(session: *const SessionHandle) -> u64 {
    // SAFETY: as the caller says.
    unsafe { look(session) }.map_or(0, |session| session.outputs.len() as u64)
}

pub(crate) unsafe fn output(session: *const SessionHandle, index: u64) -> *const SlotHandle {
    // SAFETY: as the caller says.
    unsafe { look(session) }.map_or(ptr::null(), |session| at(&session.outputs, index))
}

fn at(slots: &[SlotHandle], index: u64) -> *const SlotHandle {
    let slot = usize::try_from(index).ok().and_then(|index| slots.get(index));
    slot.map_or(ptr::null(), ptr::from_ref)
}

pub(crate) unsafe fn run(
    session: *const SessionHandle,
    inputs: *const *const ValueHandle,
    input_count: u64,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    let places = unsafe { places(outputs, output_count, "outputs")? };
    // SAFETY: as the caller says.
    let (session, inputs) = unsafe { (held(session, "session")?, given(inputs, input_count)?) };
    if places.len() != session.outputs.len() {
        let (expected, found) = (session.outputs.len(), places.len());
        return Err(Error::invalid_argument(format!("expected room for {expected} outputs, found {found}")));
    }
    let made = session.session.run(&inputs)?;
    let made = made.into_iter().map(|datum| ValueHandle::made(&session.runtime, datum));
    let made = made.collect::<Result<Vec<_>>>()?;
    places.iter_mut().zip(made).for_each(|(place, value)| *place = give(value));
    Ok(())
}

pub(crate) unsafe fn run_named(
    session: *const SessionHandle,
    input_names: *const *const c_char,
    inputs: *const *const ValueHandle,
    input_count: u64,
    output_names: *const *const c_char,
    outputs: *mut *mut ValueHandle,
    output_count: u64,
) -> Result<()> {
    // SAFETY: as the caller says.
    let places = unsafe { places(outputs, output_count, "outputs")? };
    // SAFETY: as the caller says.
    let (session, inputs) = unsafe { (held(session, "session")?, given(inputs, input_count)?) };
    // SAFETY: as the caller says.
    let (input_names, output_names) = unsafe {
        (texts(input_names, input_count, "input_names")?, texts(output_names, output_count, "output_names")?)
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
    let feeds: Vec<(&str, Datum)> = input_names.into_iter().zip(inputs).collect();
    let made = session.session.run_named(&feeds)?;
    let made: Vec<ValueHandle> = wanted
        .into_iter()
        .map(|index| ValueHandle::made(&session.runtime, made[index].clone()))
        .collect::<Result<_>>()?;
    places.iter_mut().zip(made).for_each(|(place, value)| *place = give(value));
    Ok(())
}
