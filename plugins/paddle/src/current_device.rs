//! The current device of a custom device, which our contract does not have.
//!
//! Each function of the interface takes a device, but many implementations ignore it and work on the current one. So the adapter
//! makes the device of a call current first. Whether a custom device has one current device for each thread or one for the
//! process is found out by a trial on two threads. If it is one for the process, calls take turns.

#![expect(unsafe_code, reason = "functions of the custom device are called")]

use core::ffi::c_int;
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_sdk::Result;

use crate::foreign_functions::ForeignFunctions;
use crate::status_report::{SUCCESS, check_status};

/// Each thread has a current device.
const OF_THREAD: u8 = 0;
/// The process has one current device.
const OF_PROCESS: u8 = 1;

thread_local! {
    /// The functions that were last told of a device on this thread, by their address, and the number of that device.
    static CURRENT_OF_THREAD: Cell<(usize, c_int)> = const { Cell::new((0, 0)) };
}

/// Keeps others from changing the current device, if they could.
pub(crate) struct CurrentDeviceGuard<'a>(Option<MutexGuard<'a, Option<c_int>>>);

impl CurrentDeviceGuard<'_> {
    /// Lets the calls of other threads pass, before a call that waits. Otherwise it could wait for one of them.
    pub(crate) fn allow_others(&mut self) {
        self.0 = None;
    }
}

/// Makes devices current.
pub(crate) struct CurrentDevice {
    scope: AtomicU8,
    of_process: Mutex<Option<c_int>>,
}

impl CurrentDevice {
    pub(crate) fn new() -> Self {
        Self { scope: AtomicU8::new(OF_THREAD), of_process: Mutex::new(None) }
    }

    /// Makes a device current until the guard is dropped.
    pub(crate) fn make_current(
        &self,
        functions: &ForeignFunctions,
        physical: c_int,
    ) -> Result<CurrentDeviceGuard<'_>> {
        let mut number = physical;
        // SAFETY: the function takes the address of a number, which lives through the call.
        let set = |number: &mut c_int| unsafe { (functions.set_device)(number) };
        if self.scope.load(Ordering::Acquire) == OF_PROCESS {
            let mut current = self.of_process.lock().unwrap_or_else(PoisonError::into_inner);
            if *current != Some(physical) {
                *current = None;
                check_status(set(&mut number), "set_device", u32::try_from(physical).ok(), false)?;
                *current = Some(physical);
            }
            return Ok(CurrentDeviceGuard(Some(current)));
        }
        let wanted = (core::ptr::from_ref(functions).addr(), physical);
        if CURRENT_OF_THREAD.get() != wanted {
            CURRENT_OF_THREAD.set((0, 0));
            check_status(set(&mut number), "set_device", u32::try_from(physical).ok(), false)?;
            CURRENT_OF_THREAD.set(wanted);
        }
        Ok(CurrentDeviceGuard(None))
    }

    /// Forgets which device is current on this thread and in the process, after a call that may have changed it.
    pub(crate) fn forget_current(&self) {
        CURRENT_OF_THREAD.set((0, 0));
        *self.of_process.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Finds out, with two devices, whether a thread changes the current device of another.
    pub(crate) fn find_scope(&self, functions: &ForeignFunctions, devices: [c_int; 2]) {
        let [here, elsewhere] = devices;
        let set = |mut number: c_int| {
            // SAFETY: the function takes the address of a number, which lives through the call.
            let status = unsafe { (functions.set_device)(&raw mut number) };
            status == SUCCESS
        };
        let is_set = set(here)
            && std::thread::scope(|scope| scope.spawn(|| set(elsewhere)).join().is_ok_and(|is_set| is_set));
        let mut found = elsewhere;
        // SAFETY: as above; the function writes the number.
        let is_known = is_set && unsafe { (functions.get_device)(&raw mut found) } == SUCCESS;
        // If in doubt, calls take turns.
        let scope = if is_known && found == here { OF_THREAD } else { OF_PROCESS };
        self.scope.store(scope, Ordering::Release);
        self.forget_current();
    }
}
