//! A small program on two simulated devices and the CPU, with its expected results.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_core::flags::Flags;
use oarlock_core::stream::Stream;
use oarlock_core::{Attribute, Attributes, Error, Op, OpInvocation, Runtime, Tensor};
use oarlock_host::{LogLevel, LogSink};
use oarlock_tests::bare_host::{CPU_PLUGIN, SIM_PLUGIN, host_options};

/// Messages from plugins and the core.
#[derive(Default)]
pub(crate) struct RecordedMessages(Mutex<Vec<String>>);

impl LogSink for RecordedMessages {
    fn log(&self, _: &str, _: LogLevel, message: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.to_owned());
    }
}

impl RecordedMessages {
    pub(crate) fn all_messages(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A runtime whose simulated devices follow a script.
pub(crate) fn start_runtime(script: &str) -> (Runtime, Arc<RecordedMessages>) {
    start_with_flags(script, &[])
}

/// Like [`start_runtime`], with flags.
pub(crate) fn start_with_flags(script: &str, set: &[(&str, &str)]) -> (Runtime, Arc<RecordedMessages>) {
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let mut options = host_options("tests 1.0", &config, &[CPU_PLUGIN, SIM_PLUGIN]);
    // Scripted panics are caught in the plugin; do not print them.
    oarlock_sdk::silence_caught_panics();
    let told = Arc::new(RecordedMessages::default());
    options.log = told.clone();
    let mut flags = Flags::from_environment(|_| None).expect("the defaults of the flags");
    for (name, value) in set {
        flags.set(name, value).expect("a flag");
    }
    (Runtime::start(options, flags).expect("the CPU, whatever becomes of the other devices"), told)
}

/// Ops that run on the simulated devices, in the order of the program's calls.
pub(crate) const PROGRAM_OPS: [&str; 7] = ["Gemm", "Transpose", "TopK", "Conv", "Add", "Split", "NonZero"];

/// Runs the program: ops with one and with several outputs, with a workspace, and with data-dependent output shapes, in two
/// streams, with tensors dropped early and copies between three devices.
pub(crate) fn run_program(runtime: &Runtime) -> Result<Vec<Vec<f32>>, Error> {
    let (near, far, cpu) = (runtime.device("sim:0")?, runtime.device("sim:1")?, runtime.device("cpu")?);
    let side = near.create_stream(0)?;
    let x = Tensor::from_slice(&near, &[8, 16], &whole_numbers(128))?;
    let w = Tensor::from_slice(&near, &[12, 16], &whole_numbers(192))?;
    let gemm = Attributes::new().with_attribute("transB", Attribute::Int(1));
    let product = first_output(call_op(runtime, "Gemm", gemm, &[&x, &w], 1, None)?);
    drop((x, w));
    let turned = first_output(call_op(runtime, "Transpose", Attributes::new(), &[&product], 1, Some(&side))?);
    drop(product);
    let most = Tensor::from_slice(&cpu, &[1], &[4i64])?;
    let largest = call_op(runtime, "TopK", Attributes::new(), &[&turned, &most], 2, None)?;
    let [values, indices] = <[Tensor; 2]>::try_from(largest).expect("two outputs");
    let moved = values.to_device(&far)?.reshape(&[1, 1, 12, 4])?;
    let filter = Tensor::from_slice(&far, &[2, 1, 3, 3], &whole_numbers(18))?;
    let seen = first_output(call_op(runtime, "Conv", Attributes::new(), &[&moved, &filter], 1, None)?);
    let doubled = first_output(call_op(runtime, "Add", Attributes::new(), &[&seen, &seen], 1, None)?);
    drop((moved, seen));
    let split = Attributes::new()
        .with_attribute("axis", Attribute::Int(1))
        .with_attribute("num_outputs", Attribute::Int(2));
    let parts = call_op(runtime, "Split", split, &[&doubled], 2, None)?;
    let found = first_output(call_op(runtime, "NonZero", Attributes::new(), &[&parts[1]], 1, None)?);
    let home = parts[0].to_device(&cpu)?;
    let positive = first_output(call_op(runtime, "Relu", Attributes::new(), &[&home], 1, None)?);
    let indices = indices.to_vec::<i64>()?.into_iter().chain(found.to_vec::<i64>()?);
    Ok(vec![
        values.to_vec()?,
        indices.map(|index| index as f32).collect(),
        parts[1].to_vec()?,
        positive.to_vec()?,
    ])
}

/// Small integers in scrambled order, so that sums of products are exact.
pub(crate) fn whole_numbers(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 37 + 11) % 23) as f32 - 11.0).collect()
}

/// Calls an op of ONNX.
pub(crate) fn call_op(
    runtime: &Runtime,
    op: &str,
    attributes: Attributes,
    inputs: &[&Tensor],
    outputs: usize,
    stream: Option<&Stream>,
) -> Result<Vec<Tensor>, Error> {
    let inputs: Vec<Option<&Tensor>> = inputs.iter().copied().map(Some).collect();
    let device = inputs[0].map(Tensor::device);
    let op = Op::new(runtime, "", op, 21, attributes)?;
    let made = op.invoke(runtime, &OpInvocation { inputs: &inputs, outputs, device, stream })?;
    Ok(made.into_iter().flatten().collect())
}

/// The first of several outputs.
pub(crate) fn first_output(outputs: Vec<Tensor>) -> Tensor {
    outputs.into_iter().next().expect("an output")
}
