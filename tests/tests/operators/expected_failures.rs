//! Expected failures of devices, with reasons: the files in `tests/operators/expected`.
//!
//! A line is the name of a case, a colon, and the reason. The lists can only shrink: a passing case must not be listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::Trial;

use crate::case::OpCase;

/// The file with a device's expected failures.
pub(crate) fn expected_file(device: &str) -> PathBuf {
    let kind = device.split(':').next().unwrap_or_default();
    Path::new(env!("CARGO_MANIFEST_DIR")).join("operators/expected").join(kind).with_extension("txt")
}

/// Removes cases from the file of a device.
pub(crate) fn remove_cases(device: &str, cases: &BTreeSet<String>) {
    let file = expected_file(device);
    let text = fs::read_to_string(&file).unwrap_or_default();
    let stays = |line: &&str| line.split_once(": ").is_none_or(|(case, _)| !cases.contains(case));
    let left: String = text.lines().filter(stays).map(|line| format!("{line}\n")).collect();
    if left != text {
        fs::write(&file, left).unwrap_or_else(|error| panic!("`{}`: {error}", file.display()));
    }
}

/// The cases that fail on a device, each with its reason.
pub(crate) struct ExpectedFailures {
    device: String,
    reasons: BTreeMap<String, String>,
    /// True if the lines are sorted, which keeps diffs of the file readable.
    is_sorted: bool,
}

impl ExpectedFailures {
    /// Reads the file of a device. Without a file no failure is expected.
    pub(crate) fn read_expected(device: &str) -> Self {
        let text = fs::read_to_string(expected_file(device)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let entry = |line: &&str| match line.split_once(": ") {
            Some((case, reason)) => (case.to_owned(), reason.to_owned()),
            None => panic!("`{}`: expected `case: reason`, found `{line}`", expected_file(device).display()),
        };
        Self {
            device: device.to_owned(),
            reasons: lines.iter().map(entry).collect(),
            is_sorted: lines.is_sorted(),
        }
    }

    /// The reason why a case is expected to fail.
    pub(crate) fn failure_reason(&self, case: &str) -> Option<&str> {
        self.reasons.get(case).map(String::as_str)
    }

    /// A trial of the list itself, which may contain the cases and one other name.
    pub(crate) fn list_trial(&self, cases: &[Arc<OpCase>], other: &str) -> Trial {
        let mut names: BTreeSet<String> = cases.iter().map(|case| case.case_name()).collect();
        names.insert(other.to_owned());
        let unknown: Vec<String> =
            self.reasons.keys().filter(|case| !names.contains(*case)).cloned().collect();
        let (file, is_sorted) = (expected_file(&self.device), self.is_sorted);
        Trial::test(
            format!("{}/the list of expected failures is sorted and about cases there are", self.device),
            move || {
                if !unknown.is_empty() {
                    return Err(
                        format!("`{}` names cases that do not exist: {unknown:?}", file.display()).into()
                    );
                }
                if !is_sorted {
                    return Err(format!("`{}` is not sorted: `LC_ALL=C sort` does it", file.display()).into());
                }
                Ok(())
            },
        )
    }
}
