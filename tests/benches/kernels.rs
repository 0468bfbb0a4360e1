//! How long kernels of the CPU take, through the core, on one thread and on two: a table in Markdown.
//!
//! With `--serve THREADS` it answers requests instead, so that `scripts/bench` can measure it in turn with its peers: each line
//! of the input is the name of a case of `tests/peers/cases.json` and a number of seconds to spend on it, with a tab between
//! them; the answer is the shortest time of a call in seconds.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::BufRead;
use std::time::{Duration, Instant};

use oarlock_core::flags::Flags;
use oarlock_core::{Attribute, Attributes, Invocation, Op, Runtime, Tensor};
use oarlock_host::{BuiltIn, Config, Environment, HostOptions, Identity};
use serde::Deserialize;

/// Seconds that a case of the table gets.
const SECONDS: f64 = 0.5;

/// A call to measure.
#[derive(Deserialize)]
struct Case {
    name: String,
    op: String,
    /// The shapes of the inputs, which are `f32`.
    inputs: Vec<Vec<i64>>,
    /// The version of the operators.
    #[serde(default = "newest")]
    opset: u32,
    #[serde(default = "one")]
    outputs: usize,
    #[serde(default)]
    attributes: HashMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Int(i64),
    Ints(Vec<i64>),
}

/// A version of the operators that the peers have too.
fn newest() -> u32 {
    22
}

fn one() -> usize {
    1
}

impl Case {
    fn all() -> Vec<Self> {
        serde_json::from_str(include_str!("../peers/cases.json")).expect("cases")
    }

    /// What makes the call.
    fn prepared<'a>(&self, runtime: &'a Runtime) -> impl Fn() + use<'a> {
        let cpu = runtime.device("cpu").expect("the CPU");
        let attributes = self.attributes.iter().fold(Attributes::new(), |all, (name, value)| {
            let value = match value {
                Value::Int(int) => Attribute::Int(*int),
                Value::Ints(ints) => Attribute::Ints(ints.clone()),
            };
            all.with(name, value)
        });
        let op = Op::new(runtime, "", &self.op, self.opset, attributes).expect("an op");
        let inputs: Vec<Tensor> = (self.inputs.iter())
            .map(|dims| Tensor::from_slice(&cpu, dims, &numbers(dims)).expect("a tensor"))
            .collect();
        let outputs = self.outputs;
        move || {
            let inputs: Vec<_> = inputs.iter().map(Some).collect();
            let call = Invocation { inputs: &inputs, outputs, device: None, stream: None };
            drop(black_box(op.invoke(runtime, &call).expect("results")));
        }
    }
}

/// Numbers from -4 to 4 in no order, the same as the peers have.
fn numbers(dims: &[i64]) -> Vec<f32> {
    let count = dims.iter().product::<i64>() as usize;
    (0..count).map(|index| ((index * 7919) % 2003) as f32 * (8.0 / 2003.0) - 4.0).collect()
}

/// The shortest time of a call in seconds, of as many as there is time for.
fn shortest(call: impl Fn(), seconds: f64) -> f64 {
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

fn runtime(threads: &str) -> Runtime {
    let environment = Environment::new(|_| None, false, Identity::of_process());
    let mut options = HostOptions::new("bench", Config::default(), environment);
    options.built_in = vec![BuiltIn { name: "oarlock-cpu", query: oarlock_plugin_cpu::QUERY }];
    let of_threads = |name: &str| (name == "OARLOCK_THREADS").then(|| threads.into());
    Runtime::start(options, Flags::from_environment(of_threads).expect("flags")).expect("a runtime")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "--serve") {
        Some(at) => serve(arguments.get(at + 1).expect("a number of threads after `--serve`")),
        None => print_table(),
    }
}

fn print_table() {
    let runtimes = ["1", "2"].map(runtime);
    println!("| kernel | 1 thread, ms | 2 threads, ms |\n|---|---|---|");
    for case in Case::all() {
        let times = runtimes.each_ref().map(|runtime| 1e3 * shortest(case.prepared(runtime), SECONDS));
        println!("| {} | {:.3} | {:.3} |", case.name, times[0], times[1]);
    }
}

fn serve(threads: &str) {
    let (cases, runtime) = (Case::all(), runtime(threads));
    let mut prepared = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (name, seconds) = line.split_once('\t').expect("a name, a tab and seconds");
        let call = prepared.entry(name.to_owned()).or_insert_with(|| {
            cases.iter().find(|case| case.name == name).expect("the name of a case").prepared(&runtime)
        });
        println!("{}", shortest(&*call, seconds.parse().expect("seconds")));
    }
}
