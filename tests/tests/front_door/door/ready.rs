//! Calls as the engine makes them: of kernels that were readied before, for operands of which some never change.

#![expect(unsafe_code, reason = "a readied kernel runs on memory whose places the caller decides")]

use oarlock_core::memory::Allocation;
use oarlock_core::{
    Constant, Device, Dtype, Error, Expected, Invocation, Op, Outputs, Place, Readied, Ready, Runtime, Tensor,
};

use super::call::Case;

/// Makes a call whose inputs are these. Where no kernel can be readied for it, it is an ordinary one.
pub(super) fn invoke(
    runtime: &Runtime,
    device: &Device,
    case: &Case,
    op: &Op,
    inputs: &[Option<&Tensor>],
) -> Result<Outputs, Error> {
    let ordinary = || {
        let call = Invocation { inputs, outputs: case.outputs, device: Some(device), stream: None };
        op.invoke(runtime, &call)
    };
    let is_constant = |at: usize| case.inputs[at].as_ref().is_some_and(|given| given.is_constant);
    let is_text = |input: &Option<&Tensor>| input.is_some_and(|input| input.dtype() == Dtype::String);
    if !(0..inputs.len()).any(is_constant) || inputs.iter().any(is_text) {
        return ordinary();
    }
    let stream = device.stream()?;
    let contiguous =
        |input: &Option<&Tensor>| input.map(|input| runtime.contiguous(input, stream)).transpose();
    // What repeats its elements may have more of them than there is memory for.
    let Ok(inputs) = inputs.iter().map(contiguous).collect::<Result<Vec<Option<Tensor>>, _>>() else {
        return ordinary();
    };
    let value =
        |at: usize| inputs[at].as_ref().filter(|_| is_constant(at)).map(Tensor::to_constant).transpose();
    let values: Vec<Option<Constant>> = (0..inputs.len()).map(value).collect::<Result<_, _>>()?;
    let expected: Vec<Option<Expected<'_>>> = (0..inputs.len())
        .map(|at| {
            let (input, value) = (inputs[at].as_ref()?, values[at].as_ref());
            Some(Expected { dtype: input.dtype(), dims: input.dims(), is_constant: is_constant(at), value })
        })
        .collect();
    let constant = |at: usize, _| inputs[at].clone().ok_or_else(|| Error::fatal("there is no such input"));
    match op.ready(runtime, device, stream, &expected, case.outputs, constant)? {
        Readied::Kernel(ready) if !ready.takes_tensors_only() => run(runtime, device, &ready, &inputs),
        Readied::Kernel(_) | Readied::NeedsValues => ordinary(),
        Readied::Nothing(explanation) => Err(explanation.error()),
    }
}

fn run(
    runtime: &Runtime,
    device: &Device,
    ready: &Ready,
    inputs: &[Option<Tensor>],
) -> Result<Outputs, Error> {
    let stream = device.stream()?;
    let mut packed = ready.pack(runtime, stream);
    for (at, input) in inputs.iter().enumerate() {
        input.iter().for_each(|input| packed.place_input(at, Place::of(input)));
    }
    let outputs: Vec<Tensor> =
        (0..ready.outputs().len()).map(|at| ready.take_output(at, stream)).collect::<Result<_, _>>()?;
    outputs.iter().enumerate().for_each(|(at, output)| packed.place_output(at, Place::of(output)));
    let room: Option<Allocation> = match ready.workspace() {
        0 => None,
        size => Some(device.pool()?.allocate(size, stream.id(), "front door")?),
    };
    room.iter().for_each(|room| packed.place_workspace(Place::within(room, 0)));
    // SAFETY: every operand has the memory of a tensor of its dtype and shape, which is there until the stream was waited
    // for, and so has the scratch memory.
    let ran = unsafe { packed.run() };
    stream.synchronize()?;
    ran.map(|()| outputs.into_iter().map(Some).collect())
}
