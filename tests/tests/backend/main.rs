//! Whole models on the engine, compared with ONNX's own tests (all tests in the package onnx that need no download), and with
//! expected results for the ops that onnxruntime adds.
//!
//! `scripts/export-operator-cases` writes the cases; without them there is one test, ignored, with a message.
//! `OARLOCK_TEST_DEVICES` lists the devices, separated by commas; the default is `cpu`. Known failures are listed in
//! `tests/operators/expected/models-DEVICE.txt`, each with the reason. `OARLOCK_TEST_SHRINK`, set to anything, removes passing
//! tests from the lists. `OARLOCK_TEST_LIST` names a file to write the failing tests to.

mod case;
#[path = "../operators/compare.rs"]
mod compare;
#[path = "../operators/start.rs"]
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::case::ModelCase;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("operator-cases").join("models");
    if !file.with_extension("jsonl").is_file() {
        let missing = format!("`{}` is missing: run `scripts/export-operator-cases`", file.display());
        eprintln!("No model is tested. {missing}.");
        let ignored = Trial::test(missing, || Ok(())).with_ignored_flag(true);
        return libtest_mimic::run(&arguments, vec![ignored]).exit_code();
    }
    let mut cases = ModelCase::read_cases(&file);
    // The ops that onnxruntime adds.
    let contrib = file.with_file_name("contrib");
    if contrib.with_extension("jsonl").is_file() {
        cases.extend(ModelCase::read_cases(&contrib));
    }
    let cases: Vec<Arc<ModelCase>> = cases.into_iter().map(Arc::new).collect();
    let runtime = Arc::new(start::start_runtime());
    let devices = std::env::var("OARLOCK_TEST_DEVICES").unwrap_or_else(|_| "cpu".to_owned());
    let outcomes: Vec<Arc<DeviceOutcomes>> =
        devices.split(',').map(|device| Arc::new(DeviceOutcomes::for_device(device.trim()))).collect();
    let mut trials = vec![compare::comparison_trial(), start::isa_trial(&runtime)];
    for outcomes in &outcomes {
        trials.push(outcomes.list_trial(&cases));
        for case in &cases {
            let (runtime, case, outcomes) = (runtime.clone(), case.clone(), outcomes.clone());
            trials.push(Trial::test(format!("{}/{}", outcomes.device, case.case_name()), move || {
                let device = runtime.device(&outcomes.device).map_err(|error| error.to_string())?;
                outcomes.judge_case(case.case_name(), case.run_case(&runtime, &device))
            }));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    outcomes.iter().for_each(|outcomes| outcomes.report_outcomes());
    conclusion.exit_code()
}

/// Results on one device, and the expected failures.
struct DeviceOutcomes {
    device: String,
    /// Expected failures with their reasons.
    expected: BTreeMap<String, String>,
    ended: Mutex<BTreeMap<String, Result<(), String>>>,
}

impl DeviceOutcomes {
    fn for_device(device: &str) -> Self {
        let text = fs::read_to_string(failure_list_path(device)).unwrap_or_default();
        let entry = |line: &str| match line.split_once(": ") {
            Some((case, reason)) => (case.to_owned(), reason.to_owned()),
            None => {
                panic!("`{}`: expected `test: reason`, found `{line}`", failure_list_path(device).display())
            }
        };
        let expected = text.lines().filter(|line| !line.starts_with('#')).map(entry).collect();
        Self { device: device.to_owned(), expected, ended: Mutex::default() }
    }

    fn judge_case(&self, case: &str, ended: Result<(), String>) -> Result<(), Failed> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(case.to_owned(), ended.clone());
        match (ended, self.expected.get(case)) {
            (Ok(()), Some(reason)) => {
                let list = failure_list_path(&self.device);
                Err(format!("it passes: remove its line from `{}` ({reason})", list.display()).into())
            }
            (Err(message), None) => Err(message.into()),
            (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        }
    }

    /// A trial of the list itself.
    fn list_trial(&self, cases: &[Arc<ModelCase>]) -> Trial {
        let names: BTreeSet<&str> = cases.iter().map(|case| case.case_name()).collect();
        let unknown: Vec<String> =
            self.expected.keys().filter(|case| !names.contains(case.as_str())).cloned().collect();
        Trial::test(
            format!("{}/the list of expected failures is about tests there are", self.device),
            move || {
                if unknown.is_empty() { Ok(()) } else { Err(format!("there are no {unknown:?}").into()) }
            },
        )
    }

    /// Prints the counts, and updates the lists as the environment asks.
    fn report_outcomes(&self) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = ended.values().filter(|ended| ended.is_ok()).count();
        println!("{}: {passed} of {} models passed", self.device, ended.len());
        let failed = ended.iter().filter_map(|(case, ended)| Some((case, ended.as_ref().err()?)));
        if let Some(file) = std::env::var_os("OARLOCK_TEST_LIST") {
            let mut text = String::new();
            for (case, message) in failed {
                _ = writeln!(text, "{case}: {}", message.replace('\n', " "));
            }
            fs::write(&file, text).unwrap_or_else(|error| panic!("{error}"));
        }
        if std::env::var_os("OARLOCK_TEST_SHRINK").is_some() {
            let file = failure_list_path(&self.device);
            let text = fs::read_to_string(&file).unwrap_or_default();
            let stays = |line: &&str| {
                let case = line.split_once(": ").map_or("", |(case, _)| case);
                ended.get(case).is_none_or(Result::is_err)
            };
            let left: String = text.lines().filter(stays).map(|line| format!("{line}\n")).collect();
            fs::write(&file, left).unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
        }
    }
}

/// The list of expected failures of a device.
fn failure_list_path(device: &str) -> PathBuf {
    let kind = device.split(':').next().unwrap_or_default();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("operators/expected").join(format!("models-{kind}.txt"))
}
