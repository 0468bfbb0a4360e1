//! The services that this host offers to plugins.

use std::ffi::c_void;
use std::sync::PoisonError;

use oarlock_abi as abi;

use crate::{ReportedError, SmallHost};

/// The number of threads that run a loop.
pub const WORKERS: u32 = 3;

/// Allocates an output of a kernel, by index, dtype and shape. A call refers to its allocator through `host_call`.
pub struct OutputAllocator<'a>(pub &'a dyn Fn(usize, abi::Dtype, &[i64]) -> abi::Tensor);

pub(crate) static SERVICES: abi::HostTable = abi::HostTable {
    error_create: Some(error_create),
    error_release: Some(error_release),
    option: Some(option),
    worker_count: Some(worker_count),
    parallel_for: Some(parallel_for),
    output_allocate: Some(output_allocate),
    ..abi::HostTable::EMPTY
};

unsafe extern "C" fn error_create(context: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    // SAFETY: the context is the host's own, and the plugin's struct and its text live through the call.
    let (host, code, message) =
        unsafe { (&*context.cast::<SmallHost>(), (*info).code, (*info).message.text()) };
    let failure = ReportedError { code, message: message.map(str::to_owned) };
    let mut failures = host.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let (last, known) = &mut *failures;
    *last += 1;
    known.insert(*last, failure);
    abi::Error(*last)
}

unsafe extern "C" fn error_release(context: *mut c_void, error: abi::Error) -> abi::Error {
    // SAFETY: the context is the host's own.
    let host = unsafe { &*context.cast::<SmallHost>() };
    host.failures.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&error.0);
    abi::Error::NONE
}

unsafe extern "C" fn option(context: *mut c_void, key: abi::Str, value: *mut abi::Str) -> abi::Error {
    // SAFETY: the context is the host's own, the key lives through the call, and the plugin may have the value written.
    unsafe {
        let host = &*context.cast::<SmallHost>();
        let found = key.text().and_then(|key| host.options.get(key));
        *value = abi::Str::borrowed(found.map_or("", String::as_str));
    }
    abi::Error::NONE
}

unsafe extern "C" fn worker_count(_: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the plugin may have the count written.
    unsafe { *count = WORKERS };
    abi::Error::NONE
}

/// Splits the loop into pieces of exactly the grain and runs them on all threads, so that tests see as many boundaries as
/// possible. The last piece includes the remainder.
unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    grain: u64,
    task: Option<abi::Task>,
    user: *mut c_void,
) -> abi::Error {
    let (task, grain, user) = (task.expect("a task"), grain.max(1), user as usize);
    let pieces = (count / grain).max(1);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || {
                for piece in (u64::from(worker)..pieces).step_by(WORKERS as usize) {
                    let end = if piece + 1 == pieces { count } else { (piece + 1) * grain };
                    // SAFETY: the plugin's task accepts any pieces of 0..count together with its `user` pointer.
                    unsafe { task(user as *mut c_void, piece * grain, end, worker) };
                }
            });
        }
    });
    abi::Error::NONE
}

unsafe extern "C" fn output_allocate(
    _: *mut c_void,
    call: *const abi::Call,
    index: u32,
    dtype: abi::Dtype,
    dims: *const i64,
    dims_count: u64,
) -> abi::Error {
    // SAFETY: the call is the one that the host is making; its outputs may be written, and its `host_call` is an allocator.
    unsafe {
        let dims: &[i64] =
            if dims_count == 0 { &[] } else { std::slice::from_raw_parts(dims, dims_count as usize) };
        assert!(u64::from(index) < (*call).outputs_count, "an output that exists");
        let outputs = &*(*call).host_call.cast::<OutputAllocator<'_>>();
        let output = (*(*call).outputs.add(index as usize)).cast_mut();
        *output = (outputs.0)(index as usize, dtype, dims);
    }
    abi::Error::NONE
}
