//! The engine: simulated devices behind a table of calls, each with its scripted faults.
//!
//! Every method stands for one slot of the device contract and counts as a call of that name for the script. Methods may be
//! called from any thread. Nothing waits for anything unless its documentation says so: a synchronous copy does not wait for the
//! streams, and a deallocation does not wait for work that still uses the memory. This device exists to find programs that rely
//! on more.

mod copies;
mod streams;

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::device::SimDevice;
use crate::error::SimError;
use crate::machine::{CopyFault, SimMachine};
use crate::memory::{DeviceAddress, MemoryStatistics};
use crate::scheduler::StreamScheduler;
use crate::script::FaultScript;
use oarlock_fault_script::FaultKind;
use oarlock_fault_script::{FaultAction, FaultPlan};

/// Simulated devices, their streams and their faults.
///
/// Dropping the engine ends its threads, and drops work that nobody waited for without running it.
pub struct SimEngine {
    script: FaultScript,
    machine: Arc<SimMachine>,
    scheduler: StreamScheduler,
    faults: Mutex<FaultPlan>,
    /// Set once the engine is shut down; hanging calls wait for it.
    is_shut_down: Mutex<bool>,
    shut_down: Condvar,
}

/// A call that may proceed.
struct AdmittedCall {
    device: Arc<SimDevice>,
    fault: CopyFault,
    later: Option<SimError>,
}

impl AdmittedCall {
    /// For calls that work synchronously: a failure scheduled for later is a failure now.
    fn into_immediate(self) -> Result<(Arc<SimDevice>, CopyFault), SimError> {
        self.later.map_or(Ok((self.device, self.fault)), Err)
    }
}

impl SimEngine {
    /// Creates the devices that a script describes.
    pub fn new(script: FaultScript) -> Result<Self, SimError> {
        Ok(Self {
            machine: Arc::new(SimMachine::new(&script)?),
            scheduler: StreamScheduler::new(script.mode, script.faults.seed, script.trace),
            faults: Mutex::new(FaultPlan::new(&script.faults)),
            is_shut_down: Mutex::new(false),
            shut_down: Condvar::new(),
            script,
        })
    }

    /// The script that the engine follows.
    pub fn fault_script(&self) -> &FaultScript {
        &self.script
    }

    /// Ends all threads, makes hanging calls return with an error, and refuses further work on streams. Work that has not run is
    /// dropped.
    pub fn shut_down(&self) {
        *self.is_shut_down.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shut_down.notify_all();
        self.scheduler.shut_down();
    }

    /// Counts a call that has no method and applies its faults, so that every slot can be scripted.
    pub fn count_call(&self, name: &str, device: Option<u32>) -> Result<(), SimError> {
        if let Some(id) = device {
            return self.admit_call(name, id)?.into_immediate().map(|_| ());
        }
        let (_, later) = self.apply_actions(name, self.record_call(name, None), None)?;
        later.map_or(Ok(()), Err)
    }

