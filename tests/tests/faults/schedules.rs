//! Real ops in several streams, in any order that the device chooses.

use oarlock_core::stream::Stream;
use oarlock_core::{Attributes, Device, ErrorKind, Op, OpInvocation, Runtime, Tensor};

use crate::program::{call_op, start_with_flags, whole_numbers};

const MATRIX_SIDE: i64 = 48;
/// More tensors than fit into memory at once, so that streams reuse memory that others dropped.
const STEP_COUNT: usize = 160;

/// A deterministic source of small numbers.
struct SeededDraw(u64);

impl SeededDraw {
    fn next_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A chain of ops over a few tensors, each dropped as soon as another replaces it. Returns the bytes of the last ones. Without
/// streams the chain runs in order.
fn run_chain(runtime: &Runtime, device: &Device, streams: &[Stream], seed: u64) -> Vec<Vec<u8>> {
    let names = ["Add", "Transpose", "MatMul", "Tanh", "Mul"];
    let ops = names.map(|name| Op::latest(runtime, name).expect("an op of ONNX"));
    let count = (MATRIX_SIDE * MATRIX_SIDE) as usize;
    let make = |scale: f32| {
        let values: Vec<f32> = whole_numbers(count).into_iter().map(|value| value * scale).collect();
        Tensor::from_slice(device, &[MATRIX_SIDE, MATRIX_SIDE], &values).expect("memory")
    };
    let mut tensors: Vec<Tensor> = [0.01, 0.02, -0.03, 0.04].map(make).into();
    let mut draw = SeededDraw(seed);
    for step in 0..STEP_COUNT {
        let (kind, target) = (draw.next_below(ops.len()), draw.next_below(tensors.len()));
        let (a, b) = (&tensors[draw.next_below(tensors.len())], &tensors[draw.next_below(tensors.len())]);
        let operands = if kind % 2 == 0 { vec![Some(a), Some(b)] } else { vec![Some(a)] };
        let stream = (!streams.is_empty()).then(|| &streams[step % streams.len()]);
        let invocation = OpInvocation { inputs: &operands, outputs: 1, device: None, stream };
        let made =
            ops[kind].invoke(runtime, &invocation).unwrap_or_else(|error| panic!("step {step}: {error}"));
        tensors[target] = made.into_iter().flatten().next().expect("an output");
    }
    tensors.iter().map(|tensor| tensor.to_bytes().expect("the work is done")).collect()
}

#[test]
fn a_chain_of_ops_over_streams_gives_what_the_cpu_gives_in_whatever_order_it_runs() {
    let limit = ("device_memory_limit", "98304");
    for (seed, mode) in ["lazy", "eager", "random", "random", "random", "random"].into_iter().enumerate() {
        let flags = [limit, ("poison_memory", if seed % 2 == 0 { "1" } else { "0" })];
        let (runtime, _) = start_with_flags(&format!("devices 1; mode {mode}; seed {seed}"), &flags);
        let (sim, cpu) =
            (runtime.device("sim").expect("the device"), runtime.device("cpu").expect("the CPU"));
        let streams: Vec<Stream> = (0..3).map(|_| sim.create_stream(0).expect("a stream")).collect();
        let found = run_chain(&runtime, &sim, &streams, seed as u64);
        assert!(found == run_chain(&runtime, &cpu, &[], seed as u64), "mode {mode}, seed {seed}");
        let statistics = sim.memory_pool().expect("a pool").statistics();
        assert!(statistics.reserved <= 96 << 10, "{statistics:?}");
    }
}

#[test]
fn what_a_kernel_finds_wrong_in_its_data_is_told_with_its_name_by_whoever_waits_for_what_came_of_it() {
    for mode in ["lazy", "eager", "random"] {
        let (runtime, _) = start_with_flags(&format!("devices 1; mode {mode}"), &[]);
        let sim = runtime.device("sim").expect("the device");
        let side = sim.create_stream(0).expect("a stream");
        let data = Tensor::from_slice(&sim, &[3], &[1f32, 2.0, 3.0]).expect("memory");
        let outside = Tensor::from_slice(&sim, &[1], &[7i64]).expect("memory");
        let run = |op: &str, inputs: &[&Tensor], stream| {
            call_op(&runtime, op, Attributes::new(), inputs, 1, stream).map(|mut made| made.remove(0))
        };
        let doubled = run("Add", &[&data, &data], None).expect("it is right");
        let gathered = run("Gather", &[&doubled, &outside], None).expect("nobody has looked at the index");
        let late = run("Add", &[&gathered, &gathered], Some(&side)).and_then(|sum| sum.to_vec::<f32>());
        let error = late.expect_err("the index is outside");
        assert_eq!((error.op(), error.kind()), (Some("Gather"), ErrorKind::OutOfRange), "{mode}: {error}");
        assert_eq!(
            data.to_vec::<f32>().map_err(|error| error.op().map(str::to_owned)),
            Err(Some("Gather".into()))
        );
        assert_eq!(data.to_vec::<f32>().expect("it is told once in each stream"), [1.0, 2.0, 3.0]);
        let again = run("Add", &[&data, &data], Some(&side)).and_then(|sum| sum.to_vec::<f32>());
        assert_eq!(again.expect("the streams go on"), [2.0, 4.0, 6.0]);
    }
}
