//! What a manifest says about checks that a plugin does not pass: data, so that a change for the better is noticed too.

use oarlock_abi::Dtype;
use serde::{Deserialize, Serialize};

use crate::elements::dtype_name;
use crate::findings::{CheckOutcome, CheckResult, KernelNumbers, NumbersOutcome};

/// A check, or the kernels for an op, that the manifest excepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceException {
    /// The name of a check, or its rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The op of kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub op: Option<String>,
    /// The only dtype of these kernels that is meant; all, if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Why, for users.
    pub reason: String,
}

impl ConformanceException {
    fn is_about_check(&self, name: &str, rule: &str) -> bool {
        self.op.is_none() && self.check.as_deref().is_some_and(|check| check == name || check == rule)
    }

    fn is_about_kernel(&self, op: &str, dtype: &str) -> bool {
        self.op.as_deref() == Some(op) && self.dtype.as_deref().is_none_or(|meant| meant == dtype)
    }
}

/// All exceptions of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConformanceExceptions {
    /// What is not run.
    #[serde(default)]
    pub unsupported: Vec<ConformanceException>,
    /// What is run and has to fail.
    #[serde(default)]
    pub expected_failure: Vec<ConformanceException>,
}

impl ConformanceExceptions {
    /// The reason not to run a check.
    pub(crate) fn unsupported_check(&self, name: &str, rule: &str) -> Option<String> {
        let exception = self.unsupported.iter().find(|exception| exception.is_about_check(name, rule));
        exception.map(|exception| format!("the manifest says: {}", exception.reason))
    }

    /// The reason not to run kernels for an op with a dtype.
    pub(crate) fn unsupported_kernel(&self, op: &str, dtype: Dtype) -> Option<String> {
        let dtype = dtype_name(dtype);
        let exception = self.unsupported.iter().find(|exception| exception.is_about_kernel(op, dtype));
        exception.map(|exception| format!("the manifest says: {}", exception.reason))
    }

    /// True if kernels for an op with a dtype are said to fail.
    pub(crate) fn expects_kernel_failure(&self, op: &str, dtype: Dtype) -> bool {
        self.expected_failure.iter().any(|exception| exception.is_about_kernel(op, dtype_name(dtype)))
    }

    /// Turns a failure that was expected into one, and a pass that was not into a failure.
    pub(crate) fn judge_check(&self, result: &mut CheckResult) {
        let meant = |exception: &&ConformanceException| exception.is_about_check(&result.name, &result.rule);
        let Some(exception) = self.expected_failure.iter().find(meant) else { return };
        result.outcome = match std::mem::replace(&mut result.outcome, CheckOutcome::Passed) {
            CheckOutcome::Failed(message) => {
                CheckOutcome::ExpectedFailure(format!("{}; {message}", exception.reason))
            }
            CheckOutcome::Passed => CheckOutcome::Failed(unexpected_pass(&exception.reason)),
            other => other,
        };
    }

    /// The same for what a kernel computed.
    pub(crate) fn judge_numbers(&self, row: &mut KernelNumbers) {
        let meant = |exception: &&ConformanceException| exception.is_about_kernel(&row.op, &row.dtype);
        let Some(exception) = self.expected_failure.iter().find(meant) else { return };
        match row.outcome {
            NumbersOutcome::Failed => {
                row.outcome = NumbersOutcome::ExpectedFailure;
                let found = row.message.take().unwrap_or_default();
                row.message = Some(format!("{}; {found}", exception.reason));
            }
            NumbersOutcome::Passed => {
                row.outcome = NumbersOutcome::Failed;
                let (op, dtype) = (&row.op, &row.dtype);
                row.message = Some(format!("`{op}` of {dtype}: {}", unexpected_pass(&exception.reason)));
            }
            _ => {}
        }
    }
}

fn unexpected_pass(reason: &str) -> String {
    format!(
        "expected a failure, since the manifest says \"{reason}\", found that it passes; remove the exception"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exceptions() -> ConformanceExceptions {
        let exception = |check: Option<&str>, op: Option<&str>, dtype: Option<&str>| ConformanceException {
            check: check.map(str::to_owned),
            op: op.map(str::to_owned),
            dtype: dtype.map(str::to_owned),
            reason: "firmware".to_owned(),
        };
        ConformanceExceptions {
            unsupported: vec![exception(Some("M-3"), None, None), exception(None, Some("Exp"), None)],
            expected_failure: vec![
                exception(Some("M-5"), None, None),
                exception(None, Some("Log"), Some("f16")),
            ],
        }
    }

    fn judged(outcome: CheckOutcome) -> CheckOutcome {
        let (name, rule, profile) = ("a check".to_owned(), "M-5".to_owned(), "core".to_owned());
        let mut result = CheckResult { name, rule, profile, outcome, micros: 0 };
        exceptions().judge_check(&mut result);
        result.outcome
    }

    #[test]
    fn a_failure_that_is_expected_is_none_and_a_pass_that_is_not_is_one() {
        let expected = CheckOutcome::ExpectedFailure("firmware; found 2".to_owned());
        assert_eq!(judged(CheckOutcome::Failed("found 2".to_owned())), expected);
        assert!(
            matches!(judged(CheckOutcome::Passed), CheckOutcome::Failed(message) if message.contains("remove"))
        );
        let unsupported = CheckOutcome::Unsupported("empty".to_owned());
        assert_eq!(judged(unsupported.clone()), unsupported);
    }

    #[test]
    fn an_exception_is_about_a_check_or_about_an_op_and_its_dtypes() {
        let exceptions = exceptions();
        assert!(exceptions.unsupported_check("any", "M-3").is_some());
        assert!(exceptions.unsupported_check("any", "M-5").is_none());
        assert!(exceptions.unsupported_kernel("Exp", Dtype::F64).is_some());
        assert!(exceptions.expects_kernel_failure("Log", Dtype::F16));
        assert!(!exceptions.expects_kernel_failure("Log", Dtype::F32));
    }
}
