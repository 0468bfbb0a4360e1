//! The primary context of a device, made current on a thread only as long as a call needs it.

#![expect(unsafe_code, reason = "contexts are C objects")]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::DriverError;
use cudarc::driver::result::primary_ctx;
use cudarc::driver::sys::{CUcontext, CUdevice, cuCtxPopCurrent_v2, cuCtxPushCurrent_v2};
use oarlock_sdk::{Error, Result};

use crate::error::{failed, is_sticky};

/// A handle of the driver. Any thread may use it.
#[derive(Clone, Copy)]
pub(crate) struct Handle<T>(pub(crate) T);

// SAFETY: the driver's functions may be called on any thread with any handle of a context that is current there.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Handle<T> {}

/// The primary context of a device, kept alive.
pub(crate) struct Context {
    device: CUdevice,
    raw: Handle<CUcontext>,
    is_lost: AtomicBool,
}

/// As long as this lives, the context is the current one of the thread. The one before comes back after it.
pub(crate) struct Entered<'a> {
    context: &'a Context,
    /// A context is current on one thread, so this stays there.
    thread: PhantomData<*const ()>,
}

impl Context {
    pub(crate) fn retain(device: CUdevice) -> Result<Self> {
        // SAFETY: the device is one the driver listed.
        let raw = unsafe { primary_ctx::retain(device) };
        let raw = raw.map_err(|error| failed("cuDevicePrimaryCtxRetain", error))?;
        Ok(Self { device, raw: Handle(raw), is_lost: AtomicBool::new(false) })
    }

    /// The handle, for functions that name a context.
    pub(crate) fn raw(&self) -> CUcontext {
        self.raw.0
    }

    /// Makes the context current for a call.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        if self.is_lost() {
            return Err(Error::unavailable(
                "expected a device that works, found one that an earlier error has broken; release the device and \
                 initialise it again, or restart the program",
            )
            .rule("R-6")
            .device_lost());
        }
        self.push()
    }

    /// Gives something back with a function of the driver. On a device that is lost there is nothing left to do.
    pub(crate) fn give_back(
        &self,
        function: &str,
        free: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<()> {
        let freed = self.enter().and_then(|entered| entered.check(function, free()));
        if self.is_lost() { Ok(()) } else { freed }
    }

    fn push(&self) -> Result<Entered<'_>> {
        // SAFETY: the context is kept alive by this.
        let code = unsafe { cuCtxPushCurrent_v2(self.raw.0) };
        self.check("cuCtxPushCurrent", code.result())?;
        Ok(Entered { context: self, thread: PhantomData })
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed)
    }

    /// What a function of the driver says; remembers when it says that the context is broken.
    #[track_caller]
    fn check<T>(&self, function: &str, result: Result<T, DriverError>) -> Result<T> {
        result.map_err(|error| {
            if is_sticky(error.0) {
                self.is_lost.store(true, Ordering::Relaxed);
            }
            failed(function, error)
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once. There is nobody to tell of a failure.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

impl Entered<'_> {
    /// What a function of the driver says that was called in this context.
    #[track_caller]
    pub(crate) fn check<T>(&self, function: &str, result: Result<T, DriverError>) -> Result<T> {
        self.context.check(function, result)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: the context was pushed on this thread, and whoever pushed another since has popped it.
        let _ = unsafe { cuCtxPopCurrent_v2(&raw mut popped) };
    }
}
