//! Safe wrappers of the host's services.

#![expect(unsafe_code, reason = "the services are functions of a C table")]

use core::ffi::c_void;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use oarlock_abi as abi;
pub use oarlock_abi::LogLevel;

use crate::error::{PluginError, Result};
use crate::stop::{self, StopWatch};

/// The host that loaded the plugin. It is cheap to copy: a context and a table of functions.
///
/// If the host does not offer the log, the options or the thread pool, the methods use defaults instead of failing.
#[derive(Clone, Copy, Debug)]
pub struct HostServices {
    context: *mut c_void,
    services: abi::HostTable,
}

// SAFETY: every function of the host may be called on any thread (rule T-1).
unsafe impl Send for HostServices {}
// SAFETY: as above.
unsafe impl Sync for HostServices {}

impl HostServices {
    /// Copies the table of services. An older host has a shorter one; the slots that it lacks stay empty.
    ///
    /// # Safety
    ///
    /// `services` is null or points to a table as the contract describes it, which lives as long as the plugin.
    pub(crate) unsafe fn new(context: *mut c_void, services: *const abi::HostTable) -> Self {
        // SAFETY: the caller vouches for the table.
        let services = unsafe { crate::sized_struct::copy_sized(services, abi::HostTable::EMPTY) };
        Self { context, services }
    }

