//! Models that are planned and run: arbitrary files, and well-formed graphs that make no sense.
//!
//! Most mutations of files act on the decoded message, so the result is still a model.
#![no_main]

#[expect(dead_code, unused_imports, reason = "the rest is for the test of calls")]
#[path = "../../tests/front_door/door/mod.rs"]
mod door;
#[path = "../../tests/hostile_models/files.rs"]
mod files;
#[path = "../../tests/hostile_models/graphs.rs"]
mod graphs;
#[expect(dead_code, reason = "the rest is for models that are only read")]
mod message;
#[path = "../../tests/hostile_models/trial.rs"]
mod trial;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target, fuzzer_mutate};
use oarlock_core::Runtime;
use oarlock_engine::import;

use door::ChoiceSource;
use message::PseudoRandom;
use trial::ModelTrial;

/// Every request gets a separate chunk, so that AddressSanitizer detects out-of-bounds accesses.
const FLAGS: [(&str, &str); 3] =
    [("allocator_strategy", "best_fit"), ("device_memory_initial", "1"), ("device_memory_refill", "1")];

/// Head of an input: the kind of model, choices for the run, and the number of parameter bytes, which come before the file.
const HEAD: usize = 1 + 80 + 2;

static RUNTIME: LazyLock<Arc<Runtime>> = LazyLock::new(|| Arc::new(trial::start_runtime(&FLAGS)));

fuzz_target!(|bytes: &[u8]| {
    let trial = match graph_source(bytes) {
        GraphSource::Onnx => {
            let (choices, _, file) = parts(bytes);
            let model = import::onnx::decode_onnx(file.to_vec().into(), None);
            ModelTrial::from_file(model, &mut ChoiceSource::new(choices), |_| Ok(Vec::new()))
        }
        GraphSource::Paddle => {
            let (choices, parameters, file) = parts(bytes);
            let model = import::paddle::decode_paddle(file.to_vec().into(), Some(parameters.to_vec().into()));
            ModelTrial::from_file(model, &mut ChoiceSource::new(choices), |_| Ok(Vec::new()))
        }
        GraphSource::Generated => {
            ModelTrial::random_graph(&mut ChoiceSource::new(bytes.get(1..).unwrap_or_default()))
        }
    };
    if let Err(complaint) = trial.run_trial(&RUNTIME) {
        panic!("{complaint}");
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = PseudoRandom::new(seed);
    let graph_source = graph_source(&data[..size]);
    if graph_source == GraphSource::Generated || random.below(8) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    if random.below(6) == 0 {
        // The kind and the number of parameters are not mutated.
        let choices = &mut data[1..HEAD - 2];
        let count = choices.len();
        fuzzer_mutate(choices, count, count);
        return size;
    }
    let begin = size - parts(&data[..size]).2.len();
    let file = &data[begin..size];
    let changed = match graph_source {
        GraphSource::Onnx if random.below(2) == 0 => {
            Some(files::change_bytes(file, &mut ChoiceSource::new(&random.bytes(256))))
        }
        _ => message::changed(file, &mut random),
    };
    match changed.filter(|changed| begin + changed.len() <= max_size) {
        Some(changed) => replace(data, begin, &changed),
        None => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_crossover!(|data1: &[u8], data2: &[u8], out: &mut [u8], seed: u32| {
    let (graph_source, other) = (graph_source(data1), graph_source(data2));
    let crossed = if graph_source == other && graph_source != GraphSource::Generated {
        message::crossed(parts(data1).2, parts(data2).2, &mut PseudoRandom::new(seed))
    } else {
        None
    };
    let begin = crossed.as_ref().map_or(data1.len(), |_| data1.len() - parts(data1).2.len());
    let crossed = crossed.unwrap_or_default();
    if begin + crossed.len() > out.len() {
        return 0;
    }
    out[..begin].copy_from_slice(&data1[..begin]);
    replace(out, begin, &crossed)
});

#[derive(Clone, Copy, PartialEq, Eq)]
enum GraphSource {
    Onnx,
    Paddle,
    Generated,
}

fn graph_source(bytes: &[u8]) -> GraphSource {
    match bytes.first().map(|how| how % 4) {
        Some(0) if bytes.len() >= HEAD => GraphSource::Onnx,
        Some(1) if bytes.len() >= HEAD => GraphSource::Paddle,
        _ => GraphSource::Generated,
    }
}

/// Splits an input with a complete head into choices, parameters and file.
fn parts(bytes: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let (head, rest) = bytes.split_at(HEAD);
    let size = u16::from_be_bytes([head[HEAD - 2], head[HEAD - 1]]);
    let (parameters, file) = rest.split_at(usize::from(size).min(rest.len()));
    (&head[1..HEAD - 2], parameters, file)
}

/// Replaces the file; returns the size of the whole input.
fn replace(data: &mut [u8], begin: usize, file: &[u8]) -> usize {
    data[begin..begin + file.len()].copy_from_slice(file);
    begin + file.len()
}
