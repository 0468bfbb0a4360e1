//! Plugins with one wrong slot: mistakes of real plugins that no script can express.

use std::ffi::c_void;
use std::sync::OnceLock;

use oarlock_conformance::{ConformanceSubject, ErrorText};
use oarlock_sdk::abi;

use crate::started_plugin::StartedPlugin;
use crate::{check_failure, failed_checks, only_failure};

/// The correct tables, for wrong slots that delegate to them.
static CPU_TABLES: OnceLock<(abi::CoreTable, abi::Kernel)> = OnceLock::new();
static SIM_TABLE: OnceLock<abi::AsyncTable> = OnceLock::new();

fn load_cpu() -> StartedPlugin {
    let loaded = StartedPlugin::load_cpu();
    let subject = loaded.conformance_subject();
    CPU_TABLES.get_or_init(|| (subject.core, subject.kernels[adder_index(&subject)]));
    loaded
}

/// Index of the current kernel for `Add`, among those for older versions of the op.
fn adder_index(subject: &ConformanceSubject) -> usize {
    // SAFETY: the names of kernels live as long as their plugin.
    let is_add = |kernel: &abi::Kernel| unsafe { kernel.op.text() } == Some("Add") && kernel.version_min == 7;
    subject.kernels.iter().position(is_add).expect("a kernel for `Add`")
}

fn load_sim() -> StartedPlugin {
    let loaded = StartedPlugin::load_sim("mode lazy");
    SIM_TABLE.get_or_init(|| loaded.conformance_subject().asynchronous.expect("streams").1);
    loaded
}

fn async_table(subject: &mut ConformanceSubject) -> &mut abi::AsyncTable {
    &mut subject.asynchronous.as_mut().expect("streams").1
}

#[test]
fn a_created_but_unwritten_stream_or_event_fails_the_check() {
    unsafe extern "C" fn create_no_stream(_: *mut c_void, _: u32, _: i32, _: *mut abi::Stream) -> abi::Error {
        abi::Error::NONE
    }
    unsafe extern "C" fn create_no_event(_: *mut c_void, _: u32, _: *mut abi::Event) -> abi::Error {
        abi::Error::NONE
    }
    let report = StartedPlugin::load_cpu().run_checks_on_changed(|subject| {
        async_table(subject).stream_create = Some(create_no_stream);
        async_table(subject).event_create = Some(create_no_event);
    });
    let message = check_failure(&report, "streams are written on success, and live ones are different");
    assert!(message.contains("nothing written"), "{message}");
    check_failure(&report, "events are written on success, and live ones are different");
    assert_eq!(report.passed_profiles(), ["core"]);
}

#[test]
fn a_result_written_before_the_device_is_checked_is_noticed() {
    unsafe extern "C" fn unready_memory_stats(
        context: *mut c_void,
        device: u32,
        total: *mut u64,
        free: *mut u64,
    ) -> abi::Error {
        let stats = CPU_TABLES.get().and_then(|(core, _)| core.memory_stats).expect("the right slot");
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            *total = 0;
            stats(context, device, total, free)
        }
    }
    let report =
        load_cpu().run_checks_on_changed(|subject| subject.core.memory_stats = Some(unready_memory_stats));
    let message = only_failure(&report, "a call that fails writes nothing");
    assert!(message.contains("`memory_stats`"), "{message}");
}

#[test]
fn a_device_that_is_not_there_must_not_answer() {
    unsafe extern "C" fn capability_of_any_device(
        _: *mut c_void,
        _: u32,
        capability: *mut abi::Version,
    ) -> abi::Error {
        // SAFETY: the caller guarantees the argument.
        unsafe { *capability = abi::Version::EMPTY };
        abi::Error::NONE
    }
    let report = load_cpu()
        .run_checks_on_changed(|subject| subject.core.compute_capability = Some(capability_of_any_device));
    let message = check_failure(&report, "a device that is not in the list is an error in every slot");
    assert!(message.contains("`compute_capability`"), "{message}");
}

#[test]
fn a_size_that_wraps_around_when_it_is_rounded_up_is_noticed() {
    unsafe extern "C" fn allocate_rounded(
        context: *mut c_void,
        device: u32,
        size: u64,
        block: *mut abi::Memory,
    ) -> abi::Error {
        let allocate = CPU_TABLES.get().and_then(|(core, _)| core.memory_allocate).expect("the right slot");
        let rounded = size.wrapping_add(63) / 64 * 64;
        // SAFETY: the caller guarantees the arguments.
        unsafe { allocate(context, device, rounded.max(64), block) }
    }
    unsafe extern "C" fn keep_block(_: *mut c_void, _: u32, _: abi::Memory, _: u64) -> abi::Error {
        abi::Error::NONE
    }
    let report = load_cpu().run_checks_on_changed(|subject| {
        subject.core.memory_allocate = Some(allocate_rounded);
        subject.core.memory_deallocate = Some(keep_block);
    });
    let name = "an allocation that cannot be met is `resource_exhausted`, and the device goes on";
    assert!(check_failure(&report, name).contains("18446744073709551615 bytes to fail"));
}

#[test]
fn memory_that_is_never_freed_fails_the_check() {
    unsafe extern "C" fn leak_block(_: *mut c_void, _: u32, _: abi::Memory, _: u64) -> abi::Error {
        abi::Error::NONE
    }
    let report = StartedPlugin::load_sim("")
        .run_checks_on_changed(|subject| subject.core.memory_deallocate = Some(leak_block));
    check_failure(&report, "memory that was given back can be taken again");
}

