//! Explains why a call got its kernel, and why others were not chosen.

use std::fmt;

use super::KernelEntry;
use super::matching::KernelMismatch;
use crate::{Error, ErrorKind};

/// A kernel entry that was matched with a call.
#[derive(Clone, Debug)]
pub struct ConsideredKernel {
    /// The entry.
    pub entry: KernelEntry,
    pub(crate) mismatch: Option<KernelMismatch>,
}

impl ConsideredKernel {
    /// Why it does not accept the call; `None` if it does.
    pub fn refusal(&self) -> Option<&str> {
        self.mismatch.as_ref().map(KernelMismatch::reason)
    }
}

/// What a device lacks for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingKernel {
    /// It has no kernel for this version of the op.
    Op,
    /// It has no kernel for the dtypes of the operands.
    Dtype,
    /// It has no kernel for this number of operands, or for operands of these shapes.
    Operands,
}

impl MissingKernel {
    /// A stable name for programs to read.
    pub fn name(self) -> &'static str {
        match self {
            Self::Op => "op",
            Self::Dtype => "dtype",
            Self::Operands => "operands",
        }
    }
}

/// All entries that were matched with a call.
#[derive(Clone, Debug)]
pub struct DispatchExplanation {
    /// The op, without its domain.
    pub op: String,
    /// The since-version of the op.
    pub version: u32,
    /// The device, such as `cuda:0`.
    pub device: String,
    /// The entries of the op, the preferred ones first. The first one that accepts the call runs it.
    pub considered: Vec<ConsideredKernel>,
}

impl DispatchExplanation {
    /// The entry that runs the call, if any accepts it.
    pub fn chosen_entry(&self) -> Option<&KernelEntry> {
        self.considered
            .iter()
            .find(|considered| considered.mismatch.is_none())
            .map(|considered| &considered.entry)
    }

    /// What the device lacks, given that no entry accepts the call.
    pub fn missing_kernel(&self) -> MissingKernel {
        match self.considered.iter().filter_map(|considered| considered.mismatch.as_ref()).max() {
            None | Some(KernelMismatch::Device(_) | KernelMismatch::Version(_)) => MissingKernel::Op,
            Some(KernelMismatch::Dtype(_)) => MissingKernel::Dtype,
            Some(_) => MissingKernel::Operands,
        }
    }

    /// The error for a call that no entry accepts. Its kind depends on what is missing: the op, the device, the dtype
    /// or something else.
    pub fn to_error(&self) -> Error {
        let op = &self.op;
        // Report the entry that came closest to accepting the call.
        let nearest = self.considered.iter().max_by_key(|considered| &considered.mismatch);
        let error = match nearest.map(|nearest| (nearest, nearest.mismatch.as_ref())) {
            None => Error::not_found(format!("expected a kernel for `{op}`, found none in any plugin")),
            Some((_, Some(KernelMismatch::Device(_)) | None)) => {
                let mut types: Vec<&str> = self
                    .considered
                    .iter()
                    .map(|considered| considered.entry.info().device_type.as_str())
                    .collect();
                types.sort_unstable();
                types.dedup();
                let types = types.join("`, `");
                Error::not_found(format!(
                    "expected a kernel for this device, found kernels for `{types}` only"
                ))
            }
            Some((nearest, Some(mismatch))) => {
                let kind = match mismatch {
                    KernelMismatch::Refused(_) => ErrorKind::Unimplemented,
                    _ => ErrorKind::NotFound,
                };
                let (plugin, reason) = (nearest.entry.plugin_name(), mismatch.reason());
                Error::new(
                    kind,
                    format!(
                        "expected a kernel that accepts this call; the closest, of `{plugin}`, does not: {reason}"
                    ),
                )
            }
        };
        let is_on_cpu = |considered: &ConsideredKernel| considered.entry.info().device_type == "cpu";
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
            self.chosen_entry().map_or("no kernel".to_owned(), |entry| format!("`{}`", entry.plugin_name()));
        writeln!(f, "`{op}` (version {version}) on `{device}` runs in {runner}")?;
        let mut is_chosen_seen = false;
        for ConsideredKernel { entry, mismatch } in considered {
            match mismatch {
                None if !is_chosen_seen => {
                    is_chosen_seen = true;
                    writeln!(f, "  chosen: {entry}")?;
                }
                None => writeln!(f, "  behind: {entry}: another ranks higher")?,
                Some(mismatch) => writeln!(f, "  not: {entry}: {}", mismatch.reason())?,
            }
        }
        Ok(())
    }
}
