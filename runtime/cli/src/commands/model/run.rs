//! `oarlock run`: a model, from files to outputs.

use std::time::Instant;

use oarlock_engine::Datum;
use serde::Serialize;

use super::accuracy::Accuracy;
use super::fallback::FallbackReport;
use super::feeds::{Missing, Wish};
use super::outputs::{self, Made, Outputs};
use super::{Kind, Subject, milliseconds, show};
use crate::Verdict;
use crate::arguments::{Global, RunCall};
use crate::output::Output;

/// What there is to say to programs.
#[derive(Serialize)]
struct Report<'a> {
    model: String,
    devices: Vec<String>,
    inputs: Vec<Kind>,
    /// From the file to a session.
    load_ms: f64,
    /// With the plan for the shapes of the inputs, and kernels that are readied.
    run_ms: f64,
    /// Which device runs how many nodes, and what the CPU runs for others.
    fallback: FallbackReport,
    outputs: &'a [Made<'a>],
    /// What was rounded and how far that leads; nothing where all had to be exact.
    accuracy: Option<Accuracy>,
}

pub(crate) fn run(global: &Global, call: &RunCall, output: &mut Output) -> Verdict {
    let target = call.output.as_deref();
    target.map_or(Ok(()), outputs::check_target)?;
    let subject = Subject::load(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    target.map_or(Ok(()), |target| outputs::check_count(target, subject.session.outputs()))?;
    let missing = Missing::of_seed(call.feeds.random);
    let wish = Wish { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let given = subject.feeds(global, &wish)?;
    show(&subject.progress, "running …");
    let began = Instant::now();
    let data = subject.run(&given.data)?;
    let run_ms = milliseconds(began.elapsed());
    let fallback = subject.fallback(global, &call.choice, &given.data)?;
    let mut made = Outputs::fetch(subject.session.outputs(), &data, target.is_some())?;
    if let Some(target) = target {
        made.write(target)?;
    }
    let accuracy = Accuracy::measure(&subject, &given.data, &data)?;
    super::clear(&subject.progress);
    let slots = subject.session.inputs().iter().chain(subject.session.optional_inputs());
    let inputs = slots.zip(&given.data).filter(|(_, datum)| !matches!(datum, Datum::Nothing));
    let report = Report {
        model: call.choice.file.display().to_string(),
        devices: subject.devices(),
        inputs: inputs.map(|(slot, datum)| Kind::of(&slot.name, datum)).collect(),
        load_ms: milliseconds(subject.loading + subject.preparing),
        run_ms,
        fallback,
        outputs: &made.made,
        accuracy,
    };
    super::tell(global, output, &report, |output| {
        made.print(output);
        report.accuracy.iter().for_each(|accuracy| accuracy.tell(global));
    })?;
    Ok(subject.is_complete)
}
