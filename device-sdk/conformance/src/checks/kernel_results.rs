//! Checks of computed results, for the element-wise ops that the suite has a reference for.

use std::fmt;

use oarlock_abi as abi;

use super::ConformanceCheck;
use super::kernels::require_kernels;
use super::reference::{
    REFERENCE_DTYPES, REFERENCE_OPS, ReferenceOp, compute_reference, decode_values, element_count,
    encode_values, first_difference, sample_values,
};
use super::threads::run_on_threads;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure, expect_bytes};
use crate::device::{DeviceUnderTest, TestBlock};
use crate::kernel_call::{PreparedState, TestTensor, with_call};
use crate::kernel_record::KernelUnderTest;
use crate::stream::TestStream;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::kernel_check(
        "run",
        "an element-wise kernel computes what its op says",
        computes_results,
    ),
    ConformanceCheck::kernel_check(
        "supports",
        "inputs of different shapes are repeated to fit, or the call is refused",
        runs_repeatedly,
    ),
    ConformanceCheck::kernel_check("run", "operands without elements are taken", accepts_empty_tensors),
    ConformanceCheck::kernel_check(
        "K-3",
        "a kernel writes its outputs and nothing else",
        writes_only_outputs,
    ),
    ConformanceCheck::kernel_check(
        "in_place",
        "an output may use the memory of an input if the kernel permits it",
        computes_in_place,
    ),
    ConformanceCheck::kernel_check(
        "A-1",
        "a kernel in a stream has its place between copies",
        runs_in_stream,
    ),
    ConformanceCheck::kernel_check("K-4", "one state runs on several threads at once", runs_on_many_threads),
];

/// Fills the guard zones around outputs, which kernels must not touch.
const GUARD_BYTE: u8 = 0x3C;

/// A kernel with one dtype on one device.
#[derive(Clone, Copy)]
struct KernelTrial<'a> {
    kernel: KernelUnderTest<'a>,
    device: DeviceUnderTest<'a>,
    op: ReferenceOp,
    dtype: abi::Dtype,
    alignment: usize,
}

impl fmt::Display for KernelTrial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} on {}", self.op.name, self.dtype.name().unwrap_or("?"), self.device)
    }
}

