//! The primary context of a device, made current on a thread only as long as a call needs it.

#![expect(unsafe_code, reason = "contexts are C objects")]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::DriverError;
use cudarc::driver::result::primary_ctx;
use cudarc::driver::sys::{CUcontext, CUdevice, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2};
use oarlock_sdk::{PluginError, Result};

use crate::error::{driver_error, is_sticky_error};

/// A handle of the driver. Any thread may use it.
#[derive(Clone, Copy)]
pub(crate) struct DriverHandle<T>(pub(crate) T);

// SAFETY: the driver's functions may be called on any thread with any handle of a context that is current there.
unsafe impl<T> Send for DriverHandle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for DriverHandle<T> {}

/// The primary context of a device, kept alive.
pub(crate) struct PrimaryContext {
    device: CUdevice,
    raw: DriverHandle<CUcontext>,
    is_lost: AtomicBool,
}

/// As long as this lives, the context is the current one of the thread. The one before comes back after it.
pub(crate) struct CurrentContext<'a> {
    context: &'a PrimaryContext,
    /// A context is current on one thread, so this stays there.
    thread: PhantomData<*const ()>,
}

impl PrimaryContext {
    pub(crate) fn retain_primary_context(device: CUdevice) -> Result<Self> {
        // SAFETY: the device is one the driver listed.
        let raw = unsafe { primary_ctx::retain(device) };
        let raw = raw.map_err(|error| driver_error("cuDevicePrimaryCtxRetain", error))?;
        Ok(Self { device, raw: DriverHandle(raw), is_lost: AtomicBool::new(false) })
    }

    /// The handle, for functions that name a context.
    pub(crate) fn as_raw(&self) -> CUcontext {
        self.raw.0
    }

    /// Makes the context current for a call.
    pub(crate) fn enter_context(&self) -> Result<CurrentContext<'_>> {
        if self.is_lost() {
            return Err(PluginError::unavailable(
                "expected a device that works, found one that an earlier error has broken; release the device and \
                 initialise it again, or restart the program",
            )
            .with_rule("R-6")
            .as_device_lost());
        }
        self.push_context()
    }

    /// Gives something back with a function of the driver. On a device that is lost there is nothing left to do.
    pub(crate) fn release_resource(
        &self,
        function: &str,
        free: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<()> {
        let freed = self.enter_context().and_then(|entered| entered.check_result(function, free()));
        if self.is_lost() { Ok(()) } else { freed }
    }

    fn push_context(&self) -> Result<CurrentContext<'_>> {
        // SAFETY: the context is kept alive by this.
        let code = unsafe { cuCtxPushCurrent_v2(self.raw.0) };
        self.check_result("cuCtxPushCurrent", code.result())?;
        Ok(CurrentContext { context: self, thread: PhantomData })
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// What a function of the driver says; remembers when it says that the context is broken.
    #[track_caller]
    fn check_result<T>(&self, function: &str, result: Result<T, DriverError>) -> Result<T> {
        result.map_err(|error| {
            if is_sticky_error(error.0) {
                self.is_lost.store(true, Ordering::Relaxed);
            }
            driver_error(function, error)
        })
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: it was retained once. There is nobody to tell of a failure.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

impl CurrentContext<'_> {
    /// What a function of the driver says that was called in this context.
    #[track_caller]
    pub(crate) fn check_result<T>(&self, function: &str, result: Result<T, DriverError>) -> Result<T> {
        self.context.check_result(function, result)
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context was pushed on this thread, and whoever pushed another since has popped it.
        let _ = unsafe { cuCtxPopCurrent_v2(&raw mut popped) };
    }
}
