//! CPU fallback: if the user permits it, the CPU runs calls for which a device has no kernel. The runtime counts the cost.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::op::{Op, OpInvocation, OpOutputs};
use crate::runtime::Runtime;
use crate::{Device, Result, Tensor};

/// What to do with a call that no kernel of its device accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFallback {
    /// The call fails.
    Never,
    /// The CPU runs it, and a warning is logged for the first such call of each op.
    Told,
    /// The CPU runs it, and nothing is logged.
    Quiet,
}

/// The cost of falling back for one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCount {
    /// Calls that the CPU ran.
    pub calls: u64,
    /// Bytes copied to the CPU and back.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FallbackCounters(Mutex<BTreeMap<(String, String), FallbackCount>>);

impl FallbackCounters {
    pub(crate) fn list_counts(&self) -> Vec<(String, String, FallbackCount)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((op, device), count)| (op.clone(), device.clone(), *count)).collect()
    }

    /// Counts one call; true if it is the first of its op on its device.
    fn count_fallback(&self, op: &str, device: &Device, bytes: u64) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((op.to_owned(), device.name().to_owned())).or_default();
        count.calls += 1;
        count.bytes += bytes;
        count.calls == 1
    }
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
    let made = op.invoke(
        runtime,
        &OpInvocation { inputs: &given, outputs: call.outputs, device: Some(&cpu), stream: None },
    )?;
    let bytes: u64 = inputs.iter().chain(&made).flatten().map(Tensor::extent).sum();
    for output in &made {
        outputs.push(output.as_ref().map(|tensor| tensor.to_device(device)).transpose()?);
    }
    let is_first = runtime.fallback_counters().count_fallback(op.name(), device, bytes);
    if is_first && op.node.cpu_fallback(runtime) != CpuFallback::Quiet {
        runtime.log_warning(&format!(
            "`{}` has no kernel on `{device}` for this call, so `{cpu}` does it, with copies",
            op.name()
        ));
    }
    Ok(())
}