    /// Writes a message to the host's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        if let Some(log) = self.services.log {
            // SAFETY: the context is the host's own and the text lives through the call.
            let failure = unsafe { log(self.context, level, abi::Str::borrowed(message)) };
            self.release_error(failure);
        }
    }

    /// The user's value for an option of this plugin; `None` if it is unset or empty.
    pub fn option(&self, key: &str) -> Option<&str> {
        let mut value = abi::Str::EMPTY;
        let option = self.services.option?;
        // SAFETY: the context is the host's own; the key lives through the call and the value is ours to write.
        let failure = unsafe { option(self.context, abi::Str::borrowed(key), &raw mut value) };
        if failure.is_some() {
            self.release_error(failure);
            return None;
        }
        // SAFETY: the host keeps the text until the plugin is unloaded.
        unsafe { value.text() }.filter(|text| !text.is_empty())
    }

    /// The number of threads that [`HostServices::parallel_for`] may use; at least 1.
    pub fn worker_count(&self) -> usize {
        let mut count = 1;
        if let Some(worker_count) = self.services.worker_count {
            // SAFETY: the context is the host's own and the count is ours to write.
            let failure = unsafe { worker_count(self.context, &raw mut count) };
            self.release_error(failure);
        }
        count.max(1) as usize
    }

    /// Runs `body(begin, end)` on the host's threads over ranges of at least `grain` that cover `0..count`, and returns when
    /// all are done. A panic in `body` resumes on the calling thread.
    pub fn parallel_for<F: Fn(u64, u64) + Sync>(&self, count: u64, grain: u64, body: F) {
        let Some(parallel_for) = self.services.parallel_for.filter(|_| count > grain) else {
            return body(0, count);
        };
        let work = ParallelBody { body: &body, watch: stop::current_watch(), panic: Mutex::new(None) };
        let user = (&raw const work).cast_mut().cast();
        // SAFETY: `work` lives until the call returns, and the host returns when all pieces are done.
        let failure = unsafe { parallel_for(self.context, count, grain, Some(run_chunk::<F>), user) };
        let panic = work.panic.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        if failure.is_some() {
            self.release_error(failure);
            body(0, count);
        }
    }

    /// Sets dtype and shape of an output of a running call and asks the host for its memory.
    ///
    /// # Safety
    ///
    /// `call` is the call the kernel is running.
    pub(crate) unsafe fn allocate_output(
        &self,
        call: *const abi::Call,
        index: u32,
        dtype: abi::Dtype,
        dims: &[i64],
    ) -> Result<()> {
        let allocate = self
            .services
            .output_allocate
            .ok_or_else(|| PluginError::unavailable("this host cannot allocate outputs for kernels"))?;
        // SAFETY: the caller vouches for the call, and the dims live through it.
        let failure = unsafe { allocate(self.context, call, index, dtype, dims.as_ptr(), dims.len() as u64) };
        self.result_from_error(failure)
    }

    /// Passes a description on to the host. A failure is dropped: it must not fail the kernel.
    ///
    /// # Safety
    ///
    /// `call` is the call that the kernel is being prepared for.
    pub(crate) unsafe fn describe_kernel(&self, call: *const abi::Call, way: &str) {
        if let Some(describe) = self.services.kernel_describe {
            // SAFETY: the caller vouches for the call, and the text lives through it.
            self.release_error(unsafe { describe(self.context, call, abi::Str::borrowed(way)) });
        }
    }

    /// Asks the host for the elements of a constant.
    ///
    /// # Safety
    ///
    /// `call` is the call that the kernel is being prepared for.
    pub(crate) unsafe fn read_constant(&self, call: *const abi::Call, index: u32, keep: bool) -> Result<()> {
        let Some(read) = self.services.constant_read else { return Ok(()) };
        // SAFETY: the caller vouches for the call.
        self.result_from_error(unsafe { read(self.context, call, index, u32::from(keep)) })
    }

    /// True if the host may want work to stop.
    pub(crate) fn can_stop(&self) -> bool {
        self.services.stop_check.is_some()
    }

    /// Fails if the caller of the work on this thread wants it to stop.
    pub(crate) fn check_stop(&self) -> Result<()> {
        let Some(check) = self.services.stop_check else { return Ok(()) };
        // SAFETY: the context is the host's own.
        self.result_from_error(unsafe { check(self.context) })
    }

    /// Registers an error with the host. The returned handle is what a slot has to return.
    pub fn report_error(&self, error: &PluginError) -> abi::Error {
        let info = error.as_error_info();
        match self.services.error_create {
            // SAFETY: the context is the host's own and the text lives through the call.
            Some(create) => unsafe { create(self.context, &raw const info) },
            // A host without this service violates the contract, but it must still learn that the call failed.
            None => abi::Error(u64::MAX),
        }
    }

    /// Converts the return value of a contract function: a failure is read from the host, and its handle is released.
    pub fn result_from_error(&self, failure: abi::Error) -> Result<()> {
        if !failure.is_some() {
            return Ok(());
        }
        let mut info = abi::ErrorInfo::EMPTY;
        if let Some(read) = self.services.error_read {
            // SAFETY: the context is the host's own and the struct is ours to write.
            let unread = unsafe { read(self.context, failure, &raw mut info) };
            self.release_error(unread);
        }
        // SAFETY: the text of an error is valid until the error is released.
        let message = unsafe { info.message.text() }.unwrap_or("the host gave no reason").to_owned();
        self.release_error(failure);
        Err(PluginError::new(info.code, message))
    }

    fn release_error(&self, failure: abi::Error) {
        if let Some(release) = self.services.error_release.filter(|_| failure.is_some()) {
            // SAFETY: the context is the host's own. There is nothing useful to do if releasing an error fails.
            let _ = unsafe { release(self.context, failure) };
        }
    }
}

struct ParallelBody<'a, F> {
    body: &'a F,
    /// The watch of the call on the thread that started the loop, which waits until all pieces are done.
    watch: *const StopWatch<'static>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// Runs one range of a loop. A panic must not cross the boundary, so it is stored for the thread that started the loop.
unsafe extern "C" fn run_chunk<F: Fn(u64, u64) + Sync>(
    user: *mut c_void,
    begin: u64,
    end: u64,
    _worker: u32,
) {
    // SAFETY: `parallel_for` passes the address of a `ParallelBody<F>` that lives until every piece is done.
    let work = unsafe { &*user.cast::<ParallelBody<'_, F>>() };
    let run_piece = || {
        stop::end_if_stopped();
        (work.body)(begin, end);
    };
    let result = stop::with_watch(work.watch, || catch_unwind(AssertUnwindSafe(run_piece)));
    if let Err(panic) = result {
        *work.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
    }
}
