//! Calls as the engine makes them: prepared kernels, with some constant operands.

#![expect(unsafe_code, reason = "a prepared kernel runs on memory that the caller chooses")]

use oarlock_core::memory::DeviceAllocation;
use oarlock_core::{
    Constant, ConstantInput, Device, Dtype, Error, ExpectedInput, MemoryLocation, Op, OpInvocation,
    OpOutputs, PrepareOutcome, PreparedCall, Runtime, Tensor,
};
use oarlock_host::OperandInfo;

use super::call::CallCase;

/// Makes a call with these inputs. If no kernel can be prepared for it, the call is an ordinary one.
pub(super) fn invoke_prepared(
    runtime: &Runtime,
    device: &Device,
    case: &CallCase,
    op: &Op,
    inputs: &[Option<&Tensor>],
) -> Result<OpOutputs, Error> {
    let ordinary = || {
        let call = OpInvocation { inputs, outputs: case.outputs, device: Some(device), stream: None };
        op.invoke(runtime, &call)
    };
    let is_constant = |at: usize| case.inputs[at].as_ref().is_some_and(|given| given.is_constant);
    let is_text = |input: &Option<&Tensor>| input.is_some_and(|input| input.dtype() == Dtype::String);
    if !(0..inputs.len()).any(is_constant) || inputs.iter().any(is_text) {
        return ordinary();
    }
    let stream = device.default_stream()?;
    let contiguous =
        |input: &Option<&Tensor>| input.map(|input| runtime.make_contiguous(input, stream)).transpose();
    // A broadcast view may have more elements than fit into memory.
    let Ok(inputs) = inputs.iter().map(contiguous).collect::<Result<Vec<Option<Tensor>>, _>>() else {
        return ordinary();
    };
    let value =
        |at: usize| inputs[at].as_ref().filter(|_| is_constant(at)).map(Tensor::to_constant).transpose();
    let values: Vec<Option<Constant>> = (0..inputs.len()).map(value).collect::<Result<_, _>>()?;
    let expected: Vec<Option<ExpectedInput<'_>>> = (0..inputs.len())
        .map(|at| {
            let (input, value) = (inputs[at].as_ref()?, values[at].as_ref());
            Some(ExpectedInput {
                dtype: input.dtype(),
                dims: input.dims(),
                is_constant: is_constant(at),
                value,
            })
        })
        .collect();
    let constant = |at: usize, _: Option<&OperandInfo>| {
        let tensor = inputs[at].clone().ok_or_else(|| Error::fatal("there is no such input"));
        tensor.map(ConstantInput::Tensor)
    };
    match op.prepare_call(runtime, device, stream, &expected, case.outputs, constant)? {
        PrepareOutcome::Kernel(ready) if !ready.requires_tensors() => {
            run_prepared(runtime, device, &ready, &inputs)
        }
        PrepareOutcome::Kernel(_) | PrepareOutcome::NeedsValues => ordinary(),
        PrepareOutcome::NoKernel(explanation) => Err(explanation.to_error()),
    }
}

fn run_prepared(
    runtime: &Runtime,
    device: &Device,
    ready: &PreparedCall,
    inputs: &[Option<Tensor>],
) -> Result<OpOutputs, Error> {
    let stream = device.default_stream()?;
    let mut packed = ready.create_bound_call(runtime, stream);
    for (at, input) in inputs.iter().enumerate() {
        input.iter().for_each(|input| packed.bind_input(at, MemoryLocation::from_tensor(input)));
    }
    let outputs: Vec<Tensor> = (0..ready.output_types().len())
        .map(|at| ready.allocate_output(at, stream))
        .collect::<Result<_, _>>()?;
    outputs
        .iter()
        .enumerate()
        .for_each(|(at, output)| packed.bind_output(at, MemoryLocation::from_tensor(output)));
    let room: Option<DeviceAllocation> = match ready.workspace_size() {
        0 => None,
        size => Some(device.memory_pool()?.allocate(size, stream.id(), "front door")?),
    };
    room.iter().for_each(|room| packed.bind_workspace(MemoryLocation::from_allocation(room, 0)));
    // SAFETY: every operand has the memory of a tensor of its dtype and shape, which lives until the stream was waited for, and
    // so does the workspace.
    let ran = unsafe { packed.run() };
    stream.synchronize()?;
    ran.map(|()| outputs.into_iter().map(Some).collect())
}
