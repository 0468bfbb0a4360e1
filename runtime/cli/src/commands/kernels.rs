//! `oarlock kernels`: lists all kernels, and why some are never used.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use oarlock_abi::Layout;
use oarlock_core::registry::{KernelEntry, KernelProblem};
use oarlock_core::{Device, Dtype, DtypeSet, Runtime, schema};
use oarlock_host::{KNOWN_DEVICES, KernelInfo, OperandInfo, did_you_mean, sanitize_text};
use serde::Serialize;

use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, KernelFilter};
use crate::environment_flags;
use crate::output::{self, BAD_STYLE, CommandOutput, NAME_STYLE, QUIET_STYLE};
use crate::problem::CommandError;
use crate::render::{TableCell, TextTable, print_sentence};
use crate::session::CoreSession;

/// Sets of dtypes that are abbreviated to one name.
const DTYPE_FAMILIES: [(&str, &[Dtype]); 5] = [
    ("ints", &[Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]),
    ("uints", &[Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]),
    ("f8", &[Dtype::F8E4M3, Dtype::F8E4M3Fnuz, Dtype::F8E5M2, Dtype::F8E5M2Fnuz, Dtype::F8E8M0]),
    ("floats", &[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]),
    ("complex", &[Dtype::C64, Dtype::C128]),
];

pub(crate) fn list_kernels(
    global: &GlobalOptions,
    filter: &KernelFilter,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let core = CoreSession::start_core(global, environment_flags::flags_from_environment()?)?;
    let registry = core.runtime.registry();
    check_filter_names(filter, &core.runtime)?;
    check_filter_op(filter, registry.entries())?;
    let problems = registry.find_problems();
    let mut kernels: Vec<KernelReport<'_>> =
        registry.entries().iter().map(|entry| KernelReport::from_entry(entry, &problems)).collect();
    kernels.retain(|kernel| kernel.matches_filter(filter));
    // A stable sort keeps rows of equal score in loading order, which is also the order of preference.
    kernels.sort_by_key(|kernel| {
        (kernel.domain, kernel.op, kernel.device_type, kernel.version_min, Reverse(kernel.score))
    });
    if global.json {
        super::print_json(output, &kernels)?;
    } else {
        print_kernels(&kernels, output);
    }
    output.flush();
    if kernels.is_empty() {
        output::print_message(global.color, "warning", "no kernel is like that", None);
    }
    let is_well = kernels.iter().all(|kernel| kernel.problem.is_none());
    Ok(core.warn_about_missing(global, true) && is_well)
}

/// An unknown domain or device type is probably a typo.
fn check_filter_names(filter: &KernelFilter, runtime: &Runtime) -> Result<(), CommandError> {
    let registry = runtime.registry();
    let rows = || registry.entries().iter().map(|entry| entry.info());
    if let Some(domain) = &filter.domain
        && schema::latest_opset(domain).is_err()
    {
        let with_kernels = rows().map(|info| schema::displayed_domain(&info.domain)).collect();
        check_filter_name("a domain of which there are kernels", domain, &with_kernels)?;
    }
    let Some(device) = &filter.device else { return Ok(()) };
    let with_kernels = rows().map(|info| info.device_type.as_str());
    let types: BTreeSet<&str> =
        with_kernels.chain(runtime.devices().iter().map(Device::device_type)).collect();
    if !types.contains(device.as_str()) && KNOWN_DEVICES.iter().any(|known| known.device_type == device) {
        // Its error explains why there is none.
        runtime.device(device)?;
    }
    check_filter_name("a type of devices", device, &types)
}

fn check_filter_name(expected: &str, wanted: &str, known: &BTreeSet<&str>) -> Result<(), CommandError> {
    if known.contains(wanted) {
        return Ok(());
    }
    let nearest = did_you_mean(wanted, known.iter().copied());
    let known = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let message = sanitize_text(&format!("expected {expected} ({known}), found `{wanted}`{nearest}"));
    Err(CommandError::new(message).with_hint("`oarlock kernels` lists all kernels"))
}

