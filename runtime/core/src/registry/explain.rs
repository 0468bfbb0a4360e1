//! Why a kernel was chosen for a call, and why others were not.

use std::fmt;

use super::KernelEntry;
use super::matching::KernelMismatch;
use crate::{Error, ErrorKind};

/// One row that was looked at.
#[derive(Clone, Debug)]
pub struct ConsideredKernel {
    /// The kernel.
    pub row: KernelEntry,
    pub(crate) misfit: Option<KernelMismatch>,
}

impl ConsideredKernel {
    /// Why it does not take the call; `None` where it does.
    pub fn refusal(&self) -> Option<&str> {
        self.misfit.as_ref().map(KernelMismatch::reason)
    }
}

/// What a device lacks that has no kernel for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingKernel {
    /// Any kernel for this version of the op.
    Op,
    /// One for the dtypes of the operands.
    Dtype,
    /// One that takes so many operands, or operands of such shapes.
    Operands,
}

impl MissingKernel {
    /// The name that programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Dtype => "dtype",
            Self::Operands => "operands",
        }
    }
}

/// What was considered for a call. The first row that takes it is the one that runs.
#[derive(Clone, Debug)]
pub struct DispatchExplanation {
    /// The op.
    pub op: String,
    /// Its version, as its since-version.
    pub version: u32,
    /// The device.
    pub device: String,
    /// The rows of the op, the preferred ones first; the first that takes the call runs.
    pub considered: Vec<ConsideredKernel>,
}

impl DispatchExplanation {
    /// The row that runs.
    pub fn chosen_entry(&self) -> Option<&KernelEntry> {
        self.considered
            .iter()
            .find(|considered| considered.misfit.is_none())
            .map(|considered| &considered.row)
    }

    /// What is missing where no row takes the call.
    pub fn missing_kernel(&self) -> MissingKernel {
        match self.considered.iter().filter_map(|considered| considered.misfit.as_ref()).max() {
            None | Some(KernelMismatch::Device(_) | KernelMismatch::Version(_)) => MissingKernel::Op,
            Some(KernelMismatch::Dtype(_)) => MissingKernel::Dtype,
            Some(_) => MissingKernel::Operands,
        }
    }

    /// The error of a call that no row takes: it tells apart whether the op, the device, the dtype or something else is
    /// what is missing.
    pub fn to_error(&self) -> Error {
        let op = &self.op;
        // The misfit that comes nearest to taking the call is the one to tell.
        let nearest = self.considered.iter().max_by_key(|considered| &considered.misfit);
        let error = match nearest.map(|nearest| (nearest, nearest.misfit.as_ref())) {
            None => Error::not_found(format!("expected a kernel for `{op}`, found none in any plugin")),
            Some((_, Some(KernelMismatch::Device(_)) | None)) => {
                let mut types: Vec<&str> = self
                    .considered
                    .iter()
                    .map(|considered| considered.row.info().device_type.as_str())
                    .collect();
                types.sort_unstable();
                types.dedup();
                let types = types.join("`, `");
                Error::not_found(format!(
                    "expected a kernel for this device, found kernels for `{types}` only"
                ))
            }
            Some((nearest, Some(misfit))) => {
                let kind = match misfit {
                    KernelMismatch::Refused(_) => ErrorKind::Unimplemented,
                    _ => ErrorKind::NotFound,
                };
                let (plugin, reason) = (nearest.row.plugin_name(), misfit.reason());
                Error::new(
                    kind,
                    format!(
                        "expected a kernel that takes this call; the nearest, of `{plugin}`, does not: {reason}"
                    ),
                )
            }
        };
        let is_on_cpu = |considered: &ConsideredKernel| considered.row.info().device_type == "cpu";
        let error = error.with_op(op).with_device(&self.device);
        if !self.device.starts_with("cpu:") && self.considered.iter().any(is_on_cpu) {
            return error.with_advice("set the flag `kernel_fallback` to `cpu` to have the CPU do it");
        }
        error.with_advice(format!("`oarlock kernels --op {op}` lists what there is"))
    }
}

impl fmt::Display for DispatchExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, version, device, considered } = self;
        let runner =
            self.chosen_entry().map_or("no kernel".to_owned(), |row| format!("`{}`", row.plugin_name()));
        writeln!(f, "`{op}` (version {version}) on `{device}` is run by {runner}")?;
        let mut is_chosen_seen = false;
        for ConsideredKernel { row, misfit } in considered {
            match misfit {
                None if !is_chosen_seen => {
                    is_chosen_seen = true;
                    writeln!(f, "  chosen: {row}")?;
                }
                None => writeln!(f, "  behind: {row}: another comes first")?,
                Some(misfit) => writeln!(f, "  not: {row}: {}", misfit.reason())?,
            }
        }
        Ok(())
    }
}
