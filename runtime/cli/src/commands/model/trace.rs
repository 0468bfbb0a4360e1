//! `oarlock trace`: when each node of a model ran, as Perfetto and Chrome show it.
//!
//! The file is a list of events as Chrome has it: one process, with a row for the host and one for each device. An arrow
//! leads from where the host launches a step to the work on the device. Steps are waited for one by one, since only then
//! is it known which of them a device was at work on.

use std::time::{Duration, Instant};

use oarlock_engine::{StepInfo, Timing, Timings};
use serde_json::{Value, json};

use super::feeds::{Missing, Wish};
use super::{Subject, clear, milliseconds, op_of, show, time};
use crate::Verdict;
use crate::arguments::{Global, TraceCall};
use crate::output::Output;
use crate::problem::Problem;
use crate::render::{count, sentence};
use crate::{target, watched};

/// The row of the host; those of the devices follow.
const HOST: usize = 0;

pub(crate) fn run(global: &Global, call: &TraceCall, output: &mut Output) -> Verdict {
    target::check([call.output.as_path()])?;
    let subject = Subject::load(global, &call.choice, call.exactness)?;
    subject.check_outputs(&call.choice)?;
    let is_open = call.feeds.inputs.is_empty();
    let missing = Missing::of_seed(call.feeds.random.or(if is_open { Some(0) } else { None }));
    let wish = Wish { inputs: &call.feeds.inputs, shapes: &call.choice.shapes, missing };
    let inputs = subject.feeds(global, &wish)?.data;
    show(&subject.progress, "running for the first time …");
    let mut trace = Trace::new(&subject.devices());
    let since = |moment: Instant| moment.duration_since(subject.began);
    trace.host("read the model", Duration::ZERO, subject.loading);
    trace.host("optimise", subject.loading, subject.loading + subject.preparing);
    let first = since(Instant::now());
    subject.session.plan(&inputs)?;
    trace.host("plan, with kernels that are readied", first, since(Instant::now()));
    let first = since(Instant::now());
    subject.run(&inputs)?;
    trace.host("first run", first, since(Instant::now()));
    let fallback = subject.fallback(global, &call.choice, &inputs)?;
    let mut runs = Vec::new();
    let (mut taken, mut omitted) = (0, 0);
    for run in 0..call.repeat {
        show(&subject.progress, "running step by step …");
        let begin = since(Instant::now());
        let Timings { steps, omitted: too_many } = subject.session.run_timed(&inputs)?.1;
        let end = since(Instant::now());
        trace.host(&format!("run {}", run + 1), begin, end);
        steps.iter().for_each(|timing| trace.step(timing, begin));
        (taken, omitted) = (steps.len(), too_many);
        runs.push(milliseconds(end - begin));
    }
    clear(&subject.progress);
    let text = serde_json::to_string(&trace.finish()).map_err(Problem::new)?;
    target::write_text(&call.output, &text)?;
    if global.json {
        let file = call.output.display().to_string();
        let report = json!({ "file": file, "devices": subject.devices(), "fallback": fallback, "steps": taken, "omitted": omitted, "runs_ms": runs });
        crate::commands::print_json(output, &report)?;
    } else {
        let times: Vec<String> = runs.iter().map(|run| time(*run)).collect();
        let file = call.output.display();
        let steps = count(taken, "step", "steps");
        let runs = count(runs.len(), "run", "runs");
        sentence(output, 0, &format!("{runs} of {steps} in {}, written to `{file}`", times.join(", ")));
        if omitted > 0 {
            let steps = count(omitted, "further step", "further steps");
            sentence(output, 0, &format!("{steps} of loops are left out, as nobody could look at so many"));
        }
        sentence(
            output,
            0,
            "open it at https://ui.perfetto.dev, which keeps it on this machine, or at chrome://tracing",
        );
        let note = "each step is waited for, so that its time is its own; runs take longer than without";
        sentence(output, 0, note);
    }
    output.flush();
    watched::tell("the plugins were ended");
    Ok(subject.is_complete)
}

/// Events on their way to a file.
struct Trace {
    events: Vec<Value>,
    /// The names of the devices, in the order of their rows.
    devices: Vec<String>,
    arrows: usize,
}

impl Trace {
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

    fn host(&mut self, name: &str, begin: Duration, end: Duration) {
        self.span(HOST, name, "engine", (begin, end), json!({}));
    }

    fn span(&mut self, row: usize, name: &str, category: &str, span: (Duration, Duration), args: Value) {
        let (begin, end) = (microseconds(span.0), microseconds(span.1));
        self.events.push(json!({
            "ph": "X", "pid": 1, "tid": row, "name": name, "cat": category, "ts": begin, "dur": end - begin, "args": args
        }));
    }

    /// One step: the host launches it and waits, the device does it.
    fn step(&mut self, timing: &Timing, run: Duration) {
        let step = timing.step();
        let node = step.node();
        let op = if step.is_copy() { "copy".to_owned() } else { op_of(&node.domain, &node.op) };
        let name = if node.name.is_empty() { op.clone() } else { format!("{op} {}", node.name) };
        let device = self.devices.iter().position(|device| device == step.device().name());
        let row = device.map_or(HOST, |device| device + 1);
        let [begin, launched, end] = [timing.begin, timing.launched, timing.end].map(|time| run + time);
        self.span(HOST, &format!("launch {op}"), "launch", (begin, launched), json!({ "node": &*node.name }));
        self.span(HOST, "wait", "wait", (launched, end), json!({ "node": &*node.name }));
        self.span(row, &name, &op, (begin, end), arguments(step));
        self.arrows += 1;
        let arrow = |phase: &str, row: usize| {
            json!({ "ph": phase, "pid": 1, "tid": row, "name": "launch", "cat": "launch", "id": self.arrows,
                "ts": microseconds(begin), "bp": "e" })
        };
        let arrows = [arrow("s", HOST), arrow("f", row)];
        self.events.extend(arrows);
    }

    fn finish(self) -> Value {
        let note =
            "each step was waited for; a device's rows are the times from launch to the end of the wait";
        json!({ "traceEvents": self.events, "displayTimeUnit": "ns", "otherData": {
            "program": concat!("oarlock ", env!("CARGO_PKG_VERSION")), "note": note } })
    }
}

/// What else there is to know of a step.
fn arguments(step: StepInfo<'_>) -> Value {
    let (node, cost) = (step.node(), step.cost());
    let kinds = |ids: &[Option<oarlock_engine::graph::ValueId>]| -> Vec<String> {
        ids.iter()
            .map(|id| id.map_or_else(|| "-".to_owned(), |id| super::kind_of(step.plan().graph(), id)))
            .collect()
    };
    json!({
        "node": &*node.name, "kernel": step.runner(), "how": step.description(), "inputs": kinds(&node.inputs), "outputs": kinds(&node.outputs),
        "flops": cost.flops, "bytes": cost.bytes
    })
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_name_and_every_span_a_length() {
        let mut trace = Trace::new(&["cpu:0".to_owned()]);
        trace.host("read", Duration::ZERO, Duration::from_micros(3));
        let events = trace.finish()["traceEvents"].clone();
        let names: Vec<&Value> =
            events.as_array().unwrap().iter().map(|event| &event["args"]["name"]).collect();
        assert!(names.contains(&&json!("host")) && names.contains(&&json!("cpu:0")), "{names:?}");
        let span = events.as_array().unwrap().last().unwrap();
        assert_eq!((&span["ph"], &span["ts"], &span["dur"]), (&json!("X"), &json!(0.0), &json!(3.0)));
    }
}
