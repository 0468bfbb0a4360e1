//! Turns failures into a cause and a remedy for the user.

use std::time::Duration;

use oarlock_core::Error;
use oarlock_host::{Host, Refusal, RefusalReason};
use serde_json::Value;

use super::trial_fault::TrialFault;
use crate::output::{CommandOutput, NOTABLE_STYLE};
use crate::render::{print_labeled, print_sentence};

/// Why a step of a trial failed.
pub(super) enum FailureCause {
    /// The step reported a fault.
    Fault(TrialFault),
    /// The step did not end within this time.
    NoAnswer(Duration),
    /// The thread of the step ended without an answer.
    Died,
}

pub(super) struct DeviceDiagnosis {
    pub(super) cause: String,
    pub(super) remedy: String,
}

impl DeviceDiagnosis {
    /// `plugin` owns the device; the kernel to blame may be another plugin's.
    pub(super) fn from_cause(cause: &FailureCause, plugin: &str, host: &Host) -> Self {
        match cause {
            FailureCause::Fault(TrialFault::Reported(error)) => Self::from_error(error, plugin, host),
            FailureCause::Fault(TrialFault::WrongResult { found, plugin: of_kernel }) => {
                let plugin = of_kernel.as_deref().unwrap_or(plugin);
                let remedy = format!("do not rely on this device; {}", suggest_update(plugin, host));
                Self { cause: found.clone(), remedy }
            }
            FailureCause::NoAnswer(limit) => Self {
                cause: format!("expected an answer within {} s, found none", limit.as_secs()),
                remedy: "see what keeps the device busy, and start its driver or the machine again"
                    .to_owned(),
            },
            FailureCause::Died => Self {
                cause: "expected the trial to end, found that it did not".to_owned(),
                remedy: suggest_update(plugin, host),
            },
        }
    }

    /// Prints the cause after the name of what failed, and the remedy below.
    pub(super) fn print_diagnosis(&self, what: &str, indent: usize, output: &mut CommandOutput) {
        print_sentence(output, indent, &format!("{what}{}", self.cause));
        let hint = format!("{}{}: ", " ".repeat(indent), output.paint_text(NOTABLE_STYLE, "hint"));
        print_labeled(output, &hint, indent + "hint: ".len(), &self.remedy);
    }

    /// The error's own hint comes first: the plugin's author knows best.
    fn from_error(error: &Error, plugin: &str, host: &Host) -> Self {
        let whole = error.to_string();
        if let Some(advice) = error.advice() {
            return Self { cause: whole, remedy: advice.to_owned() };
        }
        let failure = error.plugin_failure();
        if let Some(advice) = failure.and_then(|failure| extract_advice(&failure.message)) {
            return Self { cause: remove_advice(&whole, advice), remedy: advice.to_owned() };
        }
        let known = if error.is_device_lost() {
            Some("see whether the device is still there, and start its driver or the machine again")
        } else if error.kind() == oarlock_core::ErrorKind::ResourceExhausted {
            Some("end other programs that use the device, and try again")
        } else if failure.is_some_and(oarlock_host::PluginFailure::is_retryable) {
            Some("try again later")
        } else if error.kind() == oarlock_core::ErrorKind::Unavailable {
            Some("see whether the driver of the device and its libraries are installed and work")
        } else {
            None
        };
        // The kernel may belong to another plugin than the device.
        let is_plugin = |origin: &&str| host.plugins().iter().any(|plugin| plugin.info().name == *origin);
        let origin = failure.map(|failure| failure.origin.as_str()).filter(is_plugin);
        let remedy = known.map_or_else(|| suggest_update(origin.unwrap_or(plugin), host), str::to_owned);
        Self { cause: whole, remedy }
    }

    /// Diagnoses a refusal. A plugin that failed by itself explains what it needs.
    pub(super) fn from_refusal(refusal: &Refusal) -> Self {
        let Refusal { file, expected, found, remedy, .. } = refusal;
        let cause = format!("`{}`: expected {expected}, found {found}", file.display());
        match extract_advice(found).filter(|_| refusal.reason == RefusalReason::PluginError) {
            Some(advice) => Self { cause: remove_advice(&cause, advice), remedy: advice.to_owned() },
            None => Self { cause, remedy: remedy.clone() },
        }
    }
}

/// Adds the outcome of a step to `fields`.
pub(super) fn outcome_to_json(mut fields: Value, outcome: &Result<String, DeviceDiagnosis>) -> Value {
    fields["ok"] = outcome.is_ok().into();
    match outcome {
        Ok(found) => fields["found"] = found.as_str().into(),
        Err(DeviceDiagnosis { cause, remedy }) => {
            fields["found"] = cause.as_str().into();
            fields["remedy"] = remedy.as_str().into();
        }
    }
    fields
}

/// Extracts the advice from a message: by convention it follows a semicolon, after what was expected and what was found.
fn extract_advice(message: &str) -> Option<&str> {
    message.split_once("; ").map(|(_, advice)| advice).filter(|advice| !advice.is_empty())
}

fn remove_advice(message: &str, advice: &str) -> String {
    message.replacen(&format!("; {advice}"), "", 1)
}

/// Names the package to update.
fn suggest_update(plugin: &str, host: &Host) -> String {
    let info = host.plugins().iter().map(|loaded| loaded.info()).find(|info| info.name == plugin);
    let package = info.map(|info| info.package.as_str()).filter(|package| !package.is_empty());
    format!("update `{}`, or tell its vendor", package.unwrap_or(plugin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plugin_says_to_do_is_its_remedy() {
        let found =
            "its error: `npu`: expected a driver, found none; install `npu-driver`; then log in again";
        let refusal =
            |reason, found| Refusal::new(reason, "/x.so", "a plugin that starts", found, "ask its vendor");
        let finding = DeviceDiagnosis::from_refusal(&refusal(RefusalReason::PluginError, found));
        assert_eq!(finding.remedy, "install `npu-driver`; then log in again");
        assert_eq!(
            finding.cause,
            "`/x.so`: expected a plugin that starts, found its error: `npu`: expected a driver, found none"
        );
        let finding =
            DeviceDiagnosis::from_refusal(&refusal(RefusalReason::PluginError, "its error: `npu`: no"));
        assert_eq!(finding.remedy, "ask its vendor");
        let finding = DeviceDiagnosis::from_refusal(&refusal(RefusalReason::WritableByOthers, "`/a; b`"));
        assert_eq!((finding.cause.ends_with("`/a; b`"), finding.remedy.as_str()), (true, "ask its vendor"));
    }
}
