//! One device and what became of its trial, for people and for programs.

use oarlock_host::{Device, clean_text};
use serde_json::{Value, json};

use super::cause::{Finding, in_json};
use super::patience;
use super::trial::Step;
use crate::output::{BAD, GOOD, NAME, Output, QUIET};
use crate::render::sentence;
use crate::session::Core;

/// A device and what became of its trial.
pub(super) struct Examined {
    pub(super) device_type: String,
    pub(super) device: String,
    plugin: String,
    steps: Vec<(Step, Result<String, Finding>)>,
}

impl Examined {
    pub(super) fn of(device: &Device, core: &Core) -> Self {
        let info = device.plugin().info();
        let checked = patience::try_device(device, &core.runtime, &core.messages);
        let finding = |cause| Finding::of(&cause, &info.name, core.runtime.host());
        let step = |checked: patience::Checked| (checked.step, checked.outcome.map_err(finding));
        Self {
            device_type: device.device_type().to_owned(),
            device: device.to_string(),
            plugin: format!("{} {}", info.name, info.version),
            steps: checked.into_iter().map(step).collect(),
        }
    }

    pub(super) fn works(&self) -> bool {
        self.steps.iter().all(|(_, outcome)| outcome.is_ok())
    }

    /// What a step found out, if it went well.
    fn found(&self, wanted: Step) -> Option<&str> {
        let (_, outcome) = self.steps.iter().find(|(step, _)| *step == wanted)?;
        outcome.as_deref().ok()
    }

    pub(super) fn print(&self, with_details: bool, output: &mut Output) {
        let works = self.works();
        let state = if works { output.paint(GOOD, "works") } else { output.paint(BAD, "fails") };
        let name = output.paint(NAME, &clean_text(&self.device));
        let description = self.found(Step::Answers).unwrap_or_default();
        let plugin = output.paint(QUIET, &self.plugin);
        let parts = [state, name, clean_text(description), plugin];
        let line: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        output.line(&format!("  {}", line.join("  ")));
        if works && !with_details {
            // What was computed differs from device to device, and the rest does not.
            let others = self.steps.iter().filter(|(step, _)| *step != Step::Compute);
            let others: Vec<&str> = others.map(|(step, _)| step.name()).collect();
            sentence(output, 9, &others.join(", "));
            let computed = self.found(Step::Compute).unwrap_or_default();
            sentence(output, 9, &format!("{}: {computed}", Step::Compute.name()));
            return;
        }
        for (step, outcome) in &self.steps {
            match outcome {
                Ok(found) => sentence(output, 9, &format!("{}: {found}", step.name())),
                Err(finding) => finding.print(&format!("{}: ", step.name()), 9, output),
            }
        }
    }

    pub(super) fn in_json(&self) -> Value {
        let step = |(step, outcome): &(Step, Result<String, Finding>)| {
            in_json(json!({ "step": step.name() }), outcome)
        };
        let steps: Vec<Value> = self.steps.iter().map(step).collect();
        json!({ "device": self.device, "plugin": self.plugin, "works": self.works(), "steps": steps })
    }
}
