//! `oarlock trace`: a timeline of each node of a model, for Perfetto and Chrome.
//!
//! The file is a list of Chrome trace events: one process, with a row for the host and one for each device. An arrow leads
//! from the launch on the host to the work on the device. Each step is awaited before the next starts, because only then is
//! it known which step a device was busy with.

use std::time::{Duration, Instant};

use oarlock_engine::{RunTimings, StepTiming, StepView};
use serde_json::{Value, json};

use super::model_inputs::{InputRequest, MissingInputs};
use super::{
    PreparedModel, clear_progress, format_milliseconds, qualified_op_name, show_progress, to_milliseconds,
};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, TraceArguments};
use crate::output::CommandOutput;
use crate::problem::CommandError;
use crate::render::{format_count, print_sentence};
use crate::{crash_watcher, output_file};

/// The host's row; the devices follow.
const HOST_ROW: usize = 0;

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
    subject.session.plan(&inputs)?;
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
    crash_watcher::send_status("the plugins were ended");
    Ok(subject.is_complete)
}

/// Trace events, to be written as JSON.
struct TraceEvents {
    events: Vec<Value>,
    /// Device names, in the order of their rows.
    devices: Vec<String>,
    arrows: usize,
}

impl TraceEvents {
    fn new(devices: &[String]) -> Self {
        let mut trace = Self { events: Vec::new(), devices: devices.to_vec(), arrows: 0 };
        trace
            .events
            .push(json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": "oarlock" } }));
        let rows = std::iter::once("host").chain(devices.iter().map(String::as_str));
        for (row, name) in rows.enumerate() {
            trace.events.push(
                json!({ "ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": { "name": name } }),
            );
            trace.events.push(json!({ "ph": "M", "pid": 1, "tid": row, "name": "thread_sort_index", "args": { "sort_index": row } }));
        }
        trace
    }

    fn add_host_span(&mut self, name: &str, begin: Duration, end: Duration) {
        self.add_span(HOST_ROW, name, "engine", (begin, end), json!({}));
    }

    fn add_span(&mut self, row: usize, name: &str, category: &str, span: (Duration, Duration), args: Value) {
        let (begin, end) = (to_microseconds(span.0), to_microseconds(span.1));
        self.events.push(json!({
            "ph": "X", "pid": 1, "tid": row, "name": name, "cat": category, "ts": begin, "dur": end - begin, "args": args
        }));
    }

    /// Adds the host's launch and wait, and the device's work.
    fn add_step(&mut self, timing: &StepTiming, run: Duration) {
        let step = timing.step();
        let node = step.node();
        let op = if step.is_copy() { "copy".to_owned() } else { qualified_op_name(&node.domain, &node.op) };
        let name = if node.name.is_empty() { op.clone() } else { format!("{op} {}", node.name) };
        let device = self.devices.iter().position(|device| device == step.device().name());
        let row = device.map_or(HOST_ROW, |device| device + 1);
        let [begin, launched, end] = [timing.begin, timing.launched, timing.end].map(|time| run + time);
        self.add_span(
            HOST_ROW,
            &format!("launch {op}"),
            "launch",
            (begin, launched),
            json!({ "node": &*node.name }),
        );
        self.add_span(HOST_ROW, "wait", "wait", (launched, end), json!({ "node": &*node.name }));
        self.add_span(row, &name, &op, (begin, end), step_arguments(step));
        self.arrows += 1;
        let arrow = |phase: &str, row: usize| {
            json!({ "ph": phase, "pid": 1, "tid": row, "name": "launch", "cat": "launch", "id": self.arrows,
                "ts": to_microseconds(begin), "bp": "e" })
        };
        let arrows = [arrow("s", HOST_ROW), arrow("f", row)];
        self.events.extend(arrows);
    }

    fn into_json(self) -> Value {
        let note =
            "each step was waited for; a device's rows are the times from launch to the end of the wait";
        json!({ "traceEvents": self.events, "displayTimeUnit": "ns", "otherData": {
            "program": concat!("oarlock ", env!("CARGO_PKG_VERSION")), "note": note } })
    }
}

/// Details that the viewer shows for a selected step.
fn step_arguments(step: StepView<'_>) -> Value {
    let (node, cost) = (step.node(), step.cost());
    let kinds = |ids: &[Option<oarlock_engine::graph::ValueId>]| -> Vec<String> {
        ids.iter()
            .map(|id| id.map_or_else(|| "-".to_owned(), |id| super::describe_value(step.plan().graph(), id)))
            .collect()
    };
    json!({
        "node": &*node.name, "kernel": step.runner(), "how": step.description(), "inputs": kinds(&node.inputs), "outputs": kinds(&node.outputs),
        "flops": cost.flops, "bytes": cost.bytes
    })
}

fn to_microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_every_span_a_length() {
        let mut trace = TraceEvents::new(&["cpu:0".to_owned()]);
        trace.add_host_span("read", Duration::ZERO, Duration::from_micros(3));
        let events = trace.into_json()["traceEvents"].clone();
        let names: Vec<&Value> =
            events.as_array().unwrap().iter().map(|event| &event["args"]["name"]).collect();
        assert!(names.contains(&&json!("host")) && names.contains(&&json!("cpu:0")), "{names:?}");
        let span = events.as_array().unwrap().last().unwrap();
        assert_eq!((&span["ph"], &span["ts"], &span["dur"]), (&json!("X"), &json!(0.0), &json!(3.0)));
    }
}
