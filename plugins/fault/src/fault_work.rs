//! The work of the layer: each call is counted, and goes wrong if the script says so.

#![expect(unsafe_code, reason = "calls are forwarded with other words")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use oarlock_fault_script::{FaultAction, FaultPlan, ScriptedFault};
use oarlock_layer::{ContractSlot, LayerCall, LayerHost, LayerTarget, LayerWork, word_const_pointer};
use oarlock_sdk::{LogLevel, PluginError, Result, abi, copy_sized};

use crate::copy_words::{CorruptedCopy, corrupt_copy, flip_bit, shortened_words};
use crate::layer_script::parse_layer_script;
use crate::pending_faults::PendingFaults;

pub(crate) struct FaultWork {
    host: LayerHost,
    plan: Mutex<FaultPlan>,
    pending: Mutex<PendingFaults>,
    faults: Mutex<u64>,
    is_ending: Mutex<bool>,
    ending: Condvar,
}

/// What a call has to do, besides its work.
#[derive(Default)]
struct CallFaults {
    later: Option<ScriptedFault>,
    corrupts: bool,
    shortens: bool,
}

impl LayerWork for FaultWork {
    const NAME: &'static str = "fault";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Target = ();

    fn start_work(host: LayerHost) -> Result<Self> {
        let script = parse_layer_script(host.option("script").unwrap_or_default())
            .map_err(|error| PluginError::invalid_argument(error.to_string()))?;
        Ok(Self {
            host,
            plan: Mutex::new(FaultPlan::new(&script)),
            pending: Mutex::default(),
            faults: Mutex::new(0),
            is_ending: Mutex::new(false),
            ending: Condvar::new(),
        })
    }

    fn wrap_target(&self, _: LayerTarget<'_>) -> Result<()> {
        Ok(())
    }

    fn around_call(&self, (): &(), call: LayerCall<'_>) -> abi::Error {
        if call.slot() == ContractSlot::CoreFinalize {
            *lock(&self.is_ending) = true;
            self.ending.notify_all();
        }
        let actions = lock(&self.plan).on_call(call.description().name, device_of(&call));
        if actions.is_empty() {
            return self.finish_call(&call, call.forward());
        }
        *lock(&self.faults) += 1;
        match self.apply_actions(&call, actions) {
            Err(fault) => self.fault_error(fault),
            Ok(faults) => self.do_faulty_call(&call, faults),
        }
    }

    fn finish_work(&self, tell: &dyn Fn(LogLevel, &str)) {
        let faults = *lock(&self.faults);
        tell(
            LogLevel::INFO,
            &format!("{faults} {} as scripted", if faults == 1 { "fault" } else { "faults" }),
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device that a call is about; for a copy between two, the source, as the simulated device counts it.
fn device_of(call: &LayerCall<'_>) -> Option<u32> {
    let position = |name: &str| call.description().parameter_position(name);
    if let Some(device) = call.device() {
        return Some(device);
    }
    if let Some(at) = position("source_device") {
        return Some(call.words()[at] as u32);
    }
    // SAFETY: the caller passed the address of a call of the contract, or null.
    position("call").map(|at| unsafe {
        copy_sized(word_const_pointer::<abi::Call>(call.words()[at]), abi::Call::EMPTY).device
    })
}

/// True for the slots that free something, which a lost device still does.
fn frees(name: &str) -> bool {
    name.contains("deallocate") || name.ends_with("_destroy") || name == "release" || name == "device_deinit"
}

impl FaultWork {
    fn fault_error(&self, fault: ScriptedFault) -> abi::Error {
        self.host.report_error(&fault.kind.contract_error(fault.message))
    }

    /// Carries out what comes before the call. The error ends the call.
    fn apply_actions(
        &self,
        call: &LayerCall<'_>,
        actions: Vec<FaultAction>,
    ) -> Result<CallFaults, ScriptedFault> {
        let name = call.description().name;
        let mut faults = CallFaults::default();
        for action in actions {
            match action {
                FaultAction::Fail(fault) => return Err(fault),
                FaultAction::FailLater(fault) => faults.later = Some(fault),
                // There is no clock but the real one.
                FaultAction::Delay(time) | FaultAction::Sleep(time) => std::thread::sleep(time),
                FaultAction::Hang(limit) => self.hang_call(limit),
                FaultAction::Corrupt => faults.corrupts = true,
                FaultAction::Shorten => faults.shortens = true,
                FaultAction::Panic => panic!("`{name}` panicked as scripted"),
                FaultAction::Abort => std::process::abort(),
                FaultAction::Lose(_) if frees(name) => {}
                FaultAction::Lose(fault) => return Err(fault),
            }
        }
        Ok(faults)
    }

    /// Waits until the plugin is shut down, or at most this long.
    fn hang_call(&self, limit: Option<Duration>) {
        let waiting = |is_ending: &mut bool| !*is_ending;
        let guard = lock(&self.is_ending);
        match limit {
            None => drop(self.ending.wait_while(guard, waiting)),
            Some(limit) => drop(self.ending.wait_timeout_while(guard, limit, waiting)),
        }
    }

    fn do_faulty_call(&self, call: &LayerCall<'_>, faults: CallFaults) -> abi::Error {
        let stream = call.description().queue.map_or(0, |at| call.words()[at]);
        let failure = if faults.shortens {
            match shortened_words(call) {
                // SAFETY: the words are those of the call, with less to move.
                Some(words) => unsafe { call.forward_with(&words) },
                None => call.forward(),
            }
        } else if faults.corrupts {
            self.do_corrupted_call(call, stream)
        } else {
            call.forward()
        };
        let failure = self.finish_call(call, failure);
        match faults.later {
            Some(fault) if !failure.is_some() && stream == 0 => self.fault_error(fault),
            Some(fault) if !failure.is_some() => {
                lock(&self.pending).add_error(stream, fault);
                failure
            }
            _ => failure,
        }
    }

    fn do_corrupted_call(&self, call: &LayerCall<'_>, stream: u64) -> abi::Error {
        // SAFETY: the caller passed the words to this slot.
        match unsafe { corrupt_copy(call) } {
            None => call.forward(),
            Some(CorruptedCopy::OtherSource(words, source)) => {
                // SAFETY: the words are those of the call, with a source of the same size that is kept.
                let failure = unsafe { call.forward_with(&words) };
                lock(&self.pending).keep_source(source);
                failure
            }
            // SAFETY: the words are those of the call, with less to move.
            Some(CorruptedCopy::OneByteLess(words)) => unsafe { call.forward_with(&words) },
            Some(CorruptedCopy::FlippedTarget(address)) => {
                let failure = call.forward();
                if !failure.is_some() {
                    // SAFETY: the caller keeps the target until the copy is done.
                    unsafe {
                        if stream == 0 {
                            flip_bit(address);
                        } else {
                            lock(&self.pending).add_flip(stream, address);
                        }
                    }
                }
                failure
            }
        }
    }

    /// A wait for a stream that succeeds also waits for its faults, and reports them.
    fn finish_call(&self, call: &LayerCall<'_>, failure: abi::Error) -> abi::Error {
        let stream = match call.slot() {
            ContractSlot::AsyncStreamSynchronize => call.description().queue.map(|at| call.words()[at]),
            // Which streams an event comes behind is not known here.
            ContractSlot::AsyncEventSynchronize | ContractSlot::CoreDeviceSynchronize => None,
            _ => return failure,
        };
        let fault = lock(&self.pending).finish_streams(stream);
        match fault {
            Some(fault) if !failure.is_some() => self.fault_error(fault),
            _ => failure,
        }
    }
}
