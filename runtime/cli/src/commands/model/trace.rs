//! `oarlock trace`: a timeline of each node of a model, for Perfetto and Chrome.
//!
//! The file is a list of Chrome trace events: one process, with a row for the host and one for each device. An arrow leads
//! from the launch on the host to the work on the device. Each step is awaited before the next starts, because only then is
//! it known which step a device was busy with.

use std::time::{Duration, Instant};

use oarlock_engine::RunTimings;
use oarlock_report::chrome_trace::TraceEvents;
use serde_json::json;

use super::model_inputs::{InputRequest, MissingInputs};
use super::{PreparedModel, clear_progress, show_progress};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, TraceArguments};
use crate::output::CommandOutput;
use crate::output_file;
use crate::problem::CommandError;
use crate::render::print_sentence;
use oarlock_report::text::format_count;
use oarlock_report::text::{format_milliseconds, to_milliseconds};

pub(crate) fn trace_model(
    global: &GlobalOptions,
    call: &TraceArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    output_file::check_output_files([call.output.as_path()])?;
    let subject = PreparedModel::load_model(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    let is_open = call.feeds.inputs.is_empty();
    let missing = MissingInputs::from_seed(call.feeds.random.or(if is_open { Some(0) } else { None }));
    let wish = InputRequest { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let inputs = subject.resolve_inputs(global, &wish)?.data;
    show_progress(&subject.progress, "running for the first time …");
    let mut trace = TraceEvents::new(&subject.device_names());
    let since = |moment: Instant| moment.duration_since(subject.began);
    trace.add_host_span("read the model", Duration::ZERO, subject.loading);
    trace.add_host_span("optimize", subject.loading, subject.loading + subject.preparing);
    let first = since(Instant::now());
    subject.plan_inputs(&inputs)?;
    trace.add_host_span("plan, with kernels that are readied", first, since(Instant::now()));
    let first = since(Instant::now());
    subject.run(&inputs)?;
    trace.add_host_span("first run", first, since(Instant::now()));
    let fallback = subject.report_fallback(global, &call.choice, &inputs)?;
    let mut runs = Vec::new();
    let (mut taken, mut omitted) = (0, 0);
    for run in 0..call.repeat {
        show_progress(&subject.progress, "running step by step …");
        let begin = since(Instant::now());
        let RunTimings { steps, omitted: too_many } = subject.session.run_timed(&inputs)?.1;
        let end = since(Instant::now());
        trace.add_host_span(&format!("run {}", run + 1), begin, end);
        steps.iter().for_each(|timing| trace.add_step(timing, begin));
        (taken, omitted) = (steps.len(), too_many);
        runs.push(to_milliseconds(end - begin));
    }
    clear_progress(&subject.progress);
    let text = serde_json::to_string(&trace.into_json()).map_err(CommandError::new)?;
    output_file::write_text_file(&call.output, &text)?;
    if global.json {
        let file = call.output.display().to_string();
        let report = json!({ "file": file, "devices": subject.device_names(), "fallback": fallback, "steps": taken, "omitted": omitted, "runs_ms": runs });
        crate::commands::print_json(output, &report)?;
    } else {
        let times: Vec<String> = runs.iter().map(|run| format_milliseconds(*run)).collect();
        let file = call.output.display();
        let steps = format_count(taken, "step", "steps");
        let runs = format_count(runs.len(), "run", "runs");
        print_sentence(output, 0, &format!("{runs} of {steps} in {}, written to `{file}`", times.join(", ")));
        if omitted > 0 {
            let steps = format_count(omitted, "further step", "further steps");
            print_sentence(
                output,
                0,
                &format!("{steps} of loops are left out, as nobody could look at so many"),
            );
        }
        print_sentence(
            output,
            0,
            "open it at https://ui.perfetto.dev, which keeps it on this machine, or at chrome://tracing",
        );
        let note = "each step is waited for, so that its time is its own; runs take longer than without";
        print_sentence(output, 0, note);
    }
    output.flush();
    Ok(subject.is_complete)
}
