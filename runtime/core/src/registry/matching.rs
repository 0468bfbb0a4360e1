//! Matches the requirements of a kernel entry against a call.

use oarlock_abi as abi;
use oarlock_host::{KernelInfo, OperandInfo};
use smallvec::SmallVec;

use crate::dtype::{Dtype, DtypeSet};

#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandType {
    pub(crate) dtype: Dtype,
    /// `None` if only the kernel will know it.
    pub(crate) rank: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelQuery<'a> {
    /// The since-version of the op.
    pub(crate) version: u32,
    pub(crate) device_type: &'a str,
    /// `None` for an input that is left out.
    pub(crate) inputs: &'a [Option<OperandType>],
    /// The inferred outputs; parts may be unknown.
    pub(crate) outputs: &'a [Option<OperandType>],
    /// False for an op without a schema, whose outputs only its kernels know.
    pub(crate) knows_outputs: bool,
    pub(crate) must_be_deterministic: bool,
    /// True if reasons are needed; to format them is too slow for dispatch.
    pub(crate) is_explained: bool,
}

impl KernelQuery<'_> {
    /// Formats a reason only if it is needed.
    fn explain_with(&self, sentence: impl FnOnce() -> String) -> String {
        if self.is_explained { sentence() } else { String::new() }
    }
}

/// Why an entry does not accept a call. Later variants are closer to a match, so the maximum is the best one to report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KernelMismatch {
    /// For another type of device.
    Device(String),
    /// For other versions of the op.
    Version(String),
    /// For another number of operands.
    Count(String),
    /// Does not support the dtype of an operand.
    Dtype(String),
    /// Does not support the rank of an operand.
    Rank(String),
    /// Requires a layout or a kind of memory that calls never provide.
    Layout(String),
    /// Results may differ from run to run.
    Determinism(String),
    /// The kernel itself refused the call.
    Refused(String),
}

impl KernelMismatch {
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Device(text)
            | Self::Version(text)
            | Self::Count(text)
            | Self::Dtype(text)
            | Self::Rank(text)
            | Self::Layout(text)
            | Self::Determinism(text)
            | Self::Refused(text) => text,
        }
    }
}

/// Matches an entry with a call.
pub(crate) fn match_kernel(info: &KernelInfo, wanted: &KernelQuery<'_>) -> Result<(), KernelMismatch> {
    if info.device_type != wanted.device_type {
        return Err(KernelMismatch::Device(
            wanted.explain_with(|| format!("it is for `{}`", info.device_type)),
        ));
    }
    if wanted.version < info.version_min || info.version_max.is_some_and(|max| wanted.version > max) {
        return Err(KernelMismatch::Version(wanted.explain_with(|| {
            let range = match info.version_max {
                Some(max) if max == info.version_min => format!("version {max}"),
                Some(max) => format!("versions {} to {max}", info.version_min),
                None => format!("version {} and later", info.version_min),
            };
            format!("it is for {range} of the op, and this is version {}", wanted.version)
        })));
    }
    let mut groups = DtypeGroups::new();
    match_operands(("input", wanted), &info.inputs, wanted.inputs, &mut groups)?;
    if wanted.knows_outputs {
        match_operands(("output", wanted), &info.outputs, wanted.outputs, &mut groups)?;
    }
    if wanted.must_be_deterministic && !info.deterministic {
        return Err(KernelMismatch::Determinism(
            wanted.explain_with(|| "it may give other bits each time, and `deterministic` is on".to_owned()),
        ));
    }
    Ok(())
}

/// The dtype of each group of operands that must agree on it.
type DtypeGroups = SmallVec<[(u32, Dtype); 4]>;

fn match_operands(
    (side, wanted): (&str, &KernelQuery<'_>),
    demands: &[OperandInfo],
    found: &[Option<OperandType>],
    groups: &mut DtypeGroups,
) -> Result<(), KernelMismatch> {
    let is_variadic = demands.last().is_some_and(|last| last.variadic);
    let given = found.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    if given > demands.len() && !is_variadic {
        return Err(KernelMismatch::Count(
            wanted.explain_with(|| format!("it takes {} {side}s, and this call has {given}", demands.len())),
        ));
    }
    for (index, demand) in demands.iter().enumerate() {
        let is_there = found.get(index).is_some_and(Option::is_some);
        if !is_there && !demand.optional && !demand.variadic {
            return Err(KernelMismatch::Count(
                wanted.explain_with(|| format!("it needs {}", demand_name(side, index, demand))),
            ));
        }
    }
    for (index, operand) in found.iter().enumerate() {
        let (Some(operand), Some(demand)) = (operand, demands.get(index).or(demands.last())) else {
            continue;
        };
        match_operand((side, wanted), index, demand, *operand, groups)?;
    }
    Ok(())
}

fn match_operand(
    (side, wanted): (&str, &KernelQuery<'_>),
    index: usize,
    demand: &OperandInfo,
    found: OperandType,
    groups: &mut DtypeGroups,
) -> Result<(), KernelMismatch> {
    let name = || demand_name(side, index, demand);
    if !found.dtype.is_in(DtypeSet(demand.dtypes)) {
        return Err(KernelMismatch::Dtype(wanted.explain_with(|| {
            let taken = dtype_names(demand.dtypes);
            format!("it takes {} as {taken}, and this is {}", name(), found.dtype)
        })));
    }
    if demand.dtype_group != 0 {
        match groups.iter().find(|(group, _)| *group == demand.dtype_group) {
            Some((_, dtype)) if *dtype != found.dtype => {
                return Err(KernelMismatch::Dtype(wanted.explain_with(|| {
                    let name = name();
                    format!(
                        "it needs {name} as {dtype} like the operands before, and this is {}",
                        found.dtype
                    )
                })));
            }
            Some(_) => {}
            None => groups.push((demand.dtype_group, found.dtype)),
        }
    }
    if let Some(rank) = found.rank.and_then(|rank| u32::try_from(rank).ok())
        && (rank < demand.rank_min || rank > demand.rank_max)
    {
        return Err(KernelMismatch::Rank(wanted.explain_with(|| {
            let range = match demand.rank_max {
                u32::MAX => format!("at least {}", demand.rank_min),
                max if max == demand.rank_min => max.to_string(),
                max => format!("{} to {max}", demand.rank_min),
            };
            format!("it takes {} with {range} dimensions, and this has {rank}", name())
        })));
    }
    let is_reachable = demand.place == abi::MemoryKind::DEVICE.0 || demand.place == abi::MemoryKind::HOST.0;
    if demand.layout != abi::Layout::PLAIN.0 || !is_reachable {
        return Err(KernelMismatch::Layout(wanted.explain_with(|| {
            format!("it takes {} in a layout or memory kind that calls never have", name())
        })));
    }
    Ok(())
}

fn demand_name(side: &str, index: usize, demand: &OperandInfo) -> String {
    if demand.name.is_empty() {
        format!("{side} {index}")
    } else {
        format!("{side} {index} ({})", demand.name)
    }
}

/// The names of a set of dtypes, separated by commas.
pub(crate) fn dtype_names(set: u64) -> String {
    let names = Dtype::ALL.iter().filter(|dtype| dtype.is_in(DtypeSet(set))).map(|dtype| dtype.name());
    names.collect::<Vec<_>>().join(", ")
}
