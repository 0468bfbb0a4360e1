//! A plugin written with the SDK, seen through the C structs, as a host sees it.

#![expect(unsafe_code, reason = "the test plays the host, which calls through pointers")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oarlock_sdk::{
    Code, Core, Dtype, HostServices, Kernel, Memory, MemoryRange, OperandSpec, Plugin, PluginError, Result,
    Version, abi, dispatch, end_if_stopped, family, query, slots,
};

/// Codes, rules and messages of the errors that the plugin reported.
static REPORTED_ERRORS: Mutex<Vec<(Code, String, String)>> = Mutex::new(Vec::new());
static DROP_COUNT: AtomicUsize = AtomicUsize::new(0);
/// The tests share the list of errors, so they run one at a time.
static TEST_LOCK: Mutex<()> = Mutex::new(());

unsafe extern "C" fn error_create(_: *mut c_void, info: *const abi::ErrorInfo) -> abi::Error {
    // SAFETY: the SDK passes a struct of its own.
    let info = unsafe { &*info };
    // SAFETY: the text lives through the call.
    let (rule, message) = unsafe { (info.rule.text().unwrap(), info.message.text().unwrap()) };
    let mut reported = REPORTED_ERRORS.lock().unwrap();
    reported.push((info.code, rule.to_owned(), message.to_owned()));
    abi::Error(reported.len() as u64)
}

/// The error of a host that wants work to stop.
const STOP: abi::Error = abi::Error(u64::MAX - 1);

unsafe extern "C" fn error_read(
    _: *mut c_void,
    failure: abi::Error,
    info: *mut abi::ErrorInfo,
) -> abi::Error {
    assert_eq!(failure, STOP);
    let message = abi::Str::new("nobody waits");
    // SAFETY: the SDK passes a struct of its own.
    unsafe { *info = abi::ErrorInfo { code: Code::UNAVAILABLE, message, ..abi::ErrorInfo::EMPTY } };
    abi::Error::NONE
}

thread_local! {
    /// How often this thread asked whether it is to stop; `None` if its caller does not want that.
    static STOP_QUESTIONS: Cell<Option<u32>> = const { Cell::new(None) };
}

unsafe extern "C" fn stop_check(_: *mut c_void) -> abi::Error {
    let Some(asked) = STOP_QUESTIONS.get() else { return abi::Error::NONE };
    STOP_QUESTIONS.set(Some(asked + 1));
    if asked < 2 { abi::Error::NONE } else { STOP }
}

/// Runs two pieces, the second on another thread.
unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    _: u64,
    task: Option<abi::Task>,
    user: *mut c_void,
) -> abi::Error {
    let user = user.expose_provenance();
    let run = |begin, end| {
        // SAFETY: the SDK passes a task that may run on any thread, and what it refers to lives until this returns.
        unsafe { task.unwrap()(ptr::with_exposed_provenance_mut(user), begin, end, 0) };
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(count / 2, count));
        run(0, count / 2);
    });
    abi::Error::NONE
}

static SERVICES: abi::HostTable = abi::HostTable {
    error_create: Some(error_create),
    error_read: Some(error_read),
    parallel_for: Some(parallel_for),
    stop_check: Some(stop_check),
    ..abi::HostTable::EMPTY
};

struct TestNpu;

impl Drop for TestNpu {
    fn drop(&mut self) {
        DROP_COUNT.fetch_add(1, Ordering::SeqCst);
    }
}

