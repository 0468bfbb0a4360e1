//! Results of operators on every device, compared with ONNX's own tests and NumPy.
//!
//! `scripts/export-operator-cases` writes the cases; without them there is one test, ignored, with a message.
//! `OARLOCK_TEST_DEVICES` lists the devices, separated by commas; the default is `cpu`, `sim`, which runs the work of its streams
//! in random order and poisons its memory, and `opencl` if there is a driver. Known failures are listed in
//! `tests/operators/expected`. `OARLOCK_TEST_SHRINK`, set to anything, removes passing cases from the lists.

mod case;
mod compare;
mod expected_failures;
mod start;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use oarlock_core::{Device, ErrorKind, Runtime};

use crate::case::{CaseProblem, OpCase};
use crate::expected_failures::ExpectedFailures;

/// Takes the place of a case in the name of the trial of a device's kernels.
const KERNELS_TRIAL: &str = "every kernel fits its op";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let directory = cases_directory();
    let files = ["onnx", "numpy"].map(|source| directory.join(source));
    if !files.iter().all(|file| file.with_extension("jsonl").is_file()) {
        let missing = format!("`{}` is missing: run `scripts/export-operator-cases`", directory.display());
        eprintln!("No operator is tested. {missing}.");
        let ignored = Trial::test(missing, || Ok(())).with_ignored_flag(true);
        return libtest_mimic::run(&arguments, vec![ignored]).exit_code();
    }
    let cases: Vec<Arc<OpCase>> =
        files.iter().flat_map(|file| OpCase::read_cases(file)).map(Arc::new).collect();
    let runtime = Arc::new(start::start_runtime());
    let counts: Vec<Arc<OutcomeCounts>> =
        tested_devices(&runtime).iter().map(|name| Arc::new(OutcomeCounts::new(name))).collect();
    let mut trials = vec![compare::comparison_trial(), start::isa_trial(&runtime)];
    for counts in &counts {
        let device = runtime.device(&counts.device).unwrap_or_else(|error| panic!("{error}"));
        let expected = ExpectedFailures::read_expected(&counts.device);
        trials.push(expected.list_trial(&cases, KERNELS_TRIAL));
        let rows = judge_case(
            KERNELS_TRIAL,
            check_kernels(&runtime, &device),
            expected.failure_reason(KERNELS_TRIAL),
            counts,
        );
        trials.push(Trial::test(format!("{}/{KERNELS_TRIAL}", counts.device), move || rows));
        for case in &cases {
            let (runtime, device, counts) = (runtime.clone(), device.clone(), counts.clone());
            let (case, reason) =
                (case.clone(), expected.failure_reason(&case.case_name()).map(str::to_owned));
            trials.push(Trial::test(format!("{}/{}", counts.device, case.case_name()), move || {
                judge_case(&case.case_name(), case.run_case(&runtime, &device), reason.as_deref(), &counts)
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    for counts in &counts {
        counts.print_counts();
        if std::env::var_os("OARLOCK_TEST_SHRINK").is_some() {
            let passed = counts.passed_unexpectedly.lock().unwrap_or_else(PoisonError::into_inner);
            expected_failures::remove_cases(&counts.device, &passed);
        }
    }
    conclusion.exit_code()
}

/// Where the script puts the cases: next to Cargo's build output.
fn cases_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("operator-cases")
}

/// The devices to test. One that the environment names must exist.
fn tested_devices(runtime: &Runtime) -> Vec<String> {
    match std::env::var("OARLOCK_TEST_DEVICES") {
        Ok(names) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Err(_) => {
            let is_there = |name: &&str| runtime.device(name).is_ok();
            ["cpu", "sim"].into_iter().chain(Some("opencl").filter(is_there)).map(str::to_owned).collect()
        }
    }
}

/// Checks the kernel records of a device. A record that does not fit its op is never used.
fn check_kernels(runtime: &Runtime, device: &Device) -> Result<(), CaseProblem> {
    let problems = runtime.registry().find_problems();
    let own = problems.iter().filter(|problem| problem.entry.info().device_type == device.device_type());
    let lines: Vec<String> = own.map(|problem| problem.error.to_string()).collect();
    if lines.is_empty() { Ok(()) } else { Err(CaseProblem::Wrong(lines.join("\n"))) }
}

/// Counts of outcomes on one device.
struct OutcomeCounts {
    device: String,
    passed: AtomicU64,
    failed: AtomicU64,
    failed_as_expected: AtomicU64,
    without_kernel: AtomicU64,
    passed_unexpectedly: Mutex<BTreeSet<String>>,
}

impl OutcomeCounts {
    fn new(device: &str) -> Self {
        Self {
            device: device.to_owned(),
            passed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            failed_as_expected: AtomicU64::new(0),
            without_kernel: AtomicU64::new(0),
            passed_unexpectedly: Mutex::default(),
        }
    }

    fn print_counts(&self) {
        let Self { device, passed, failed, failed_as_expected, without_kernel, .. } = self;
        println!(
            "{device}: {} passed, {} failed as expected, {} have no kernel, {} failed",
            passed.load(Ordering::Relaxed),
            failed_as_expected.load(Ordering::Relaxed),
            without_kernel.load(Ordering::Relaxed),
            failed.load(Ordering::Relaxed),
        );
    }
}

/// Compares the outcome of a case with the expectation.
fn judge_case(
    case: &str,
    outcome: Result<(), CaseProblem>,
    expected: Option<&str>,
    counts: &OutcomeCounts,
) -> Result<(), Failed> {
    let file = expected_failures::expected_file(&counts.device);
    let (count, verdict) = match (outcome, expected) {
        (Ok(()), None) => (&counts.passed, Ok(())),
        (Ok(()), Some(reason)) => {
            let mut passed = counts.passed_unexpectedly.lock().unwrap_or_else(PoisonError::into_inner);
            passed.insert(case.to_owned());
            let message = format!("it passes: remove its line from `{}` ({reason})", file.display());
            (&counts.failed, Err(message.into()))
        }
        (Err(problem), Some(_)) if problem.is_missing_kernel() => (&counts.without_kernel, Ok(())),
        (Err(_), Some(_)) => (&counts.failed_as_expected, Ok(())),
        (Err(problem), None) => (&counts.failed, Err(problem.to_string().into())),
    };
    count.fetch_add(1, Ordering::Relaxed);
    verdict
}

impl CaseProblem {
    /// True if no kernel runs this op on this device, or not with these dtypes.
    fn is_missing_kernel(&self) -> bool {
        matches!(self, Self::Refused(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unimplemented))
    }
}