/// An op without any kernel is probably a typo.
fn check_filter_op(filter: &KernelFilter, rows: &[KernelEntry]) -> Result<(), CommandError> {
    let Some(op) = &filter.op else { return Ok(()) };
    if rows.iter().any(|entry| entry.info().op == *op) {
        return Ok(());
    }
    // If the op does not exist, the schemas suggest the nearest name.
    schema::latest_schema(filter.domain.as_deref().unwrap_or(schema::ONNX_DOMAIN), op)?;
    let problem =
        CommandError::new(format!("expected an op with kernels, found `{op}`, for which no plugin has one"));
    Err(problem.with_hint("`oarlock kernels` without `--op` lists all kernels"))
}

#[derive(Serialize)]
struct KernelReport<'a> {
    op: &'a str,
    domain: &'a str,
    version_min: u32,
    version_max: Option<u32>,
    device_type: &'a str,
    inputs: Vec<OperandReport<'a>>,
    outputs: Vec<OperandReport<'a>>,
    score: i32,
    plugin: &'a str,
    deterministic: bool,
    asynchronous: bool,
    allocates_outputs: bool,
    in_place: &'a [(u32, u32)],
    /// Why the kernel is never used.
    problem: Option<String>,
    #[serde(skip)]
    info: &'a KernelInfo,
}

#[derive(Serialize)]
struct OperandReport<'a> {
    name: &'a str,
    dtypes: Vec<&'static str>,
    dtype_group: u32,
    rank_min: u32,
    /// `None` means no limit.
    rank_max: Option<u32>,
    layout: Option<&'static str>,
    optional: bool,
    variadic: bool,
    strided: bool,
}

impl<'a> KernelReport<'a> {
    fn from_entry(entry: &'a KernelEntry, problems: &[KernelProblem]) -> Self {
        let info = entry.info();
        // Rows are compared by address: the same description is the same row.
        let problem = problems.iter().find(|problem| std::ptr::eq(problem.entry.info(), info));
        Self {
            op: &info.op,
            domain: schema::displayed_domain(&info.domain),
            version_min: info.version_min,
            version_max: info.version_max,
            device_type: &info.device_type,
            inputs: info.inputs.iter().map(OperandReport::from_operand).collect(),
            outputs: info.outputs.iter().map(OperandReport::from_operand).collect(),
            score: info.score,
            plugin: entry.plugin_name(),
            deterministic: info.deterministic,
            asynchronous: info.asynchronous,
            allocates_outputs: info.allocates_outputs,
            in_place: &info.in_place,
            problem: problem.map(|problem| problem.error.to_string()),
            info,
        }
    }

    fn matches_filter(&self, filter: &KernelFilter) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let takes = |dtype: Dtype| {
            typed_operands(self.info).iter().any(|operand| operand.accepts_dtype(dtype.to_abi()))
        };
        is(&filter.op, self.op)
            && filter.domain.as_ref().is_none_or(|wanted| self.domain == schema::displayed_domain(wanted))
            && is(&filter.device, self.device_type)
            && is(&filter.plugin_name, self.plugin)
            && filter.dtype.is_none_or(takes)
    }

    fn table_row(&self) -> [TableCell; 9] {
        let layouts =
            join_distinct(self.info.inputs.iter().map(|operand| layout_name(operand).unwrap_or("unknown")));
        let flags = [(self.deterministic, "deterministic"), (self.asynchronous, "asynchronous")];
        let flags: Vec<&str> = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
        let plugin_style = if self.problem.is_some() { BAD_STYLE } else { QUIET_STYLE };
        [
            TableCell::with_style(self.op, NAME_STYLE),
            TableCell::new(self.domain),
            TableCell::new(self.info.version_range()),
            TableCell::new(self.device_type),
            TableCell::new(join_distinct(
                typed_operands(self.info).iter().map(|operand| family_names(operand.dtypes)),
            )),
            TableCell::new(layouts),
            TableCell::new(self.score.to_string()),
            TableCell::with_style(self.plugin, plugin_style),
            TableCell::with_style(flags.join(", "), QUIET_STYLE),
        ]
    }
}

