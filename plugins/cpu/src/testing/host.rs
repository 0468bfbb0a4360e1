//! A host of as little as kernels need: errors, the option `isa`, two threads and outputs that kernels allocate.

use std::ffi::c_void;
use std::sync::Mutex;

use oarlock_sdk::{Dtype, abi};

use super::array::Array;

/// The host's side of the plugin.
struct SmallHost {
    isa: String,
    /// The messages of errors; the number of one is its index + 1.
    errors: Mutex<Vec<String>>,
}

/// The outputs that a kernel allocated in one call, by index.
#[derive(Default)]
pub(super) struct Allocated(Mutex<Vec<(usize, Array)>>);

impl Allocated {
    pub(super) fn take(&self) -> Vec<(usize, Array)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// The plugin as a host has loaded it. Unloaded when dropped.
pub(super) struct Loaded {
    host: Box<SmallHost>,
    plugin: abi::Plugin,
}

impl Loaded {
    pub(super) fn new(isa: &str) -> Self {
        let host = Box::new(SmallHost { isa: isa.to_owned(), errors: Mutex::default() });
        let asking = abi::Host {
            contract_major: abi::CONTRACT_MAJOR,
            contract_minor: abi::CONTRACT_MINOR,
            sanitizer: abi::SANITIZER,
            context: (&raw const *host).cast_mut().cast(),
            services: &raw const SERVICES,
            ..abi::Host::EMPTY
        };
        let mut loaded = Self { host, plugin: abi::Plugin::EMPTY };
        // SAFETY: both structs are whole, and the services and their context outlive the plugin.
        let failure = unsafe { crate::QUERY(&raw const asking, &raw mut loaded.plugin) };
        loaded.result(failure).expect("a plugin that loads");
        loaded
    }

    /// The rows of the plugin.
    pub(super) fn kernels(&self) -> Vec<abi::Kernel> {
        // SAFETY: the table and the rows live until the plugin is unloaded.
        unsafe {
            let table = &*self.plugin.kernels;
            (0..table.kernels_count as usize).map(|index| **table.kernels.add(index)).collect()
        }
    }

    /// Success, or the message of an error.
    pub(super) fn result(&self, failure: abi::Error) -> Result<(), String> {
        if !failure.is_some() {
            return Ok(());
        }
        Err(self.host.errors.lock().unwrap()[failure.0 as usize - 1].clone())
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Some(unload) = self.plugin.unload {
            // SAFETY: nothing of the plugin is used after this.
            let _ = unsafe { unload(self.plugin.context) };
        }
    }
}

static SERVICES: abi::HostTable = abi::HostTable {
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
    let (host, message) = unsafe { (&*context.cast::<SmallHost>(), (*info).message.text()) };
    let mut errors = host.errors.lock().unwrap();
    errors.push(message.expect("a message in UTF-8").to_owned());
    abi::Error(errors.len() as u64)
}

unsafe extern "C" fn error_release(_: *mut c_void, _: abi::Error) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn option(context: *mut c_void, key: abi::Str, value: *mut abi::Str) -> abi::Error {
    // SAFETY: the context is the host's own, the key lives through the call, and the value is the plugin's to have written.
    unsafe {
        if key.text() == Some("isa") {
            *value = abi::Str::borrowed(&(*context.cast::<SmallHost>()).isa);
        }
    }
    abi::Error::NONE
}

const WORKERS: u32 = 2;

unsafe extern "C" fn worker_count(_: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the count is the plugin's to have written.
    unsafe { *count = WORKERS };
    abi::Error::NONE
}

/// Cuts the loop into pieces of just the grain, so that as many borders as may be are seen, on two threads.
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
                    // SAFETY: the plugin's task takes any pieces of 0..count with what it came with.
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
    dtype: Dtype,
    dims: *const i64,
    dims_count: u64,
) -> abi::Error {
    // SAFETY: the call is the one the host is making; its outputs may be written and its record is an `Allocated`.
    unsafe {
        let dims: &[i64] =
            if dims_count == 0 { &[] } else { std::slice::from_raw_parts(dims, dims_count as usize) };
        assert!(u64::from(index) < (*call).outputs_count, "an output that exists");
        let mut array = Array::blank(dtype, dims);
        let output = (*(*call).outputs.add(index as usize)).cast_mut();
        *output = array.describe_mut();
        (*(*call).host_call.cast::<Allocated>()).0.lock().unwrap().push((index as usize, array));
    }
    abi::Error::NONE
}
