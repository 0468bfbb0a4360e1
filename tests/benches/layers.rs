//! What layers cost where a call costs little: `Add` of 4 elements on the CPU, through the core.
//!
//! The ways take turns within one run, so that disturbances of the machine affect all of them. Each sample is 100 calls, as a model
//! with 100 small nodes makes them.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::path::Path;
use std::time::Instant;

use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::BuiltInPlugin;
use oarlock_tests::bare_host::{CPU_PLUGIN, VALIDATE_PLUGIN, host_options};

/// Calls per sample.
const CALLS_PER_SAMPLE: u32 = 100;
/// Samples of each way.
const SAMPLE_COUNT: usize = 2000;

/// The layers of each way, and their options.
const WAYS: [(&str, &str, &str); 6] = [
    ("no layer", "", ""),
    ("trace", "trace", "file = 'FILE'"),
    ("validate", "validate", ""),
    ("validate, without guards", "validate", "guards = 'off'"),
    ("record, full", "record", "file = 'FILE'"),
    ("record, shapes", "record", "file = 'FILE'\ncontents = 'shapes'"),
];

/// A runtime with layers, and what its calls need.
struct LayeredWork {
    runtime: Runtime,
    add: Op,
    operands: [Tensor; 2],
}

fn main() {
    let place = tempfile::tempdir().unwrap();
    let work = WAYS.map(|way| start_work(place.path(), way));
    let mut samples = WAYS.map(|_| Vec::with_capacity(SAMPLE_COUNT));
    for _ in 0..SAMPLE_COUNT {
        for (work, samples) in work.iter().zip(&mut samples) {
            samples.push(sample_calls(work));
        }
    }
    println!("{SAMPLE_COUNT} samples of {CALLS_PER_SAMPLE} calls each, in turns; nanoseconds a call\n");
    println!("| layers | p50 | p99 | p50 to no layer |\n|---|---|---|---|");
    let base = sample_quantile(&mut samples[0], 0.5);
    for ((name, ..), samples) in WAYS.iter().zip(&mut samples) {
        let (half, most) = (sample_quantile(samples, 0.5), sample_quantile(samples, 0.99));
        println!("| {name} | {half:.0} | {most:.0} | {:.2} |", half / base);
    }
}

fn start_work(scratch: &Path, (name, layer, options): (&str, &str, &str)) -> LayeredWork {
    let file = scratch.join(name).display().to_string();
    let layers = if layer.is_empty() { String::new() } else { format!("'{layer}'") };
    let section = if layer.is_empty() {
        String::new()
    } else {
        format!("[plugin.{layer}]\n{}", options.replace("FILE", &file))
    };
    let config = format!("[plugins]\nlayers = [{layers}]\n{section}");
    let built_in = [
        CPU_PLUGIN,
        BuiltInPlugin { name: "record", query: oarlock_plugin_record::QUERY },
        BuiltInPlugin { name: "trace", query: oarlock_plugin_trace::QUERY },
        VALIDATE_PLUGIN,
    ];
    let flags = Flags::from_environment(|_| None).unwrap();
    let runtime = Runtime::start(host_options("bench 1.0", &config, &built_in), flags).unwrap();
    let cpu = runtime.device("cpu").unwrap();
    let tensor = || Tensor::from_slice(&cpu, &[4], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    LayeredWork { add: Op::latest(&runtime, "Add").unwrap(), operands: [tensor(), tensor()], runtime }
}

fn sample_calls(work: &LayeredWork) -> f64 {
    let [left, right] = &work.operands;
    let start = Instant::now();
    for _ in 0..CALLS_PER_SAMPLE {
        work.add.run(&work.runtime, &[left, right]).unwrap();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS_PER_SAMPLE)
}

fn sample_quantile(samples: &mut [f64], part: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * part) as usize]
}