#[test]
fn an_error_without_a_message_fails_the_check() {
    let report = StartedPlugin::load_cpu().run_checks_on_changed(|subject| {
        subject.read_error =
            Box::new(|_| ErrorText { code: abi::Code::NOT_FOUND, message: " ".to_owned(), breach: None });
    });
    let name = "every error of the run has a code of the contract and says what is wrong";
    assert!(check_failure(&report, name).contains("found none"));
}

#[test]
fn a_wait_for_an_event_that_does_not_wait_is_noticed() {
    unsafe extern "C" fn ignore_event(_: *mut c_void, _: u32, _: abi::Stream, _: abi::Event) -> abi::Error {
        abi::Error::NONE
    }
    let report = load_sim()
        .run_checks_on_changed(|subject| async_table(subject).stream_wait_event = Some(ignore_event));
    let names = [
        "a stream that waits for an event works after the other stream did",
        "work that waits for an event goes on waiting when it is destroyed",
    ];
    assert_eq!(failed_checks(&report), names, "{}", report.render_text());
}

#[test]
fn a_synchronise_that_does_not_wait_is_noticed() {
    unsafe extern "C" fn skip_synchronize(_: *mut c_void, _: u32, _: abi::Stream) -> abi::Error {
        abi::Error::NONE
    }
    let report = load_sim()
        .run_checks_on_changed(|subject| async_table(subject).stream_synchronize = Some(skip_synchronize));
    check_failure(&report, "what was copied in a stream is there after synchronizing it");
}

#[test]
fn a_callback_on_the_thread_that_adds_it_is_noticed() {
    unsafe extern "C" fn call_back_at_once(
        _: *mut c_void,
        device: u32,
        queue: abi::Stream,
        reached: Option<abi::StreamReached>,
        user: *mut c_void,
    ) -> abi::Error {
        // SAFETY: the caller guarantees its function.
        unsafe { reached.expect("a function")(device, queue, user, abi::Error::NONE) };
        abi::Error::NONE
    }
    let report = load_sim()
        .run_checks_on_changed(|subject| async_table(subject).stream_add_callback = Some(call_back_at_once));
    let name = "a callback is called once, on a thread of the plugin, with its device and stream";
    assert!(check_failure(&report, name).contains("on the thread that added it"));
}

#[test]
fn a_callback_that_comes_twice_is_noticed() {
    unsafe extern "C" fn call_back_twice(
        context: *mut c_void,
        device: u32,
        queue: abi::Stream,
        reached: Option<abi::StreamReached>,
        user: *mut c_void,
    ) -> abi::Error {
        let add = SIM_TABLE.get().and_then(|table| table.stream_add_callback).expect("the right slot");
        // SAFETY: the caller guarantees the arguments.
        unsafe {
            add(context, device, queue, reached, user);
            add(context, device, queue, reached, user)
        }
    }
    let report = load_sim()
        .run_checks_on_changed(|subject| async_table(subject).stream_add_callback = Some(call_back_twice));
    let name = "a callback is called once, on a thread of the plugin, with its device and stream";
    assert!(check_failure(&report, name).contains("found 2"), "{}", report.render_text());
}

#[test]
fn a_kernel_that_writes_past_its_output_is_noticed() {
    unsafe extern "C" fn write_past_end(
        context: *mut c_void,
        state: *mut c_void,
        call: *const abi::Call,
    ) -> abi::Error {
        let run = CPU_TABLES.get().and_then(|(_, kernel)| kernel.run).expect("the right function");
        // SAFETY: the caller guarantees the call. The suite leaves room after every output, on a device whose memory is host
        // memory.
        unsafe {
            let error = run(context, state, call);
            let output = &**(*call).outputs;
            if output.block.0 != 0 {
                *((output.block.0 + output.offset + output.size_in_bytes) as *mut u8) = 0;
            }
            error
        }
    }
    let report = load_cpu().run_checks_on_changed(|subject| {
        let adder = adder_index(subject);
        subject.kernels[adder].run = Some(write_past_end);
    });
    let message = only_failure(&report, "a kernel writes its outputs and nothing else");
    assert!(message.contains("the bytes after the output"), "{message}");
}

#[test]
fn a_kernel_that_computes_nothing_is_noticed() {
    unsafe extern "C" fn run_nothing(_: *mut c_void, _: *mut c_void, _: *const abi::Call) -> abi::Error {
        abi::Error::NONE
    }
    let report = load_cpu().run_checks_on_changed(|subject| {
        let adder = adder_index(subject);
        subject.kernels[adder].run = Some(run_nothing);
    });
    let message = check_failure(&report, "every kernel computes what its op says");
    assert!(message.contains("`Add` of i8 on device 0"), "{message}");
    assert_eq!(report.passed_profiles(), ["core", "async"]);
}

#[test]
fn a_kernel_without_an_op_or_with_dtypes_that_do_not_exist_is_noticed() {
    let report =
        StartedPlugin::load_cpu().run_checks_on_changed(|subject| subject.kernels[0].op = abi::Str::EMPTY);
    check_failure(&report, "every kernel names an op and demands what can be met");
    let report = StartedPlugin::load_cpu().run_checks_on_changed(|subject| subject.kernels[0].release = None);
    check_failure(&report, "every kernel has `run`, and `release` where it has `prepare`");
}