#[slots]
impl Core for TestNpu {
    fn device_synchronize(&self, _: u32) -> Result<()> {
        panic!("the wire is loose")
    }
    fn device_count(&self) -> Result<u32> {
        Ok(2)
    }
    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![4, 7])
    }
    fn compute_capability(&self, _: u32) -> Result<Version> {
        Ok(Version { major: 9, ..Version::EMPTY })
    }
    fn runtime_version(&self) -> Result<Version> {
        Err(PluginError::external("expected a runtime, found none").with_native_code(-7))
    }
    fn driver_version(&self) -> Result<Version> {
        Ok(Version::EMPTY)
    }
    fn memory_allocate(&self, _: u32, _: u64) -> Result<Memory> {
        Ok(Memory(1))
    }
    fn memory_deallocate(&self, _: u32, _: Memory, _: u64) -> Result<()> {
        Ok(())
    }
    fn memory_copy_h2d(&self, _: u32, _: MemoryRange, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn memory_copy_d2h(&self, _: u32, _: &mut [u8], _: MemoryRange) -> Result<()> {
        Ok(())
    }
    fn memory_copy_d2d(&self, _: u32, _: MemoryRange, _: MemoryRange) -> Result<()> {
        Ok(())
    }
    fn memory_set(&self, _: u32, _: MemoryRange, _: u8) -> Result<()> {
        Ok(())
    }
    fn memory_stats(&self, _: u32) -> Result<(u64, u64)> {
        Ok((64, 32))
    }
    fn min_chunk_size(&self, _: u32) -> Result<u64> {
        Ok(1)
    }
}

