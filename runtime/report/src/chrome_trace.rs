//! Chrome trace events, for Perfetto and Chrome.

use std::time::Duration;

use oarlock_engine::{StepTiming, StepView};
use serde_json::{Value, json};

use crate::graph_text::{describe_value, step_op_name};

/// The host's row; the devices follow.
const HOST_ROW: usize = 0;

/// Trace events, to be written as JSON.
pub struct TraceEvents {
    events: Vec<Value>,
    /// Device names, in the order of their rows.
    devices: Vec<String>,
    arrows: usize,
}

impl TraceEvents {
    /// A trace without spans, with a row for the host and each device.
    pub fn new(devices: &[String]) -> Self {
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

    /// Adds work of the engine itself.
    pub fn add_host_span(&mut self, name: &str, begin: Duration, end: Duration) {
        self.add_span(HOST_ROW, name, "engine", (begin, end), json!({}));
    }

    fn add_span(&mut self, row: usize, name: &str, category: &str, span: (Duration, Duration), args: Value) {
        let (begin, end) = (to_microseconds(span.0), to_microseconds(span.1));
        self.events.push(json!({
            "ph": "X", "pid": 1, "tid": row, "name": name, "cat": category, "ts": begin, "dur": end - begin, "args": args
        }));
    }

    /// Adds the host's launch and wait, and the device's work.
    pub fn add_step(&mut self, timing: &StepTiming, run: Duration) {
        let step = timing.step();
        let node = step.node();
        let op = step_op_name(step);
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

    /// The file that viewers read.
    pub fn into_json(self) -> Value {
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
            .map(|id| id.map_or_else(|| "-".to_owned(), |id| describe_value(step.plan().graph(), id)))
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
