//! The simulated device as a plugin: the slots of the contract on top of the engine.

mod asynchronous;
mod core;
mod cpu_kernels;
mod deferred_call;
mod entry;
mod faulty_tables;
mod staged_call;

use std::sync::{OnceLock, PoisonError, RwLock};

pub(crate) use entry::query_plugin;
use oarlock_sdk::{Code, HostServices, MemoryRange, Plugin, PluginError, Result, Stream, SupportLevel, abi};

use self::cpu_kernels::SimKernels;
use crate::engine::SimEngine;
use crate::error::SimError;
use crate::memory::DeviceAddress;
use crate::script::FaultScript;
use crate::stream::StreamId;
use oarlock_fault_script::FaultKind;

const SCRIPT_OPTION: &str = "script";

/// The plugin state: a script at first, and an engine once the host has initialized it.
pub(crate) struct SimPlugin {
    script: FaultScript,
    host: HostServices,
    engine: OnceLock<SimEngine>,
    /// Dropped after the engine, whose streams may hold kernel states.
    kernels: OnceLock<SimKernels>,
    /// Each device's default stream, which the contract calls stream 0, by device.
    own_streams: RwLock<Vec<(u32, StreamId)>>,
}

impl SimPlugin {
    fn started_engine(&self) -> Result<&SimEngine> {
        let missing =
            || PluginError::precondition_not_met("expected `initialize` to come first, found it not called");
        self.engine.get().ok_or_else(missing)
    }

    /// Resolves a stream handle. The flag is true for the default stream, on which calls finish before they return.
    fn resolve_stream(&self, device: u32, stream: Stream) -> Result<(StreamId, bool)> {
        if stream.0 != 0 {
            return Ok((StreamId(stream.0), false));
        }
        let own = self.own_streams.read().unwrap_or_else(PoisonError::into_inner);
        let found = own.iter().find(|(id, _)| *id == device).map(|(_, stream)| *stream);
        let found = found.ok_or_else(|| {
            PluginError::not_found(format!("expected a device that was readied, found {device}"))
        });
        found.map(|stream| (stream, true)).map_err(|error| error.with_rule("D-2"))
    }

    /// Enqueues work on a stream, and waits for it if that is the default stream.
    fn submit_work(
        &self,
        device: u32,
        stream: Stream,
        work: impl FnOnce(&SimEngine, StreamId) -> Result<(), SimError>,
    ) -> Result<()> {
        let engine = self.started_engine()?;
        let (stream, at_once) = self.resolve_stream(device, stream)?;
        contract_result(work(engine, stream))?;
        if at_once { contract_result(engine.stream_synchronize(device, stream)) } else { Ok(()) }
    }
}

/// Builds the plugin that a script describes.
fn plugin(host: &HostServices) -> Result<Plugin<SimPlugin>> {
    let script = read_script(host)?;
    let sim = SimPlugin {
        script,
        host: *host,
        engine: OnceLock::new(),
        kernels: OnceLock::new(),
        own_streams: RwLock::default(),
    };
    Ok(Plugin::for_device("oarlock-sim", env!("CARGO_PKG_VERSION"), "sim", sim)
        .with_vendor("Oarlock")
        .with_visibility_variable("OARLOCK_SIM_VISIBLE_DEVICES")
        .with_support(
            SupportLevel::UNSPECIFIED,
            "simulated: there is no such chip, and its times mean nothing",
        )
        .with_async())
}

/// Reads the script from the options and checks that everything it names exists: a misspelled name would do nothing.
fn read_script(host: &HostServices) -> Result<FaultScript> {
    let script = FaultScript::parse_script(host.option(SCRIPT_OPTION).unwrap_or_default())
        .map_err(|error| PluginError::invalid_argument(error.to_string()))?;
    let slots = || abi::CoreTable::SLOTS.iter().chain(abi::AsyncTable::SLOTS).map(|(name, _)| *name);
    let known =
        |name: &str| slots().chain(["core", "async", cpu_kernels::RUN_CALL]).any(|known| known == name);
    match script.referenced_names().into_iter().find(|name| !known(name)) {
        Some(name) => Err(PluginError::invalid_argument(format!(
            "the sim script: expected a slot of `core` or `async`, one of these tables, or `{}`, found `{name}`",
            cpu_kernels::RUN_CALL
        ))),
        None => Ok(script),
    }
}

/// Converts an engine error into an error of the contract.
fn contract_result<T>(answer: Result<T, SimError>) -> Result<T> {
    answer.map_err(|SimError { kind, message }| kind.contract_error(message))
}

/// Converts a kernel's error into one that the engine keeps until someone waits for the stream.
fn to_sim_error(error: &PluginError) -> SimError {
    let kind = match error.code() {
        Code::INVALID_ARGUMENT => FaultKind::InvalidArgument,
        Code::NOT_FOUND => FaultKind::NotFound,
        Code::OUT_OF_RANGE => FaultKind::OutOfRange,
        Code::RESOURCE_EXHAUSTED => FaultKind::OutOfMemory,
        Code::EXECUTION_TIMEOUT => FaultKind::TimedOut,
        Code::UNAVAILABLE => FaultKind::Unavailable,
        Code::UNIMPLEMENTED => FaultKind::Unimplemented,
        _ => FaultKind::Internal,
    };
    SimError::new(kind, error.message())
}

/// Where a range begins, as the engine addresses memory.
fn device_address(range: MemoryRange) -> DeviceAddress {
    DeviceAddress::new(range.memory.0, range.offset)
}
