//! A host of as little as the rows need: errors, the option `library` and three threads.

use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use oarlock_sdk::{Element, abi};

/// The host's side of the plugin.
struct SmallHost {
    library: String,
    /// The messages of errors; the number of one is its index + 1.
    errors: Mutex<Vec<String>>,
}

/// A plugin as a host has loaded it. Unloaded when dropped.
pub(super) struct Loaded {
    host: Box<SmallHost>,
    plugin: abi::Plugin,
}

// SAFETY: what the plugin handed out does not change, and its functions may be called on any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// An operand of a call.
pub(super) struct Given<'a, T> {
    pub(super) dims: &'a [i64],
    pub(super) elements: &'a [T],
}

/// What lies around an output, so that a write beside it is seen.
const GUARD: usize = 9;

impl Loaded {
    /// Loads a plugin, which gets the option `library`, or gives the message with which it refuses.
    pub(super) fn new(query: abi::PluginQuery, library: Option<&str>) -> Result<Self, String> {
        let library = library.unwrap_or_default().to_owned();
        let host = Box::new(SmallHost { library, errors: Mutex::default() });
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
        let failure = unsafe { query(&raw const asking, &raw mut loaded.plugin) };
        loaded.result(failure).map(|()| loaded)
    }

    /// Whether the row of an op takes a call, or its reason not to.
    pub(super) fn supports<T: Element>(
        &self,
        op: &str,
        attributes: &[(&str, f64)],
        inputs: &[Option<Given<'_, T>>],
        output: &[i64],
    ) -> Result<(), String> {
        let row = self.row(op);
        let supports = row.supports.expect("a row that is asked");
        // SAFETY: the call is whole, and the context is the row's.
        self.call(attributes, inputs, output, &mut [], |call| unsafe { supports(row.context, call) })
    }

    /// Runs the row of an op.
    pub(super) fn run<T: Element + From<f32> + PartialEq>(
        &self,
        op: &str,
        attributes: &[(&str, f64)],
        inputs: &[Option<Given<'_, T>>],
        output: &[i64],
    ) -> Result<Vec<T>, String> {
        self.supports(op, attributes, inputs, output)?;
        let row = self.row(op);
        let count = output.iter().product::<i64>() as usize;
        let guard = T::from(12345.0);
        let mut memory = vec![guard; GUARD + count + GUARD];
        memory[GUARD..GUARD + count].fill(T::from(f32::NAN));
        let (prepare, run) = (row.prepare.expect("`prepare`"), row.run.expect("`run`"));
        let release = row.release.expect("`release`");
        let inside = &mut memory[GUARD..GUARD + count];
        self.call(attributes, inputs, output, inside, |call| {
            let mut state = ptr::null_mut();
            // SAFETY: as above; the state is the one that was just made, and it is released once.
            unsafe {
                let failure = prepare(row.context, call, &raw mut state);
                assert!(!failure.is_some(), "a row that can be prepared");
                let failure = run(row.context, state, call);
                assert!(!release(row.context, state).is_some(), "a state that can be released");
                failure
            }
        })?;
        let around = memory[..GUARD].iter().chain(&memory[GUARD + count..]);
        assert!(around.copied().all(|number| number == guard), "the row wrote outside of the output");
        Ok(memory[GUARD..GUARD + count].to_vec())
    }

    fn call<T: Element>(
        &self,
        attributes: &[(&str, f64)],
        inputs: &[Option<Given<'_, T>>],
        output: &[i64],
        memory: &mut [T],
        body: impl FnOnce(*const abi::Call) -> abi::Error,
    ) -> Result<(), String> {
        let inputs: Vec<abi::Tensor> = inputs
            .iter()
            .map(|input| match input {
                Some(given) => tensor::<T>(given.dims, given.elements.as_ptr(), given.elements.len()),
                None => abi::Tensor { bits: abi::TensorFlags::ABSENT, ..abi::Tensor::EMPTY },
            })
            .collect();
        let output = tensor::<T>(output, memory.as_mut_ptr(), memory.len());
        let whole: Vec<i64> = attributes.iter().map(|(_, value)| *value as i64).collect();
        let attributes: Vec<abi::Attribute> = attributes
            .iter()
            .zip(&whole)
            .map(|((name, value), whole)| {
                let empty = abi::Attribute { name: abi::Str::borrowed(name), ..abi::Attribute::EMPTY };
                if name.starts_with("trans") {
                    abi::Attribute { kind: abi::AttributeKind::INT, ints: whole, ints_count: 1, ..empty }
                } else {
                    abi::Attribute {
                        kind: abi::AttributeKind::FLOAT,
                        floats: value,
                        floats_count: 1,
                        ..empty
                    }
                }
            })
            .collect();
        let inputs: Vec<*const abi::Tensor> = inputs.iter().map(|input| &raw const *input).collect();
        let attributes: Vec<*const abi::Attribute> =
            attributes.iter().map(|attribute| &raw const *attribute).collect();
        let outputs = [&raw const output];
        let call = abi::Call {
            inputs: inputs.as_ptr(),
            inputs_count: inputs.len() as u64,
            outputs: outputs.as_ptr(),
            outputs_count: 1,
            attributes: attributes.as_ptr(),
            attributes_count: attributes.len() as u64,
            ..abi::Call::EMPTY
        };
        self.result(body(&raw const call))
    }

    fn row(&self, op: &str) -> abi::Kernel {
        // SAFETY: the table and the rows live until the plugin is unloaded.
        unsafe {
            let table = &*self.plugin.kernels;
            let mut rows = (0..table.kernels_count as usize).map(|index| **table.kernels.add(index));
            rows.find(|row| row.op.text() == Some(op)).expect("a row of the op")
        }
    }

    /// Success, or the message of an error.
    fn result(&self, failure: abi::Error) -> Result<(), String> {
        if !failure.is_some() {
            return Ok(());
        }
        Err(self.host.errors.lock().expect("the errors")[failure.0 as usize - 1].clone())
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

fn tensor<T: Element>(dims: &[i64], address: *const T, count: usize) -> abi::Tensor {
    abi::Tensor {
        dtype: T::DTYPE,
        dims: dims.as_ptr(),
        dims_count: dims.len() as u64,
        block: abi::Memory(address as u64),
        size_in_bytes: (count * size_of::<T>()) as u64,
        ..abi::Tensor::EMPTY
    }
}

static SERVICES: abi::HostTable = abi::HostTable {
    error_create: Some(error_create),
    error_release: Some(error_release),
    option: Some(option),
    worker_count: Some(worker_count),
    parallel_for: Some(parallel_for),
    ..abi::HostTable::EMPTY
};

unsafe extern "C" fn error_create(context: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    // SAFETY: the context is the host's own, and the plugin's struct and its text live through the call.
    let (host, message) = unsafe { (&*context.cast::<SmallHost>(), (*info).message.text()) };
    let mut errors = host.errors.lock().expect("the errors");
    errors.push(message.expect("a message in UTF-8").to_owned());
    abi::Error(errors.len() as u64)
}

unsafe extern "C" fn error_release(_: *mut c_void, _: abi::Error) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn option(context: *mut c_void, key: abi::Str, value: *mut abi::Str) -> abi::Error {
    // SAFETY: the context is the host's own, the key lives through the call, and the value is the plugin's to have written.
    unsafe {
        if key.text() == Some("library") {
            *value = abi::Str::borrowed(&(*context.cast::<SmallHost>()).library);
        }
    }
    abi::Error::NONE
}

const WORKERS: u32 = 3;

unsafe extern "C" fn worker_count(_: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the count is the plugin's to have written.
    unsafe { *count = WORKERS };
    abi::Error::NONE
}

/// Cuts the loop into pieces of just the grain, so that as many borders as may be are seen, on all threads.
unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    grain: u64,
    task: Option<abi::Task>,
    user: *mut c_void,
) -> abi::Error {
    let (task, grain, user) = (task.expect("a task"), grain.max(1), user as usize);
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            scope.spawn(move || {
                let pieces = (0..count).step_by(grain as usize).skip(worker as usize);
                for begin in pieces.step_by(WORKERS as usize) {
                    let end = (begin + grain).min(count);
                    // SAFETY: the plugin's task takes any pieces of 0..count with what it came with.
                    unsafe { task(user as *mut c_void, begin, end, worker) };
                }
            });
        }
    });
    abi::Error::NONE
}