/// The operands of one call in device memory.
struct TrialOperands<'a> {
    inputs: Vec<(TestBlock<'a>, TestTensor, Vec<f64>)>,
    output: (TestBlock<'a>, TestTensor),
    expected: Vec<f64>,
    scratch: Option<TestBlock<'a>>,
}

/// Tries every supported combination of kernel, dtype and device. Fails at the first failure; unsupported if there is no
/// combination.
fn on_each_trial<'a>(bench: &'a TestBench, check: impl Fn(KernelTrial<'a>) -> Verdict) -> Verdict {
    let mut reason = "none of the kernels is for an op that the suite has a reference for".to_owned();
    let mut is_any_tried = false;
    for device in bench.devices()? {
        let alignment = device.operand_alignment()?;
        for kernel in
            require_kernels(bench)?.into_iter().filter(|kernel| kernel.runs_on(&bench.subject().device_type))
        {
            let Some(op) = reference_op_of(kernel) else { continue };
            for dtype in REFERENCE_DTYPES.into_iter().filter(|dtype| accepts_dtype(kernel, *dtype)) {
                let trial = KernelTrial { kernel, device, op, dtype, alignment };
                match check(trial) {
                    Ok(()) => is_any_tried = true,
                    Err(CheckAbort::Unsupported(why)) => reason = format!("{trial}: {why}"),
                    Err(failed) => return Err(failed.at_location(trial)),
                }
            }
        }
    }
    if is_any_tried { Ok(()) } else { Err(CheckAbort::unsupported(reason)) }
}

fn reference_op_of(kernel: KernelUnderTest<'_>) -> Option<ReferenceOp> {
    let is_onnx = kernel.domain().is_empty();
    let op = REFERENCE_OPS.iter().find(|op| is_onnx && op.name == kernel.op_name())?;
    (kernel.inputs().len() == op.inputs && kernel.outputs().len() == 1).then_some(*op)
}

/// True if every operand may have the dtype, a rank of 3 or less, and device memory.
fn accepts_dtype(kernel: KernelUnderTest<'_>, dtype: abi::Dtype) -> bool {
    let bit = abi::DtypeSet(1 << dtype.0);
    kernel.inputs().iter().chain(&kernel.outputs()).all(|operand| {
        operand.dtypes.contains(bit)
            && operand.rank_min <= 1
            && operand.rank_max >= 3
            && operand.place == abi::MemoryKind::DEVICE
    })
}

impl<'a> KernelTrial<'a> {
    /// Allocates operands of these shapes. The seed varies the input values.
    fn make_operands(&self, seed: usize, inputs: &[&[i64]], output: &[i64]) -> Verdict<TrialOperands<'a>> {
        let mut made = Vec::new();
        for (index, dims) in inputs.iter().take(self.op.inputs).enumerate() {
            let values = sample_values(self.dtype, seed + index, element_count(dims));
            let (block, shown) = self.guarded_tensor(dims, &encode_values(self.dtype, &values))?;
            made.push((block, shown, values));
        }
        let operands: Vec<(&[i64], &[f64])> =
            made.iter().map(|(_, shown, values)| (shown.dims.as_slice(), values.as_slice())).collect();
        let expected = compute_reference(self.op, self.dtype, &operands, output);
        let blank = vec![GUARD_BYTE; encode_values(self.dtype, &expected).len()];
        let output = self.guarded_tensor(output, &blank)?;
        let mut all = TrialOperands { inputs: made, output, expected, scratch: None };
        let workspace = all.with_trial_call(self, abi::Stream(0), |call| {
            self.kernel.workspace_size(self.device.bench, call)
        })?;
        if workspace > 0 {
            all.scratch = Some(self.device.allocate(workspace as usize)?);
        }
        Ok(all)
    }

    /// A tensor in the middle of a block, with guard zones before and after. A tensor without elements has no memory.
    fn guarded_tensor(&self, dims: &[i64], data: &[u8]) -> Verdict<(TestBlock<'a>, TestTensor)> {
        let block = self.device.allocate_with(&add_guards(self.alignment, data))?;
        let mut shown = TestTensor {
            block: block.handle,
            offset: self.alignment as u64,
            size: data.len() as u64,
            dtype: self.dtype,
            dims: dims.to_vec(),
        };
        if data.is_empty() {
            (shown.block, shown.offset) = (abi::Memory(0), 0);
        }
        Ok((block, shown))
    }

    /// Prepares the kernel for a call; unsupported if its support check declines.
    fn prepare_call(&self, operands: &TrialOperands<'a>) -> Verdict<PreparedState<'a>> {
        let bench = self.device.bench;
        operands.with_trial_call(self, abi::Stream(0), |call| match self.kernel.supports(bench, call)? {
            Ok(()) => self.kernel.prepare(bench, call),
            Err(refusal) if refusal.text.code == abi::Code::UNIMPLEMENTED => {
                Err(CheckAbort::unsupported(format!("the call is refused: {}", refusal.text.message)))
            }
            Err(error) => Err(CheckAbort::failed(format!(
                "expected `supports` to refuse with `unimplemented`, found: {error}"
            ))),
        })
    }

    /// Runs the kernel on operands of these shapes and checks the result.
    fn run_and_compare(&self, inputs: &[&[i64]], output: &[i64]) -> Verdict<TrialOperands<'a>> {
        let operands = self.make_operands(0, inputs, output)?;
        let state = self.prepare_call(&operands)?;
        operands.with_trial_call(self, abi::Stream(0), |call| state.run(call))?;
        operands.expect_output(self, &operands.output.0)?;
        Ok(operands)
    }
}

fn add_guards(alignment: usize, data: &[u8]) -> Vec<u8> {
    let guard = vec![GUARD_BYTE; alignment];
    [&guard, data, &guard].concat()
}

impl TrialOperands<'_> {
    fn with_trial_call<T>(
        &self,
        trial: &KernelTrial<'_>,
        queue: abi::Stream,
        work: impl FnOnce(&abi::Call) -> T,
    ) -> T {
        let inputs: Vec<TestTensor> = self.inputs.iter().map(|(_, shown, _)| shown.clone()).collect();
        let outputs = [self.output.1.clone()];
        with_call(trial.device, queue, (&inputs, &outputs), self.scratch.as_ref(), work)
    }

    /// Fails unless a block contains the expected elements between its guard zones.
    fn expect_output(&self, trial: &KernelTrial<'_>, block: &TestBlock<'_>) -> Verdict {
        let size = encode_values(trial.dtype, &self.expected).len();
        self.expect_output_bytes(trial, &block.read_bytes(trial.alignment as u64, size)?)
    }

    fn expect_output_bytes(&self, trial: &KernelTrial<'_>, bytes: &[u8]) -> Verdict {
        let found = decode_values(trial.dtype, bytes);
        match first_difference(trial.dtype, &self.expected, &found) {
            None => Ok(()),
            Some(at) => Err(CheckAbort::failed(format!(
                "expected {} as element {at} of the output of shape {:?}, found {}",
                self.expected[at], self.output.1.dims, found[at]
            ))),
        }
    }
}