    /// Number of calls so far, by name.
    pub fn call_counts(&self) -> BTreeMap<String, u64> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).call_counts().clone()
    }

    /// Number of devices, or the number that the script claims.
    pub fn device_count(&self) -> Result<u32, SimError> {
        self.count_call("device_count", None)?;
        Ok(self.script.reported_device_count.unwrap_or(self.script.device_ids.len() as u32))
    }

    /// The ids of the devices, which scripts cannot falsify.
    pub fn device_list(&self) -> Result<Vec<u32>, SimError> {
        self.count_call("device_list", None)?;
        Ok(self.script.device_ids.clone())
    }

    /// The device as kernels see it. Not a call of the contract, so it is not counted.
    pub fn find_device(&self, id: u32) -> Result<Arc<SimDevice>, SimError> {
        self.machine.find_device(id).cloned()
    }

    /// Allocates device memory; the host must not dereference the address.
    pub fn memory_allocate(&self, device: u32, size: u64) -> Result<u64, SimError> {
        self.admit_call("memory_allocate", device)?.into_immediate()?.0.allocate_memory(size)
    }

    /// Frees device memory. Work that still uses it will fail. Also works on a lost device.
    pub fn memory_deallocate(&self, device: u32, address: u64, size: u64) -> Result<(), SimError> {
        let (device, _) = self.admit_to_free("memory_deallocate", device)?.into_immediate()?;
        self.machine.check_owner(&device, DeviceAddress::from(address))?;
        device.deallocate_memory(address, size)
    }

    /// Allocates pinned host memory, valid until it is freed or the engine is dropped.
    pub fn host_memory_allocate(&self, device: u32, size: u64) -> Result<*mut u8, SimError> {
        self.admit_call("host_memory_allocate", device)?.into_immediate()?;
        let size = usize::try_from(size)
            .map_err(|_| SimError::invalid_argument(format!("{size} bytes is too much")))?;
        self.machine.lock_pinned_memory().allocate_pages(size, self.script.poison)
    }

    /// Frees pinned host memory; accesses fault from then on. Also works on a lost device.
    pub fn host_memory_deallocate(&self, device: u32, address: *mut u8, size: u64) -> Result<(), SimError> {
        self.admit_to_free("host_memory_deallocate", device)?.into_immediate()?;
        self.machine.lock_pinned_memory().deallocate_pages(address.addr() as u64, size)
    }

    /// Reports memory use. A lying script claims more free memory than there is.
    pub fn memory_stats(&self, device: u32) -> Result<MemoryStatistics, SimError> {
        let mut statistics = self.admit_call("memory_stats", device)?.into_immediate()?.0.memory_statistics();
        if self.script.lying_statistics {
            statistics.free = statistics.total.saturating_mul(2).saturating_add(1);
        }
        Ok(statistics)
    }

    /// Applies a call's faults, then admits it to a device.
    fn admit_call(&self, call: &str, device: u32) -> Result<AdmittedCall, SimError> {
        let admitted = self.admit_to_free(call, device)?;
        admitted.device.check_alive()?;
        Ok(admitted)
    }

    /// Admits a call that frees something, which even a lost device serves.
    fn admit_to_free(&self, call: &str, device: u32) -> Result<AdmittedCall, SimError> {
        let device = self.find_device(device)?;
        let actions = self.record_call(call, Some(device.device_id()));
        let (fault, later) = self.apply_actions(call, actions, Some(&device))?;
        Ok(AdmittedCall { device, fault, later })
    }

    fn record_call(&self, call: &str, device: Option<u32>) -> Vec<FaultAction> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).on_call(call, device)
    }

    /// Applies the faults of a call. Returns those that the call itself must carry out: what it does to what it copies, and
    /// the error its work ends with. No lock is held here, since a fault may wait, panic or abort.
    fn apply_actions(
        &self,
        call: &str,
        actions: Vec<FaultAction>,
        device: Option<&SimDevice>,
    ) -> Result<(CopyFault, Option<SimError>), SimError> {
        let (mut fault, mut later) = (CopyFault::None, None);
        for action in actions {
            match action {
                FaultAction::Fail(fault) => return Err(fault.into()),
                FaultAction::FailLater(fault) => later = Some(fault.into()),
                FaultAction::Delay(time) => device.into_iter().for_each(|device| device.advance_clock(time)),
                FaultAction::Sleep(time) => std::thread::sleep(time),
                FaultAction::Hang(limit) => self.hang_call(call, limit)?,
                FaultAction::Corrupt => fault = CopyFault::Corrupt,
                FaultAction::Shorten => fault = CopyFault::Shorten,
                FaultAction::Panic => panic!("`{call}` panicked as scripted"),
                FaultAction::Abort => std::process::abort(),
                FaultAction::Lose(fault) => {
                    device.into_iter().for_each(|device| device.mark_lost(fault.clone().into()));
                }
            }
        }
        Ok((fault, later))
    }

    fn hang_call(&self, call: &str, limit: Option<Duration>) -> Result<(), SimError> {
        let waiting = |is_shut_down: &mut bool| !*is_shut_down;
        let guard = self.is_shut_down.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shut_down = match limit {
            None => *self.shut_down.wait_while(guard, waiting).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let result = self.shut_down.wait_timeout_while(guard, limit, waiting);
                *result.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if is_shut_down {
            let message = format!("`{call}` hung as scripted until the simulated device was shut down");
            return Err(SimError::new(FaultKind::Unavailable, message));
        }
        Ok(())
    }
}
