//! `oarlock run`: a model, from files to outputs.

use std::time::Instant;

use oarlock_engine::RuntimeValue;
use serde::Serialize;

use super::accuracy::AccuracyReport;
use super::model_inputs::{InputRequest, MissingInputs};
use super::outputs::{self, ModelOutputs, OutputTensor};
use super::{PreparedModel, show_progress};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, RunArguments};
use crate::output::CommandOutput;
use oarlock_report::fallback_report::FallbackReport;
use oarlock_report::text::to_milliseconds;
use oarlock_report::value_description::ValueDescription;

#[derive(Serialize)]
struct RunReport<'a> {
    model: String,
    devices: Vec<String>,
    inputs: Vec<ValueDescription>,
    /// From the file to a session.
    load_ms: f64,
    /// Includes planning for the input shapes and preparing kernels.
    run_ms: f64,
    /// Nodes on each device, and what the CPU runs for other devices.
    fallback: FallbackReport,
    outputs: &'a [OutputTensor<'a>],
    /// Effect of rounding; `None` if everything was exact.
    accuracy: Option<AccuracyReport>,
}

pub(crate) fn run_model(
    global: &GlobalOptions,
    call: &RunArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let target = call.output.as_deref();
    target.map_or(Ok(()), outputs::check_output_target)?;
    let subject = PreparedModel::load_model(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    target.map_or(Ok(()), |target| outputs::check_output_count(target, subject.session.outputs()))?;
    let missing = MissingInputs::from_seed(call.feeds.random);
    let wish = InputRequest { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let given = subject.resolve_inputs(global, &wish)?;
    show_progress(&subject.progress, "running …");
    let began = Instant::now();
    let data = subject.run(&given.data)?;
    let run_ms = to_milliseconds(began.elapsed());
    let fallback = subject.report_fallback(global, &call.choice, &given.data)?;
    let mut made = ModelOutputs::fetch_outputs(subject.session.outputs(), &data, target.is_some())?;
    if let Some(target) = target {
        made.write_outputs(target)?;
    }
    let accuracy = AccuracyReport::measure_accuracy(&subject, &given.data, &data)?;
    super::clear_progress(&subject.progress);
    let slots = subject.session.inputs().iter().chain(subject.session.optional_inputs());
    let inputs = slots.zip(&given.data).filter(|(_, value)| !matches!(value, RuntimeValue::Nothing));
    let report = RunReport {
        model: call.choice.file.display().to_string(),
        devices: subject.device_names(),
        inputs: inputs.map(|(slot, value)| ValueDescription::from_value(&slot.name, value)).collect(),
        load_ms: to_milliseconds(subject.loading + subject.preparing),
        run_ms,
        fallback,
        outputs: &made.made,
        accuracy,
    };
    super::report_result(global, output, &report, |output| {
        made.print_outputs(output);
        report.accuracy.iter().for_each(|accuracy| accuracy.report_rounding(global));
    })?;
    Ok(subject.is_complete)
}
