//! Times CPU kernels through the core, on one thread and on two, as a Markdown table.
//!
//! With `--serve THREADS` it answers requests instead, so that `scripts/bench` can interleave it with its peers. Each input
//! line is the name of a case in `tests/peers/cases.json`, a tab, and the seconds to spend on it; the answer is the shortest
//! time of a call in seconds.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::BufRead;
use std::time::{Duration, Instant};

use oarlock_core::flags::Flags;
use oarlock_core::{Attribute, Attributes, Op, OpInvocation, Runtime, Tensor};
use oarlock_host::{BuiltInPlugin, HostConfig, HostEnvironment, HostOptions, ProcessIdentity};
use serde::Deserialize;

/// Seconds spent on each case of the table.
const SECONDS_PER_CASE: f64 = 0.5;

#[derive(Deserialize)]
struct BenchmarkCase {
    name: String,
    op: String,
    /// Shapes of the `f32` inputs.
    inputs: Vec<Vec<i64>>,
    /// Opset version.
    #[serde(default = "default_version")]
    opset: u32,
    #[serde(default = "default_count")]
    outputs: usize,
    #[serde(default)]
    attributes: HashMap<String, BenchmarkValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BenchmarkValue {
    Int(i64),
    Ints(Vec<i64>),
}

/// An opset version that the peers support too.
fn default_version() -> u32 {
    22
}

fn default_count() -> usize {
    1
}

impl BenchmarkCase {
    fn all_cases() -> Vec<Self> {
        serde_json::from_str(include_str!("../peers/cases.json")).expect("cases")
    }

    /// Prepares inputs and op, and returns a closure that makes the call.
    fn prepare_call<'a>(&self, runtime: &'a Runtime) -> impl Fn() + use<'a> {
        let cpu = runtime.device("cpu").expect("the CPU");
        let attributes = self.attributes.iter().fold(Attributes::new(), |all, (name, value)| {
            let value = match value {
                BenchmarkValue::Int(int) => Attribute::Int(*int),
                BenchmarkValue::Ints(ints) => Attribute::Ints(ints.clone()),
            };
            all.with_attribute(name, value)
        });
        let op = Op::new(runtime, "", &self.op, self.opset, attributes).expect("an op");
        let inputs: Vec<Tensor> = (self.inputs.iter())
            .map(|dims| Tensor::from_slice(&cpu, dims, &sample_numbers(dims)).expect("a tensor"))
            .collect();
        let outputs = self.outputs;
        move || {
            let inputs: Vec<_> = inputs.iter().map(Some).collect();
            let call = OpInvocation { inputs: &inputs, outputs, device: None, stream: None };
            drop(black_box(op.invoke(runtime, &call).expect("results")));
        }
    }
}

/// Numbers from -4 to 4 in scrambled order, identical to those of the peers.
fn sample_numbers(dims: &[i64]) -> Vec<f32> {
    let count = dims.iter().product::<i64>() as usize;
    (0..count).map(|index| ((index * 7919) % 2003) as f32 * (8.0 / 2003.0) - 4.0).collect()
}

/// The shortest time of a call in seconds, out of as many as fit into the given time.
fn shortest_time(call: impl Fn(), seconds: f64) -> f64 {
    let limit = Duration::from_secs_f64(seconds);
    let begin = Instant::now();
    let mut shortest = f64::INFINITY;
    loop {
        let start = Instant::now();
        call();
        shortest = shortest.min(start.elapsed().as_secs_f64());
        if begin.elapsed() > limit {
            return shortest;
        }
    }
}

fn start_runtime(threads: &str) -> Runtime {
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    let mut options = HostOptions::new("bench", HostConfig::default(), environment);
    options.built_in = vec![BuiltInPlugin { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY }];
    let of_threads = |name: &str| (name == "OARLOCK_THREADS").then(|| threads.into());
    Runtime::start(options, Flags::from_environment(of_threads).expect("flags")).expect("a runtime")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "--serve") {
        Some(at) => serve_requests(arguments.get(at + 1).expect("a number of threads after `--serve`")),
        None => print_table(),
    }
}

fn print_table() {
    let runtimes = ["1", "2"].map(start_runtime);
    println!("| kernel | 1 thread, ms | 2 threads, ms |\n|---|---|---|");
    for case in BenchmarkCase::all_cases() {
        let times = runtimes
            .each_ref()
            .map(|runtime| 1e3 * shortest_time(case.prepare_call(runtime), SECONDS_PER_CASE));
        println!("| {} | {:.3} | {:.3} |", case.name, times[0], times[1]);
    }
}

fn serve_requests(threads: &str) {
    let (cases, runtime) = (BenchmarkCase::all_cases(), start_runtime(threads));
    let mut prepared = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (name, seconds) = line.split_once('\t').expect("a name, a tab and seconds");
        let call = prepared.entry(name.to_owned()).or_insert_with(|| {
            cases.iter().find(|case| case.name == name).expect("the name of a case").prepare_call(&runtime)
        });
        println!("{}", shortest_time(&*call, seconds.parse().expect("seconds")));
    }
}