const TRIAL_SHAPE: &[i64] = &[2, 3, 5];

fn computes_results(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        for shape in [TRIAL_SHAPE, &[1], &[1031]] {
            trial.run_and_compare(&[shape, shape], shape)?;
        }
        Ok(())
    })
}

fn runs_repeatedly(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        if trial.op.inputs < 2 {
            return Err(CheckAbort::unsupported("there is one input only"));
        }
        let shapes: [(&[i64], &[i64]); 3] = [(&[4, 1, 3], &[2, 1]), (&[3], &[4, 2, 3]), (&[4, 2, 3], &[1])];
        shapes
            .into_iter()
            .try_for_each(|(left, right)| trial.run_and_compare(&[left, right], &[4, 2, 3]).map(drop))
    })
}

fn accepts_empty_tensors(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| trial.run_and_compare(&[&[0, 3], &[0, 3]], &[0, 3]).map(drop))
}

fn writes_only_outputs(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        let operands = trial.run_and_compare(&[TRIAL_SHAPE, TRIAL_SHAPE], TRIAL_SHAPE)?;
        for (index, (block, _, values)) in operands.inputs.iter().enumerate() {
            let expected = add_guards(trial.alignment, &encode_values(trial.dtype, values));
            expect_bytes(format_args!("input {index} after the run"), &expected, &block.read_all()?)?;
        }
        let output = operands.output.0.read_all()?;
        let (before, after) = (&output[..trial.alignment], &output[output.len() - trial.alignment..]);
        let guard = vec![GUARD_BYTE; trial.alignment];
        expect_bytes("the bytes before the output", &guard, before)?;
        expect_bytes("the bytes after the output", &guard, after)
    })
}

fn computes_in_place(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        let pairs = trial.kernel.in_place_pairs();
        require_in_place(pairs)?;
        for pair in pairs.iter().filter(|pair| pair.output == 0 && (pair.input as usize) < trial.op.inputs) {
            let mut operands = trial.make_operands(0, &[TRIAL_SHAPE, TRIAL_SHAPE], TRIAL_SHAPE)?;
            let input = pair.input as usize;
            operands.output.1 = operands.inputs[input].1.clone();
            let state = trial.prepare_call(&operands)?;
            operands.with_trial_call(&trial, abi::Stream(0), |call| state.run(call))?;
            operands.expect_output(&trial, &operands.inputs[input].0)?;
        }
        Ok(())
    })
}

fn require_in_place(pairs: &[abi::InPlace]) -> Verdict {
    if pairs.is_empty() { Err(CheckAbort::unsupported("the kernel does not work in place")) } else { Ok(()) }
}

fn runs_in_stream(bench: &TestBench) -> Verdict {
    bench.async_table()?;
    on_each_trial(bench, |trial| {
        let operands = trial.make_operands(0, &[TRIAL_SHAPE, TRIAL_SHAPE], TRIAL_SHAPE)?;
        let (block, shown, values) = &operands.inputs[0];
        block.write_bytes(shown.offset, &vec![0; shown.size as usize])?;
        let state = trial.prepare_call(&operands)?;
        let queue = TestStream::create_stream(trial.device)?;
        queue.upload(block, shown.offset, encode_values(trial.dtype, values))?;
        operands.with_trial_call(&trial, queue.handle, |call| state.run(call))?;
        let (output, shown) = &operands.output;
        let arriving = queue.download(output, shown.offset, shown.size as usize)?;
        queue.synchronize()?;
        operands.expect_output_bytes(&trial, &queue.take_download(&arriving))?;
        queue.destroy()
    })
}

fn runs_on_many_threads(bench: &TestBench) -> Verdict {
    on_each_trial(bench, |trial| {
        let first = trial.make_operands(0, &[TRIAL_SHAPE, TRIAL_SHAPE], TRIAL_SHAPE)?;
        let state = trial.prepare_call(&first)?;
        run_on_threads(|number| {
            for round in 0..8 {
                let operands = trial.make_operands(
                    (number * 8 + round) as usize,
                    &[TRIAL_SHAPE, TRIAL_SHAPE],
                    TRIAL_SHAPE,
                )?;
                operands.with_trial_call(&trial, abi::Stream(0), |call| state.run(call))?;
                operands
                    .expect_output(&trial, &operands.output.0)
                    .map_err(|stop| stop.at_location(format_args!("thread {number}")))?;
            }
            Ok(())
        })?;
        ensure!(
            first.output.0.read_all()?.iter().all(|byte| *byte == GUARD_BYTE),
            "expected an output that no call names to stay as it was, found it changed"
        );
        Ok(())
    })
}