fn make_plugin(host: &HostServices) -> Result<Plugin<TestNpu>> {
    let number = OperandSpec::new(family::FLOATING).with_dtype_group(1);
    let kernel = Kernel::new_prepared("Double", |_: &TestNpu, call| {
        let factor = call.int_attribute("factor")?.unwrap_or(2);
        Ok(std::sync::Arc::new(move |_: &TestNpu, call: &oarlock_sdk::KernelCall<'_>| {
            dispatch!(call.input(0)?.dtype(), floating, T => {
                // SAFETY: the test's operands are vectors of its own.
                let (from, to) = unsafe { (call.input(0)?.elements::<T>()?, call.output(0)?.elements_mut::<T>()?) };
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from * factor as T);
                Ok(())
            })
        }))
    })
    .with_domain("test")
    .with_inputs([number])
    .with_outputs([number]);
    let host = *host;
    // Works on two threads until it is stopped.
    let endless = Kernel::new("Endless", move |_: &TestNpu, _| {
        host.parallel_for(2, 1, |_, _| {
            loop {
                end_if_stopped();
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(())
    })
    .with_domain("test")
    .with_inputs([number])
    .with_outputs([number]);
    Ok(Plugin::for_device("npu", "1.2.3", "npu", TestNpu).with_kernels([kernel, endless]).allow_unload())
}

fn query_plugin(host: abi::Host) -> (abi::Error, abi::Plugin) {
    let mut plugin = abi::Plugin::EMPTY;
    // SAFETY: both structs are whole and the services are static.
    let failure = unsafe { query!(make_plugin)(&raw const host, &raw mut plugin) };
    (failure, plugin)
}

fn test_host() -> abi::Host {
    abi::Host {
        contract_major: abi::CONTRACT_MAJOR,
        contract_minor: abi::CONTRACT_MINOR,
        services: &raw const SERVICES,
        ..abi::Host::EMPTY
    }
}

/// Loads the plugin, runs a test on it, and unloads it.
fn with_plugin(test: impl FnOnce(&abi::Plugin, &abi::CoreTable)) {
    let _turn = TEST_LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (failure, plugin) = query_plugin(test_host());
    assert_eq!(failure, abi::Error::NONE);
    // SAFETY: the plugin filled its table, which lives until it is unloaded.
    test(&plugin, unsafe { &*plugin.core });
    let before = DROP_COUNT.load(Ordering::SeqCst);
    // SAFETY: nothing of the plugin is used afterwards.
    assert_eq!(unsafe { plugin.unload.unwrap()(plugin.context) }, abi::Error::NONE);
    assert_eq!(DROP_COUNT.load(Ordering::SeqCst), before + 1, "unloading frees the device");
}

fn last_error(failure: abi::Error) -> (Code, String, String) {
    REPORTED_ERRORS.lock().unwrap()[failure.0 as usize - 1].clone()
}

#[test]
fn a_slot_that_is_written_is_offered_and_one_that_is_not_is_null() {
    with_plugin(|plugin, core| {
        assert!(core.memory_set.is_some() && core.host_memory_allocate.is_none());
        assert!(plugin.r#async.is_null());
        assert_eq!(core.features, abi::CoreTable::FEATURES);
    });
}

#[test]
fn a_panic_becomes_a_fatal_error_with_its_message() {
    with_plugin(|plugin, core| {
        // SAFETY: the context is the plugin's own.
        let failure = unsafe { core.device_synchronize.unwrap()(plugin.context, 4) };
        let (code, rule, message) = last_error(failure);
        assert_eq!((code, rule.as_str()), (Code::FATAL, "R-2"));
        assert_eq!(message, "the plugin panicked: the wire is loose");
    });
}

#[test]
fn a_result_is_written_on_success_and_left_alone_on_failure() {
    with_plugin(|plugin, core| {
        let mut version = Version { major: 77, ..Version::EMPTY };
        // SAFETY: the context is the plugin's own and the version may be written.
        let failure = unsafe { core.runtime_version.unwrap()(plugin.context, &raw mut version) };
        assert!(failure.is_some());
        assert_eq!(version.major, 77);
        // SAFETY: as above.
        let failure = unsafe { core.compute_capability.unwrap()(plugin.context, 4, &raw mut version) };
        assert_eq!((failure, version.major), (abi::Error::NONE, 9));
    });
}

#[test]
fn a_null_pointer_is_an_error_that_names_the_argument() {
    with_plugin(|plugin, core| {
        // SAFETY: the context is the plugin's own; null is what is tested.
        let failure = unsafe { core.device_count.unwrap()(plugin.context, ptr::null_mut()) };
        assert_eq!(last_error(failure).2, "expected a pointer for `count`, found null");
        // SAFETY: as above.
        let failure =
            unsafe { core.memory_copy_h2d.unwrap()(plugin.context, 4, Memory(1), 0, ptr::null(), 8) };
        assert_eq!(last_error(failure).2, "expected a pointer for `source`, found null");
    });
}

#[test]
fn a_list_that_is_longer_than_the_room_is_cut_and_counted_whole() {
    with_plugin(|plugin, core| {
        let (mut ids, mut count) = ([0; 1], 0);
        // SAFETY: the context is the plugin's own and there is room for one id.
        let failure =
            unsafe { core.device_list.unwrap()(plugin.context, ids.as_mut_ptr(), 1, &raw mut count) };
        assert_eq!((failure, ids, count), (abi::Error::NONE, [4], 2));
    });
}

#[test]
fn a_host_of_another_major_version_learns_the_versions_and_nothing_else() {
    let _turn = TEST_LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (failure, plugin) =
        query_plugin(abi::Host { contract_major: abi::CONTRACT_MAJOR + 1, ..test_host() });
    assert_eq!(failure, abi::Error::NONE);
    assert_eq!((plugin.contract_major, plugin.contract_minor), (abi::CONTRACT_MAJOR, abi::CONTRACT_MINOR));
    assert!(plugin.context.is_null() && plugin.core.is_null() && plugin.unload.is_none());
}

#[test]
fn an_older_host_gets_no_more_than_it_has_room_for() {
    const VERSIONS_END: usize = 32;
    let _turn = TEST_LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let host = abi::Host { contract_major: 99, ..test_host() };
    let mut plugin = abi::Plugin { size: VERSIONS_END as u32, ..abi::Plugin::EMPTY };
    plugin.offers = abi::PluginFlags(0x5555);
    // SAFETY: both structs are whole; the size says how much of the second may be written.
    let failure = unsafe { query!(make_plugin)(&raw const host, &raw mut plugin) };
    assert_eq!(failure, abi::Error::NONE);
    assert_eq!((plugin.size, plugin.offers), (VERSIONS_END as u32, abi::PluginFlags(0x5555)));
}

#[test]
fn a_kernel_is_prepared_with_its_attributes_and_run_on_its_operands() {
    with_plugin(|plugin, _| {
        // SAFETY: the plugin filled its table of kernels.
        let kernel = unsafe { &**(*plugin.kernels).kernels };
        let (from, mut to, dims, factor) = ([1.5f32, -2.0], [0f32; 2], [2i64], [3i64]);
        let tensor = |address: *const f32| abi::Tensor {
            block: Memory(address as u64),
            size_in_bytes: 8,
            dtype: Dtype::F32,
            dims: dims.as_ptr(),
            dims_count: 1,
            ..abi::Tensor::EMPTY
        };
        let (input, output) = (tensor(from.as_ptr()), tensor(to.as_mut_ptr()));
        let (inputs, outputs) = ([&raw const input], [&raw const output]);
        let attribute = abi::Attribute {
            name: abi::Str::new("factor"),
            kind: abi::AttributeKind::INT,
            ints: factor.as_ptr(),
            ints_count: 1,
            ..abi::Attribute::EMPTY
        };
        let attributes = [&raw const attribute];
        let call = abi::Call {
            inputs: inputs.as_ptr(),
            inputs_count: 1,
            outputs: outputs.as_ptr(),
            outputs_count: 1,
            attributes: attributes.as_ptr(),
            attributes_count: 1,
            ..abi::Call::EMPTY
        };
        let mut state = ptr::null_mut();
        // SAFETY: the context is the kernel's own, and the call and its operands live through the calls.
        unsafe {
            assert_eq!(
                kernel.prepare.unwrap()(kernel.context, &raw const call, &raw mut state),
                abi::Error::NONE
            );
            assert_eq!(kernel.run.unwrap()(kernel.context, state, &raw const call), abi::Error::NONE);
            assert_eq!(kernel.release.unwrap()(kernel.context, state), abi::Error::NONE);
        }
        assert_eq!(to, [4.5, -6.0]);
    });
}

#[test]
fn a_call_with_an_operand_too_small_is_refused_before_it_is_touched() {
    with_plugin(|plugin, _| {
        // SAFETY: as above.
        let kernel = unsafe { &**(*plugin.kernels).kernels };
        let (data, dims) = ([0f32; 2], [1_000_000i64]);
        let tensor = abi::Tensor {
            block: Memory(data.as_ptr() as u64),
            size_in_bytes: 8,
            dtype: Dtype::F32,
            dims: dims.as_ptr(),
            dims_count: 1,
            ..abi::Tensor::EMPTY
        };
        let operands = [&raw const tensor];
        let call = abi::Call {
            inputs: operands.as_ptr(),
            inputs_count: 1,
            outputs: operands.as_ptr(),
            outputs_count: 1,
            ..abi::Call::EMPTY
        };
        let mut state = ptr::null_mut();
        // SAFETY: as above.
        let failure = unsafe {
            kernel.prepare.unwrap()(kernel.context, &raw const call, &raw mut state);
            kernel.run.unwrap()(kernel.context, state, &raw const call)
        };
        assert_eq!(last_error(failure).2, "expected room for 1000000 elements, found 8 bytes");
        // SAFETY: the state is the one that was prepared.
        unsafe { kernel.release.unwrap()(kernel.context, state) };
    });
}

#[test]
fn a_kernel_ends_on_all_its_threads_when_its_caller_wants_it_to_stop() {
    with_plugin(|plugin, _| {
        // SAFETY: the plugin filled its table of kernels with two records.
        let kernel = unsafe { &**(*plugin.kernels).kernels.add(1) };
        let (call, mut state) = (abi::Call::EMPTY, ptr::null_mut());
        STOP_QUESTIONS.set(Some(0));
        // SAFETY: the context is the kernel's own, and the call, which has no operands, lives through the calls.
        let failure = unsafe {
            assert_eq!(
                kernel.prepare.unwrap()(kernel.context, &raw const call, &raw mut state),
                abi::Error::NONE
            );
            let failure = kernel.run.unwrap()(kernel.context, state, &raw const call);
            assert_eq!(kernel.release.unwrap()(kernel.context, state), abi::Error::NONE);
            failure
        };
        assert_eq!(STOP_QUESTIONS.take(), Some(3));
        assert_eq!(last_error(failure), (Code::UNAVAILABLE, String::new(), "nobody waits".to_owned()));
    });
}
