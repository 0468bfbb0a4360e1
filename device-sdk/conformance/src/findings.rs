//! What a run of the suite finds, as data.

use serde::{Deserialize, Serialize};

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The requirement, as a sentence.
    pub name: String,
    /// The rule of the contract, such as `M-5`, or the slot whose documentation states the requirement.
    pub rule: String,
    /// The profile that the check belongs to, or `kernels`.
    pub profile: String,
    /// Passed, failed, unsupported or not run, with the reason.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
    /// The duration of the check in microseconds.
    pub micros: u64,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "message", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// The rule held.
    Passed,
    /// The rule was broken. The text says what was expected and what was found.
    Failed(String),
    /// The rule was broken, as the plugin's manifest says.
    ExpectedFailure(String),
    /// The plugin leaves out an optional part that the check needs.
    Unsupported(String),
    /// An earlier check did not return.
    NotRun(String),
}

impl CheckOutcome {
    /// The outcome in a word or two, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::ExpectedFailure(_) => "expected failure",
            Self::Unsupported(_) => "unsupported",
            Self::NotRun(_) => "not run",
        }
    }

    /// The reason for the outcome; `None` for a check that passed.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(message)
            | Self::ExpectedFailure(message)
            | Self::Unsupported(message)
            | Self::NotRun(message) => Some(message),
        }
    }
}

/// What a kernel computed with one dtype.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelNumbers {
    /// The name of the op.
    pub op: String,
    /// The domain of the op; empty is the domain of ONNX.
    pub domain: String,
    /// The versions of the op that the kernel is for, such as `7-` or `1-6`.
    pub versions: String,
    /// The dtype of the elements; empty where the suite has no reference.
    pub dtype: String,
    /// Whether the results were right.
    pub outcome: NumbersOutcome,
    /// The calls that the kernel took.
    pub calls: u32,
    /// The calls that it refused, or that its record excludes.
    pub refused: u32,
    /// The largest error in units of the last place, among right results.
    pub worst_ulps: f64,
    /// The first wrong result, or why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The outcome for one kernel with one dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumbersOutcome {
    /// All results were right.
    Passed,
    /// A result was wrong, or a call failed.
    Failed,
    /// A result was wrong, as the manifest says.
    ExpectedFailure,
    /// The kernel took no call, or the manifest says that it is not to be tried.
    Refused,
    /// The suite has no reference for the op.
    NoReference,
}

impl NumbersOutcome {
    /// The outcome in a word or two, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::ExpectedFailure => "expected failure",
            Self::Refused => "refused",
            Self::NoReference => "no reference",
        }
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpeedMeasurement {
    /// What was measured.
    pub name: String,
    /// The best of several runs.
    pub value: f64,
    /// The unit of the value.
    pub unit: String,
}

impl SpeedMeasurement {
    /// The value with its unit.
    pub fn text(&self) -> String {
        format!("{:.3} {}", self.value, self.unit)
    }
}
