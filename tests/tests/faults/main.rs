//! Any device call may fail, at any time and in any way. The program then gets an error that states what failed, or correct
//! numbers, but never a panic; its data on other devices stays usable, and nothing leaks.
//!
//! The program's calls are counted first. Then it runs once per call, with a fault there.

mod program;
mod schedules;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use oarlock_core::{Attributes, Error, ErrorKind, Runtime, Tensor};
use oarlock_host::{LiveHandleCounts, LogSink as _};

use crate::program::{PROGRAM_OPS, call_op, run_program, start_runtime, start_with_flags};

/// Script lines shared by all runs.
const COMMON_SCRIPT: &str = "quota 64MiB; seed 5";

/// The program's run without faults.
struct FaultlessRun {
    /// Number of calls, by name.
    calls: BTreeMap<String, u64>,
    numbers: Vec<Vec<f32>>,
}

static FAULTLESS_RUN: LazyLock<FaultlessRun> = LazyLock::new(|| {
    let (runtime, told) = start_runtime(&format!("{COMMON_SCRIPT}; trace on"));
    let numbers = run_program(&runtime).expect("nothing fails");
    drop(runtime);
    let told = told.all_messages();
    let calls = told.iter().find_map(|message| message.strip_prefix("calls: ")).expect("the counts");
    let count = |call: &str| {
        let (name, count) = call.split_once(' ').expect("a name and a count");
        (name.to_owned(), count.parse().expect("a count"))
    };
    FaultlessRun { calls: calls.split(", ").map(count).collect(), numbers }
});

/// Outcome of a run with a fault.
struct FaultedRun {
    fault: String,
    outcome: Result<Vec<Vec<f32>>, Error>,
    /// Messages that the host logged.
    told: String,
}

/// Runs the program with a fault, and checks everything that must hold whatever the outcome.
fn run_with(fault: &str) -> FaultedRun {
    let (runtime, told) = start_runtime(&format!("{COMMON_SCRIPT}; {fault}"));
    let cpu = runtime.device("cpu").expect("the CPU");
    let kept = Tensor::from_slice(&cpu, &[3], &[1f32, 2.0, 3.0]).expect("memory of the CPU");
    let outcome = run_program(&runtime);
    let doubled = call_op(&runtime, "Add", Attributes::new(), &[&kept, &kept], 1, None).expect(fault);
    assert_eq!(doubled[0].to_vec::<f32>().expect(fault), [2.0, 4.0, 6.0], "{fault}");
    if let Err(error) = &outcome
        && error.is_device_lost()
    {
        expect_one_lost(&runtime, error, fault);
    }
    told.log("report", oarlock_host::LogLevel::INFO, &format!("{:?}", runtime.host().report()));
    drop((kept, doubled));
    expect_nothing_held(runtime, fault);
    FaultedRun { fault: fault.to_owned(), outcome, told: told.all_messages().join("\n") }
}

/// The lost device keeps reporting the loss, and the other one works.
fn expect_one_lost(runtime: &Runtime, lost: &Error, fault: &str) {
    for name in ["sim:0", "sim:1"] {
        let Ok(device) = runtime.device(name) else { continue };
        let worked = Tensor::from_slice(&device, &[2], &[1f32, 2.0])
            .and_then(|x| call_op(runtime, "Add", Attributes::new(), &[&x, &x], 1, None))
            .and_then(|sum| sum[0].to_vec::<f32>());
        if lost.device() == Some(name) && device_is_known_to_be_lost(fault) {
            let error = worked.expect_err(fault);
            let message = |error: &Error| error.plugin_failure().map(|failure| failure.message.clone());
            assert_eq!(message(&error), message(lost), "{fault}");
        } else {
            assert_eq!(worked.unwrap_or_else(|error| panic!("{fault}: {error}")), [2.0, 4.0], "{fault}");
        }
    }
}

/// True if the loss of the device is remembered. A failure before the device has a memory pool is not: nothing exists yet that
/// could remember it, so the device is queried again.
fn device_is_known_to_be_lost(fault: &str) -> bool {
    !["device_info", "min_chunk_size", "memory_stats"].iter().any(|call| fault.contains(call))
}

/// After all tensors are dropped the pools are empty, and after the runtime is dropped there are no handles left.
fn expect_nothing_held(runtime: Runtime, fault: &str) {
    let pools = runtime.devices().iter().filter_map(|device| device.memory_pool().ok());
    for pool in pools {
        assert_eq!((pool.statistics().allocated, pool.memory_holders()), (0, Vec::new()), "{fault}");
    }
    let devices = runtime.host().devices();
    drop(runtime);
    for device in devices.iter().filter(|device| device.device_type() == "sim") {
        assert_eq!(device.plugin().live_handles(), LiveHandleCounts::default(), "{fault}");
        let frees_nothing = fault.contains("memory_deallocate");
        if let Some(memory) = device.memory_stats().ok().filter(|_| !frees_nothing) {
            assert_eq!(memory.free, memory.total, "{fault}: the device has memory that nobody holds");
        }
    }
}

/// Every call of the program, numbered.
fn program_calls() -> impl Iterator<Item = (&'static str, u64)> {
    FAULTLESS_RUN
        .calls
        .iter()
        .flat_map(|(call, count)| (1..=*count).map(move |number| (call.as_str(), number)))
}

/// Calls about the device itself, made before any op.
fn names_no_op(call: &str) -> bool {
    let without_op =
        ["memory_stats", "min_chunk_size", "device_info", "stream_create", "event_create", "event_record"];
    without_op.contains(&call) || call == "stream_synchronize"
}

