//! One device with the outcome of its trial, for people and programs.

use oarlock_host::{PluginDevice, sanitize_text};
use serde_json::{Value, json};

use super::diagnosis::{DeviceDiagnosis, outcome_to_json};
use super::trial::TrialStep;
use super::watchdog;
use crate::output::{BAD_STYLE, CommandOutput, GOOD_STYLE, NAME_STYLE, QUIET_STYLE};
use crate::render::print_sentence;
use crate::session::CoreSession;

pub(super) struct DeviceExamination {
    pub(super) device_type: String,
    pub(super) device: String,
    plugin: String,
    steps: Vec<(TrialStep, Result<String, DeviceDiagnosis>)>,
}

impl DeviceExamination {
    pub(super) fn examine_device(device: &PluginDevice, core: &CoreSession) -> Self {
        let info = device.plugin().info();
        let checked = watchdog::try_device(device, &core.runtime, &core.messages);
        let finding = |cause| DeviceDiagnosis::from_cause(&cause, &info.name, core.runtime.host());
        let step = |checked: watchdog::StepOutcome| (checked.step, checked.outcome.map_err(finding));
        Self {
            device_type: device.device_type().to_owned(),
            device: device.to_string(),
            plugin: format!("{} {}", info.name, info.version),
            steps: checked.into_iter().map(step).collect(),
        }
    }

    pub(super) fn is_working(&self) -> bool {
        self.steps.iter().all(|(_, outcome)| outcome.is_ok())
    }

    /// The finding of a step that succeeded.
    fn step_finding(&self, wanted: TrialStep) -> Option<&str> {
        let (_, outcome) = self.steps.iter().find(|(step, _)| *step == wanted)?;
        outcome.as_deref().ok()
    }

    pub(super) fn print_examination(&self, with_details: bool, output: &mut CommandOutput) {
        let works = self.is_working();
        let state = if works {
            output.paint_text(GOOD_STYLE, "works")
        } else {
            output.paint_text(BAD_STYLE, "fails")
        };
        let name = output.paint_text(NAME_STYLE, &sanitize_text(&self.device));
        let description = self.step_finding(TrialStep::Answers).unwrap_or_default();
        let plugin = output.paint_text(QUIET_STYLE, &self.plugin);
        let parts = [state, name, sanitize_text(description), plugin];
        let line: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        output.write_line(&format!("  {}", line.join("  ")));
        if works && !with_details {
            // Only the computation differs between devices; show the rest once.
            let others = self.steps.iter().filter(|(step, _)| *step != TrialStep::Compute);
            let others: Vec<&str> = others.map(|(step, _)| step.step_name()).collect();
            print_sentence(output, 9, &others.join(", "));
            let computed = self.step_finding(TrialStep::Compute).unwrap_or_default();
            print_sentence(output, 9, &format!("{}: {computed}", TrialStep::Compute.step_name()));
            return;
        }
        for (step, outcome) in &self.steps {
            match outcome {
                Ok(found) => print_sentence(output, 9, &format!("{}: {found}", step.step_name())),
                Err(finding) => finding.print_diagnosis(&format!("{}: ", step.step_name()), 9, output),
            }
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let step = |(step, outcome): &(TrialStep, Result<String, DeviceDiagnosis>)| {
            outcome_to_json(json!({ "step": step.step_name() }), outcome)
        };
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
        json!({ "device": self.device, "plugin": self.plugin, "works": self.is_working(), "steps": steps })
    }
}
