//! Measures the effect of permitted rounding on the outputs.

use oarlock_engine::{ExecutionPlan, RuntimeValue, Session, SessionOptions};
use oarlock_report::rounding::RoundingExtent;
use serde::Serialize;

use super::{PreparedModel, show_progress, wait_for_value};
use crate::arguments::GlobalOptions;
use crate::output;
use crate::problem::CommandError;
use oarlock_report::difference::largest_difference;

/// The extent of rounding and its effect.
#[derive(Serialize)]
pub(super) struct AccuracyReport {
    #[serde(flatten)]
    extent: RoundingExtent,
    outputs: Vec<OutputDifference>,
}

/// The distance of an output from the exact result.
#[derive(Serialize)]
struct OutputDifference {
    name: String,
    /// Largest absolute difference over the largest element; `None` if it is no tensor of numbers.
    largest_difference: Option<f64>,
}

impl AccuracyReport {
    /// Runs the model once more, exactly, and compares the outputs; `None` if it was exact anyway.
    pub(super) fn measure_accuracy(
        subject: &PreparedModel,
        inputs: &[RuntimeValue],
        made: &[RuntimeValue],
    ) -> Result<Option<Self>, CommandError> {
        let Some(extent) = subject.rounding_extent(&*subject.session.plan(inputs)?)? else {
            return Ok(None);
        };
        show_progress(&subject.progress, "running in f32, to compare …");
        let options = SessionOptions {
            devices: subject.session.devices().to_vec(),
            is_plain: subject.is_plain,
            ..SessionOptions::default()
        };
        let exact = Session::new(subject.core.runtime.clone(), &subject.model, &options)?.run(inputs)?;
        exact.iter().try_for_each(wait_for_value)?;
        let slots = subject.session.outputs().iter().zip(made.iter().zip(&exact));
        let outputs = slots.map(|(slot, pair)| {
            let largest_difference = match pair {
                (RuntimeValue::Tensor(made), RuntimeValue::Tensor(exact)) => largest_difference(made, exact)?,
                _ => None,
            };
            Ok(OutputDifference { name: slot.name.to_string(), largest_difference })
        });
        Ok(Some(Self { extent, outputs: outputs.collect::<Result<_, CommandError>>()? }))
    }

    /// One sentence about what was rounded, and one for each output.
    pub(super) fn to_sentences(&self) -> Vec<String> {
        let difference = |output: &OutputDifference| {
            let name = oarlock_host::sanitize_text(&output.name);
            match output.largest_difference {
                Some(0.0) => format!("`{name}` is what it is in f32"),
                Some(difference) => {
                    format!("`{name}` differs from f32 by {difference:.1e} of its largest element at most")
                }
                None => format!("`{name}` cannot be compared with that of f32"),
            }
        };
        self.extent.to_sentences().into_iter().chain(self.outputs.iter().map(difference)).collect()
    }

    /// Prints the effect to standard error.
    pub(super) fn report_rounding(&self, global: &GlobalOptions) {
        self.to_sentences()
            .iter()
            .for_each(|sentence| output::print_message(global.color, "note", sentence, None));
    }
}

impl PreparedModel {
    /// How much of a plan is rounded; `None` if nothing may be.
    pub(super) fn rounding_extent(
        &self,
        plan: &ExecutionPlan,
    ) -> Result<Option<RoundingExtent>, CommandError> {
        let device = self.input_device()?;
        Ok(RoundingExtent::from_plan(plan, self.precision, &self.core.runtime, device))
    }
}