impl FaultedRun {
    /// The error, or `None` after checking that the numbers are correct.
    #[track_caller]
    fn run_error(&self) -> Option<&Error> {
        match &self.outcome {
            Ok(numbers) => {
                assert_eq!(numbers, &FAULTLESS_RUN.numbers, "{}: wrong numbers", self.fault);
                None
            }
            Err(error) => Some(error),
        }
    }

    /// Expects correct numbers, or an error of this kind that names its op and device, or a device that is left out with a
    /// reason.
    #[track_caller]
    fn expect_error_of(&self, call: &str, kind: ErrorKind) {
        let Some(error) = self.run_error() else { return };
        let Self { fault, told, .. } = self;
        // A plugin is refused, or a device is left out, if it does not start; the log says why.
        if error.kind() == ErrorKind::NotFound || error.to_string().contains("which is left out") {
            assert!(told.contains(&format!("`{call}`")), "{fault}: {error}; the reason is not told: {told}");
            return;
        }
        assert_eq!(error.kind(), kind, "{fault}: {error}");
        assert!(error.device().is_some_and(|device| device.starts_with("sim:")), "{fault}: {error}");
        assert!(error.op().is_some() || names_no_op(call), "{fault}: {error} names no op");
        assert!(error.to_string().contains(call), "{fault}: {error} does not say what failed");
    }
}

fn check_every_call(fault: &str, what: &str, kind: ErrorKind) {
    for (call, number) in program_calls() {
        run_with(format!("{fault} {call} {number} {what}").trim()).expect_error_of(call, kind);
    }
}

#[test]
fn every_call_reports_out_of_memory() {
    check_every_call("fail", "out-of-memory", ErrorKind::ResourceExhausted);
}

#[test]
fn any_call_may_fail_for_a_reason_of_the_devices_own() {
    check_every_call("fail", "internal", ErrorKind::External);
}

#[test]
fn any_call_may_take_too_long() {
    check_every_call("fail", "timed-out", ErrorKind::ExecutionTimeout);
}

#[test]
fn any_call_may_find_the_device_lost() {
    check_every_call("fail", "device-lost", ErrorKind::Unavailable);
}

#[test]
fn any_call_may_panic() {
    check_every_call("panic", "", ErrorKind::Fatal);
}

#[test]
fn any_call_may_fail_when_its_work_is_done() {
    check_every_call("fail_later", "internal", ErrorKind::External);
}

#[test]
fn any_call_may_be_slow() {
    for (call, number) in program_calls() {
        for fault in ["delay CALL 1h", "hang CALL 1ms"] {
            let fault = fault.replace("CALL", &format!("{call} {number}")).replace("1h", "3600s");
            let ending = run_with(&fault);
            assert!(ending.run_error().is_none(), "{fault}: {:?}\n{}", ending.run_error(), ending.told);
        }
    }
}

#[test]
fn a_kernel_that_fails_later_is_named_wherever_its_failure_is_told() {
    for mode in ["lazy", "eager", "random"] {
        for (index, op) in PROGRAM_OPS.iter().enumerate() {
            let ending = run_with(&format!("mode {mode}; fail_later run {} internal", index + 1));
            let error = ending.run_error().expect("the failure is told");
            assert_eq!(error.op(), Some(*op), "{}: {error}", ending.fault);
        }
    }
}

#[test]
fn a_device_may_be_lost_after_any_call() {
    let most: u64 = FAULTLESS_RUN.calls.values().sum();
    for device in ["0", "1"] {
        for after in 0..most {
            let ending = run_with(&format!("lose {device} after {after}"));
            let Some(error) = ending.run_error() else { break };
            let is_left_out = [ErrorKind::NotFound, ErrorKind::Unavailable].contains(&error.kind())
                && ending.told.contains("is lost, as scripted");
            let is_told = error.is_device_lost() && error.device() == Some(&format!("sim:{device}"));
            assert!(is_left_out || is_told, "{}: {error}", ending.fault);
        }
    }
}

#[test]
fn a_copy_that_brings_wrong_bytes_breaks_nothing_else() {
    let copies = FAULTLESS_RUN.calls.iter().filter(|(call, _)| call.starts_with("memory_copy_"));
    for number in 1..=copies.map(|(_, count)| count).sum() {
        // Corrupted numbers cannot be detected, but everything else must hold.
        run_with(&format!("lie copy {number}"));
    }
}

#[test]
fn what_a_device_has_no_kernel_for_the_cpu_does_where_it_may() {
    let only_add = format!("{COMMON_SCRIPT}; ops Add");
    let (runtime, _) = start_runtime(&only_add);
    let error = run_program(&runtime).expect_err("there is no kernel");
    assert_eq!((error.op(), error.kind()), (Some("Gemm"), ErrorKind::NotFound), "{error}");
    let (runtime, _) = start_with_flags(&only_add, &[("kernel_fallback", "cpu")]);
    assert_eq!(run_program(&runtime).expect("the CPU helps"), FAULTLESS_RUN.numbers);
    let helped: Vec<String> = runtime.fallback_counts().into_iter().map(|(op, ..)| op).collect();
    assert!(helped.contains(&"Gemm".to_owned()) && !helped.contains(&"Add".to_owned()), "{helped:?}");
}

#[test]
fn a_script_that_names_an_op_that_is_not_there_is_refused_and_others_who_use_the_plugin_go_on() {
    let (used, _) = start_runtime("devices 1");
    let (refused, _) = start_runtime("ops Add,Ad");
    assert!(refused.device("sim").is_err());
    let report = format!("{:?}", refused.host().report());
    assert!(report.contains("expected ops that the CPU has kernels of, found `Ad`"), "{report}");
    let (next, _) = start_runtime("devices 1");
    assert!(next.device("sim").is_ok() && used.device("sim").is_ok(), "{:?}", next.host().report());
}
