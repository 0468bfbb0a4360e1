//! What kernels compute, for the element-wise ops that the suite has a reference for.

use std::fmt;

use oarlock_abi as abi;

use super::Check;
use super::kernels::any;
use super::reference::{DTYPES, OPS, Op, compute, count, decode, encode, first_difference, sample};
use super::threads::at_once;
use crate::bench::{Bench, Stop, Verdict, ensure, expect_bytes};
use crate::device::{Block, Device};
use crate::kernel_call::{Kernel, Shown, State, with_call};
use crate::queue::Queue;

pub(super) const CHECKS: &[Check] = &[
    Check::kernels("run", "an element-wise kernel computes what its op says", plain),
    Check::kernels(
        "supports",
        "inputs of different shapes are repeated to fit, or the call is refused",
        repeated,
    ),
    Check::kernels("run", "operands without elements are taken", empty),
    Check::kernels("K-3", "a kernel writes its outputs and nothing else", nothing_else),
    Check::kernels("in_place", "an output may use the memory of an input where the kernel says so", in_place),
    Check::kernels("A-1", "a kernel in a stream has its place between copies", in_a_stream),
    Check::kernels("K-4", "one state runs on several threads at once", threads),
];

/// What surrounds outputs, to be found as it was.
const GUARD: u8 = 0x3C;

/// A kernel to be tried with one dtype on one device.
#[derive(Clone, Copy)]
struct Trial<'a> {
    kernel: Kernel<'a>,
    device: Device<'a>,
    op: Op,
    dtype: abi::Dtype,
    alignment: usize,
}

impl fmt::Display for Trial<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} on {}", self.op.name, self.dtype.name().unwrap_or("?"), self.device)
    }
}