impl<'a> OperandReport<'a> {
    fn from_operand(info: &'a OperandInfo) -> Self {
        let set = DtypeSet(info.dtypes);
        let dtypes = Dtype::ALL.iter().filter(|dtype| dtype.is_in(set)).map(|dtype| dtype.name());
        Self {
            name: &info.name,
            dtypes: dtypes.collect(),
            dtype_group: info.dtype_group,
            rank_min: info.rank_min,
            rank_max: (info.rank_max != u32::MAX).then_some(info.rank_max),
            layout: layout_name(info),
            optional: info.optional,
            variadic: info.variadic,
            strided: info.strided,
        }
    }
}

fn print_kernels(kernels: &[KernelReport<'_>], output: &mut CommandOutput) {
    /// The dtypes; only this column can be long.
    const SHRINKING_COLUMN: usize = 4;
    let mut table = TextTable::new(SHRINKING_COLUMN);
    if !kernels.is_empty() {
        let heads = ["op", "domain", "versions", "device", "dtypes", "layout", "score", "plugin", "flags"];
        table.add_row(heads.map(|head| TableCell::with_style(head, QUIET_STYLE)));
    }
    let (wrong, right): (Vec<_>, Vec<_>) = kernels.iter().partition(|kernel| kernel.problem.is_some());
    right.iter().chain(&wrong).for_each(|kernel| table.add_row(kernel.table_row()));
    table.print_table(output);
    if !wrong.is_empty() {
        let heading = output.paint_text(NAME_STYLE, "Never used");
        output.write_line(&format!("\n{heading}"));
    }
    for kernel in wrong {
        let problem = kernel.problem.as_deref().unwrap_or_default();
        print_sentence(output, 2, &format!("`{}`: {problem}", kernel.plugin));
    }
}

/// The operands whose dtypes characterize the kernel.
fn typed_operands(info: &KernelInfo) -> &[OperandInfo] {
    if info.inputs.is_empty() { &info.outputs } else { &info.inputs }
}

fn layout_name(operand: &OperandInfo) -> Option<&'static str> {
    Layout(operand.layout).name()
}

/// Joins distinct texts, in order of first appearance.
fn join_distinct<T: AsRef<str> + PartialEq>(texts: impl Iterator<Item = T>) -> String {
    let mut all: Vec<T> = Vec::new();
    for text in texts {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("; ")
}

/// Names of a dtype set; a complete family is abbreviated.
fn family_names(set: u64) -> String {
    let has = |dtype: &Dtype| dtype.is_in(DtypeSet(set));
    if Dtype::ALL.iter().all(has) {
        return "any".to_owned();
    }
    let mut names = Vec::new();
    for dtype in Dtype::ALL.iter().filter(|dtype| has(dtype)) {
        let family =
            DTYPE_FAMILIES.iter().find(|(_, members)| members.contains(dtype) && members.iter().all(has));
        let name = family.map_or(dtype.name(), |(name, _)| *name);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_family_has_one_name() {
        let set = |dtypes: &[Dtype]| dtypes.iter().fold(0, |set, dtype| set | dtype.to_set().0);
        assert_eq!(family_names(set(Dtype::ALL)), "any");
        assert_eq!(
            family_names(set(&DTYPE_FAMILIES.map(|(_, members)| members).concat())),
            "ints uints f8 floats complex"
        );
        assert_eq!(family_names(set(&[Dtype::Bool, Dtype::F32, Dtype::F64, Dtype::I8])), "bool i8 f32 f64");
        assert_eq!(family_names(0), "");
    }

    #[test]
    fn what_is_the_same_is_said_once() {
        assert_eq!(join_distinct(["a", "b", "a"].into_iter()), "a; b");
    }
}
