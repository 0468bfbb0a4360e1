//! The primary context of a device, current on a thread only during a call.

#![expect(unsafe_code, reason = "contexts are C objects")]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::DriverError;
use cudarc::driver::result::primary_ctx;
use cudarc::driver::sys::{CUcontext, CUdevice, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2};
use oarlock_sdk::{PluginError, Result};

use crate::error::{driver_error, is_sticky_error};

/// A handle of the driver, usable on any thread.
#[derive(Clone, Copy)]
pub(crate) struct DriverHandle<T>(pub(crate) T);

// SAFETY: driver functions accept a handle on any thread where its context is current.
unsafe impl<T> Send for DriverHandle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for DriverHandle<T> {}

/// A retained primary context.
pub(crate) struct PrimaryContext {
    device: CUdevice,
    raw: DriverHandle<CUcontext>,
    is_lost: AtomicBool,
}

/// Keeps the context current on this thread; dropping it restores the previous one.
pub(crate) struct CurrentContext<'a> {
    context: &'a PrimaryContext,
    /// A context is current on one thread, so the guard must not be sent to another.
    thread: PhantomData<*const ()>,
}

impl PrimaryContext {
    pub(crate) fn retain_primary_context(device: CUdevice) -> Result<Self> {
        // SAFETY: the driver listed the device.
        let raw = unsafe { primary_ctx::retain(device) };
        let raw = raw.map_err(|error| driver_error("cuDevicePrimaryCtxRetain", error))?;
        Ok(Self { device, raw: DriverHandle(raw), is_lost: AtomicBool::new(false) })
    }

    /// The raw handle, for functions that name a context.
    pub(crate) fn as_raw(&self) -> CUcontext {
        self.raw.0
    }

    /// Makes the context current until the guard is dropped.
    pub(crate) fn enter_context(&self) -> Result<CurrentContext<'_>> {
        if self.is_lost() {
            return Err(PluginError::unavailable(
                "expected a device that works, found one that an earlier error has broken; release the device and \
                 initialize it again, or restart the program",
            )
            .with_rule("R-6")
            .as_device_lost());
        }
        self.push_context()
    }

    /// Frees a resource with a driver function. Succeeds without doing anything on a lost device.
    pub(crate) fn release_resource(
        &self,
        function: &str,
        free: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<()> {
        let freed = self.enter_context().and_then(|entered| entered.check_result(function, free()));
        if self.is_lost() { Ok(()) } else { freed }
    }

    fn push_context(&self) -> Result<CurrentContext<'_>> {
        // SAFETY: the context is retained as long as `self` lives.
        let code = unsafe { cuCtxPushCurrent_v2(self.raw.0) };
        self.check_result("cuCtxPushCurrent", code.result())?;
        Ok(CurrentContext { context: self, thread: PhantomData })
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// Converts a driver result, and remembers an error that breaks the context for good.
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
        // SAFETY: it was retained once. `drop` cannot report a failure.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

impl CurrentContext<'_> {
    /// Converts the result of a driver function called in this context.
    #[track_caller]
    pub(crate) fn check_result<T>(&self, function: &str, result: Result<T, DriverError>) -> Result<T> {
        self.context.check_result(function, result)
    }
}

impl Drop for CurrentContext<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context was pushed on this thread, and every context pushed since has been popped.
        let _ = unsafe { cuCtxPopCurrent_v2(&raw mut popped) };
    }
}
