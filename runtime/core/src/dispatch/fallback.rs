//! The CPU does what a device has no kernel for, when the user says so. What it costs is counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::op::{Op, OpInvocation, OpOutputs};
use crate::runtime::Runtime;
use crate::{Device, Result, Tensor};

/// Whether the CPU makes calls that no kernel of their device takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuFallback {
    /// They fail.
    Never,
    /// It does, and the first of each op is told.
    Told,
    /// It does without a word.
    Quiet,
}

/// What falling back has cost for one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackCount {
    /// How many calls the CPU did.
    pub calls: u64,
    /// How many bytes were copied to the CPU and back for them.
    pub bytes: u64,
}

/// The counts of a runtime, by op and device.
#[derive(Debug, Default)]
pub(crate) struct FallbackCounters(Mutex<BTreeMap<(String, String), FallbackCount>>);

impl FallbackCounters {
    pub(crate) fn list_counts(&self) -> Vec<(String, String, FallbackCount)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|((op, device), count)| (op.clone(), device.clone(), *count)).collect()
    }

    /// Counts one call; says whether it is the first of its op on its device.
    fn count_fallback(&self, op: &str, device: &Device, bytes: u64) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry((op.to_owned(), device.name().to_owned())).or_default();
        count.calls += 1;
        count.bytes += bytes;
        count.calls == 1
    }
}

/// Makes a call on the CPU, with copies there and back.
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