/// The operands of one call in memory of the device.
struct Operands<'a> {
    inputs: Vec<(Block<'a>, Shown, Vec<f64>)>,
    output: (Block<'a>, Shown),
    expected: Vec<f64>,
    scratch: Option<Block<'a>>,
}

/// Every kernel that can be tried with every dtype of it on every device. Fails with the first that fails; unsupported
/// when none can be tried.
fn on_each<'a>(bench: &'a Bench, check: impl Fn(Trial<'a>) -> Verdict) -> Verdict {
    let mut reason = "none of the kernels is for an op that the suite has a reference for".to_owned();
    let mut is_any_tried = false;
    for device in bench.devices()? {
        let alignment = device.alignment()?;
        for kernel in any(bench)?.into_iter().filter(|kernel| kernel.runs_on(&bench.subject().device_type)) {
            let Some(op) = op_of(kernel) else { continue };
            for dtype in DTYPES.into_iter().filter(|dtype| takes(kernel, *dtype)) {
                let trial = Trial { kernel, device, op, dtype, alignment };
                match check(trial) {
                    Ok(()) => is_any_tried = true,
                    Err(Stop::Unsupported(why)) => reason = format!("{trial}: {why}"),
                    Err(failed) => return Err(failed.at(trial)),
                }
            }
        }
    }
    if is_any_tried { Ok(()) } else { Err(Stop::unsupported(reason)) }
}

fn op_of(kernel: Kernel<'_>) -> Option<Op> {
    let is_onnx = kernel.domain().is_empty();
    let op = OPS.iter().find(|op| is_onnx && op.name == kernel.op())?;
    (kernel.inputs().len() == op.inputs && kernel.outputs().len() == 1).then_some(*op)
}

/// Whether every operand may be of a dtype, of rank 3 and less, and on the device.
fn takes(kernel: Kernel<'_>, dtype: abi::Dtype) -> bool {
    let bit = abi::DtypeSet(1 << dtype.0);
    kernel.inputs().iter().chain(&kernel.outputs()).all(|operand| {
        operand.dtypes.contains(bit)
            && operand.rank_min <= 1
            && operand.rank_max >= 3
            && operand.place == abi::MemoryKind::DEVICE
    })
}

impl<'a> Trial<'a> {
    /// Operands of these shapes, with inputs that differ with the seed.
    fn operands(&self, seed: usize, inputs: &[&[i64]], output: &[i64]) -> Verdict<Operands<'a>> {
        let mut made = Vec::new();
        for (index, dims) in inputs.iter().take(self.op.inputs).enumerate() {
            let values = sample(self.dtype, seed + index, count(dims));
            let (block, shown) = self.guarded(dims, &encode(self.dtype, &values))?;
            made.push((block, shown, values));
        }
        let operands: Vec<(&[i64], &[f64])> =
            made.iter().map(|(_, shown, values)| (shown.dims.as_slice(), values.as_slice())).collect();
        let expected = compute(self.op, self.dtype, &operands, output);
        let blank = vec![GUARD; encode(self.dtype, &expected).len()];
        let output = self.guarded(output, &blank)?;
        let mut all = Operands { inputs: made, output, expected, scratch: None };
        let workspace =
            all.call(self, abi::Stream(0), |call| self.kernel.workspace(self.device.bench, call))?;
        if workspace > 0 {
            all.scratch = Some(self.device.allocate(workspace as usize)?);
        }
        Ok(all)
    }

    /// A tensor in the middle of a block, with guards before and after. One without elements has no memory.
    fn guarded(&self, dims: &[i64], data: &[u8]) -> Verdict<(Block<'a>, Shown)> {
        let block = self.device.block_of(&surrounded(self.alignment, data))?;
        let mut shown = Shown {
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

    /// The state for a call, if the kernel takes it.
    fn prepare(&self, operands: &Operands<'a>) -> Verdict<State<'a>> {
        let bench = self.device.bench;
        operands.call(self, abi::Stream(0), |call| match self.kernel.supports(bench, call)? {
            Ok(()) => self.kernel.prepare(bench, call),
            Err(refusal) if refusal.text.code == abi::Code::UNIMPLEMENTED => {
                Err(Stop::unsupported(format!("the call is refused: {}", refusal.text.message)))
            }
            Err(error) => Err(Stop::failed(format!(
                "expected `supports` to refuse with `unimplemented`, found: {error}"
            ))),
        })
    }

    /// Runs the kernel on operands of these shapes and checks what it computed.
    fn run(&self, inputs: &[&[i64]], output: &[i64]) -> Verdict<Operands<'a>> {
        let operands = self.operands(0, inputs, output)?;
        let state = self.prepare(&operands)?;
        operands.call(self, abi::Stream(0), |call| state.run(call))?;
        operands.expect(self, &operands.output.0)?;
        Ok(operands)
    }
}

fn surrounded(alignment: usize, data: &[u8]) -> Vec<u8> {
    let guard = vec![GUARD; alignment];
    [&guard, data, &guard].concat()
}

impl Operands<'_> {
    fn call<T>(&self, trial: &Trial<'_>, queue: abi::Stream, work: impl FnOnce(&abi::Call) -> T) -> T {
        let inputs: Vec<Shown> = self.inputs.iter().map(|(_, shown, _)| shown.clone()).collect();
        let outputs = [self.output.1.clone()];
        with_call(trial.device, queue, (&inputs, &outputs), self.scratch.as_ref(), work)
    }

    /// Fails unless a block holds what the kernel is to compute.
    fn expect(&self, trial: &Trial<'_>, block: &Block<'_>) -> Verdict {
        let size = encode(trial.dtype, &self.expected).len();
        self.expect_bytes(trial, &block.read(trial.alignment as u64, size)?)
    }

    fn expect_bytes(&self, trial: &Trial<'_>, bytes: &[u8]) -> Verdict {
        let found = decode(trial.dtype, bytes);
        match first_difference(trial.dtype, &self.expected, &found) {
            None => Ok(()),
            Some(at) => Err(Stop::failed(format!(
                "expected {} as element {at} of the output of shape {:?}, found {}",
                self.expected[at], self.output.1.dims, found[at]
            ))),
        }
    }
}

const SHAPE: &[i64] = &[2, 3, 5];

fn plain(bench: &Bench) -> Verdict {
    on_each(bench, |trial| {
        for shape in [SHAPE, &[1], &[1031]] {
            trial.run(&[shape, shape], shape)?;
        }
        Ok(())
    })
}

fn repeated(bench: &Bench) -> Verdict {
    on_each(bench, |trial| {
        if trial.op.inputs < 2 {
            return Err(Stop::unsupported("there is one input only"));
        }
        let shapes: [(&[i64], &[i64]); 3] = [(&[4, 1, 3], &[2, 1]), (&[3], &[4, 2, 3]), (&[4, 2, 3], &[1])];
        shapes.into_iter().try_for_each(|(left, right)| trial.run(&[left, right], &[4, 2, 3]).map(drop))
    })
}

fn empty(bench: &Bench) -> Verdict {
    on_each(bench, |trial| trial.run(&[&[0, 3], &[0, 3]], &[0, 3]).map(drop))
}

fn nothing_else(bench: &Bench) -> Verdict {
    on_each(bench, |trial| {
        let operands = trial.run(&[SHAPE, SHAPE], SHAPE)?;
        for (index, (block, _, values)) in operands.inputs.iter().enumerate() {
            let expected = surrounded(trial.alignment, &encode(trial.dtype, values));
            expect_bytes(format_args!("input {index} after the run"), &expected, &block.read_all()?)?;
        }
        let output = operands.output.0.read_all()?;
        let (before, after) = (&output[..trial.alignment], &output[output.len() - trial.alignment..]);
        let guard = vec![GUARD; trial.alignment];
        expect_bytes("the bytes before the output", &guard, before)?;
        expect_bytes("the bytes after the output", &guard, after)
    })
}

fn in_place(bench: &Bench) -> Verdict {
    on_each(bench, |trial| {
        let pairs = trial.kernel.in_place();
        ensure_any(pairs)?;
        for pair in pairs.iter().filter(|pair| pair.output == 0 && (pair.input as usize) < trial.op.inputs) {
            let mut operands = trial.operands(0, &[SHAPE, SHAPE], SHAPE)?;
            let input = pair.input as usize;
            operands.output.1 = operands.inputs[input].1.clone();
            let state = trial.prepare(&operands)?;
            operands.call(&trial, abi::Stream(0), |call| state.run(call))?;
            operands.expect(&trial, &operands.inputs[input].0)?;
        }
        Ok(())
    })
}

fn ensure_any(pairs: &[abi::InPlace]) -> Verdict {
    if pairs.is_empty() { Err(Stop::unsupported("the kernel does not work in place")) } else { Ok(()) }
}

fn in_a_stream(bench: &Bench) -> Verdict {
    bench.asynchronous()?;
    on_each(bench, |trial| {
        let operands = trial.operands(0, &[SHAPE, SHAPE], SHAPE)?;
        let (block, shown, values) = &operands.inputs[0];
        block.write(shown.offset, &vec![0; shown.size as usize])?;
        let state = trial.prepare(&operands)?;
        let queue = Queue::create(trial.device)?;
        queue.upload(block, shown.offset, encode(trial.dtype, values))?;
        operands.call(&trial, queue.handle, |call| state.run(call))?;
        let (output, shown) = &operands.output;
        let arriving = queue.download(output, shown.offset, shown.size as usize)?;
        queue.synchronize()?;
        operands.expect_bytes(&trial, &queue.arrived(&arriving))?;
        queue.destroy()
    })
}

fn threads(bench: &Bench) -> Verdict {
    on_each(bench, |trial| {
        let first = trial.operands(0, &[SHAPE, SHAPE], SHAPE)?;
        let state = trial.prepare(&first)?;
        at_once(|number| {
            for round in 0..8 {
                let operands = trial.operands((number * 8 + round) as usize, &[SHAPE, SHAPE], SHAPE)?;
                operands.call(&trial, abi::Stream(0), |call| state.run(call))?;
                operands
                    .expect(&trial, &operands.output.0)
                    .map_err(|stop| stop.at(format_args!("thread {number}")))?;
            }
            Ok(())
        })?;
        ensure!(
            first.output.0.read_all()?.iter().all(|byte| *byte == GUARD),
            "expected an output that no call names to stay as it was, found it changed"
        );
        Ok(())
    })
}
