//! Measures the effect of permitted rounding on the outputs.

use std::collections::BTreeMap;

use oarlock_engine::{ExecutionPlan, PrecisionMode, RoundingReport, RuntimeValue, Session, SessionOptions};
use serde::Serialize;

use super::difference::largest_difference;
use super::{PreparedModel, show_progress, wait_for_value};
use crate::arguments::GlobalOptions;
use crate::output;
use crate::problem::CommandError;
use crate::render::format_count;

/// How much of a plan is rounded.
#[derive(Serialize)]
pub(super) struct RoundingExtent {
    precision: &'static str,
    /// Convolutions and products that round their factors.
    rounded: usize,
    /// The number of exact ones, by reason.
    exact: BTreeMap<String, usize>,
}

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

impl RoundingExtent {
    /// `None` if the session computes exactly.
    pub(super) fn from_plan(
        subject: &PreparedModel,
        plan: &ExecutionPlan,
    ) -> Result<Option<Self>, CommandError> {
        if subject.precision == PrecisionMode::F32 {
            return Ok(None);
        }
        let RoundingReport { rounded, whole } =
            RoundingReport::from_plan(plan, &subject.core.runtime, subject.input_device()?);
        let mut exact = BTreeMap::new();
        whole.into_iter().for_each(|reason| *exact.entry(reason).or_default() += 1);
        Ok(Some(Self { precision: subject.precision.name(), rounded, exact }))
    }

    pub(super) fn to_sentences(&self) -> Vec<String> {
        let Self { precision, rounded, exact } = self;
        let all = format_count(
            rounded + exact.values().sum::<usize>(),
            "product or convolution",
            "products and convolutions",
        );
        let extent = format!("{precision} in {rounded} of {all} of f32");
        let exact = exact.iter().map(|(reason, count)| format!("not in {count}: {reason}"));
        std::iter::once(extent).chain(exact).collect()
    }
}

impl AccuracyReport {
    /// Runs the model once more, exactly, and compares the outputs; `None` if it was exact anyway.
    pub(super) fn measure_accuracy(
        subject: &PreparedModel,
        inputs: &[RuntimeValue],
        made: &[RuntimeValue],
    ) -> Result<Option<Self>, CommandError> {
        let Some(extent) = RoundingExtent::from_plan(subject, &*subject.session.plan(inputs)?)? else {
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
