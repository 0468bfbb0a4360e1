//! The simulated device as a plugin: the slots of the contract over the engine.

mod asynchronous;
mod core;
mod entry;
mod kept;
mod kernels;
mod lies;
mod opened;

use std::sync::{OnceLock, PoisonError, RwLock};

pub(crate) use entry::query;
use oarlock_sdk::{Code, Error, Host, Plugin, Result, Stream, SupportLevel, abi};

use self::kernels::Kernels;
use crate::engine::Engine;
use crate::error::{SimError, SimErrorKind};
use crate::script::Script;
use crate::stream::StreamId;

/// The option that holds the script.
const SCRIPT_OPTION: &str = "script";

/// The plugin: a script at first, an engine once the host has it initialised.
pub(crate) struct Sim {
    script: Script,
    host: Host,
    engine: OnceLock<Engine>,
    /// Freed behind the engine, whose streams may hold states of them.
    kernels: OnceLock<Kernels>,
    /// Each device's own queue, which the contract calls stream 0, by device.
    own_streams: RwLock<Vec<(u32, StreamId)>>,
}

impl Sim {
    fn engine(&self) -> Result<&Engine> {
        let missing =
            || Error::precondition_not_met("expected `initialize` to come first, found it not called");
        self.engine.get().ok_or_else(missing)
    }

    /// A stream of a call, and whether it is the device's own, in which calls finish before they return.
    fn stream(&self, device: u32, stream: Stream) -> Result<(StreamId, bool)> {
        if stream.0 != 0 {
            return Ok((StreamId(stream.0), false));
        }
        let own = self.own_streams.read().unwrap_or_else(PoisonError::into_inner);
        let found = own.iter().find(|(id, _)| *id == device).map(|(_, stream)| *stream);
        let found = found
            .ok_or_else(|| Error::not_found(format!("expected a device that was readied, found {device}")));
        found.map(|stream| (stream, true)).map_err(|error| error.rule("D-2"))
    }

    /// Puts work into a stream, and waits for it where the stream is the device's own.
    fn submit(
        &self,
        device: u32,
        stream: Stream,
        work: impl FnOnce(&Engine, StreamId) -> Result<(), SimError>,
    ) -> Result<()> {
        let engine = self.engine()?;
        let (stream, at_once) = self.stream(device, stream)?;
        told(work(engine, stream))?;
        if at_once { told(engine.stream_synchronize(device, stream)) } else { Ok(()) }
    }
}

/// The plugin that a script describes.
fn plugin(host: &Host) -> Result<Plugin<Sim>> {
    let script = script(host)?;
    let sim = Sim {
        script,
        host: *host,
        engine: OnceLock::new(),
        kernels: OnceLock::new(),
        own_streams: RwLock::default(),
    };
    Ok(Plugin::device("oarlock-sim", env!("CARGO_PKG_VERSION"), "sim", sim)
        .vendor("Oarlock")
        .visible_devices_variable("OARLOCK_SIM_VISIBLE_DEVICES")
        .support(SupportLevel::UNSPECIFIED, "simulated: there is no such chip, and its times mean nothing")
        .with_async())
}

/// Reads the script from the options, and checks that everything it names exists: a misspelt name would do nothing.
fn script(host: &Host) -> Result<Script> {
    let script = Script::parse(host.option(SCRIPT_OPTION).unwrap_or_default())
        .map_err(|error| Error::invalid_argument(error.to_string()))?;
    let slots = || abi::CoreTable::SLOTS.iter().chain(abi::AsyncTable::SLOTS).map(|(name, _)| *name);
    let known = |name: &str| slots().chain(["core", "async", kernels::CALL]).any(|known| known == name);
    match script.names().into_iter().find(|name| !known(name)) {
        Some(name) => Err(Error::invalid_argument(format!(
            "the sim script: expected a slot of `core` or `async`, one of these tables, or `{}`, found `{name}`",
            kernels::CALL
        ))),
        None => Ok(script),
    }
}

/// The engine's answer as the contract words it.
fn told<T>(answer: Result<T, SimError>) -> Result<T> {
    answer.map_err(|SimError { kind, message }| match kind {
        SimErrorKind::OutOfMemory => Error::resource_exhausted(message).rule("M-3"),
        SimErrorKind::InvalidArgument => Error::invalid_argument(message),
        SimErrorKind::UseAfterFree => Error::invalid_argument(message).rule("M-1"),
        SimErrorKind::DeviceLost => Error::unavailable(message).rule("R-6").device_lost(),
        SimErrorKind::NotFound => Error::not_found(message),
        SimErrorKind::Internal => Error::external(message),
        SimErrorKind::Unavailable => Error::unavailable(message),
        SimErrorKind::TimedOut => Error::execution_timeout(message),
        SimErrorKind::OutOfRange => Error::out_of_range(message),
        SimErrorKind::Unimplemented => Error::unimplemented(message),
    })
}

/// An error of a kernel as the engine keeps it until somebody waits.
fn simulated(error: &Error) -> SimError {
    let kind = match error.code() {
        Code::INVALID_ARGUMENT => SimErrorKind::InvalidArgument,
        Code::NOT_FOUND => SimErrorKind::NotFound,
        Code::OUT_OF_RANGE => SimErrorKind::OutOfRange,
        Code::RESOURCE_EXHAUSTED => SimErrorKind::OutOfMemory,
        Code::EXECUTION_TIMEOUT => SimErrorKind::TimedOut,
        Code::UNAVAILABLE => SimErrorKind::Unavailable,
        Code::UNIMPLEMENTED => SimErrorKind::Unimplemented,
        _ => SimErrorKind::Internal,
    };
    SimError::new(kind, error.message())
}
