//! CPU fallback: if the user permits it, the CPU runs calls for which a device has no kernel.

use super::op::{Op, OpInvocation, OpOutputs};
use crate::runtime::Runtime;
use crate::{Device, Result, Tensor};

/// The treatment of a call that no kernel of its device accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFallback {
    /// The call fails.
    Never,
    /// The CPU runs it, and a warning is logged for the first such call of each op.
    WithWarning,
    /// The CPU runs it, and nothing is logged.
    Silent,
}

/// Runs a call on the CPU: copies the inputs there and the outputs back.
#[cold]
pub(crate) fn run_on_cpu(
    op: &Op,
    runtime: &Runtime,
    device: &Device,
    call: &OpInvocation<'_>,
    outputs: &mut OpOutputs,
) -> Result<()> {
    let cpu = runtime.device("cpu")?;
    let inputs: Result<Vec<Option<Tensor>>> =
        call.inputs.iter().map(|input| input.map(|tensor| tensor.to_device(&cpu)).transpose()).collect();
    let inputs = inputs?;
    let given: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let result = op.invoke(
        runtime,
        &OpInvocation { inputs: &given, outputs: call.outputs, device: Some(&cpu), stream: None },
    )?;
    let bytes: u64 = inputs.iter().chain(&result).flatten().map(Tensor::extent).sum();
    for output in &result {
        outputs.push(output.as_ref().map(|tensor| tensor.to_device(device)).transpose()?);
    }
    let is_first = runtime.fallback_counters().count_fallback(op.name(), device, bytes);
    if is_first && op.definition.cpu_fallback(runtime) != CpuFallback::Silent {
        runtime.log_warning(&format!(
            "`{}` has no kernel on `{device}` for this call, so `{cpu}` runs it, with copies",
            op.name()
        ));
    }
    Ok(())
}
