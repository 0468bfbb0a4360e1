//! `oarlock op`: one op, from files to the device and back.

mod attributes;
mod report;

use std::ffi::OsStr;
use std::path::Path;

use oarlock_core::{Device, Op, OpInvocation, Runtime, Tensor, schema};

use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, OpArguments};
use crate::output::CommandOutput;
use crate::problem::CommandError;
use crate::render::plugin_with_file;
use crate::session::CoreSession;
use oarlock_report::npy;

use crate::{environment_flags, literal, output_file, watched_child};
use oarlock_report::array::HostArray;
use report::OpReport;

pub(crate) fn run_op(
    global: &GlobalOptions,
    call: &OpArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    output_file::check_output_files(call.files.iter().filter_map(|file| output_file(file)))?;
    if let Some((domain, name)) = call.name.split_once("::") {
        let problem = CommandError::new(format!("expected the name of an op, found `{}`", call.name));
        return Err(
            problem.with_hint(format!("name its domain apart, as in `oarlock op {name} --domain {domain}`"))
        );
    }
    let mut flags = environment_flags::flags_from_environment()?;
    for (name, value) in &call.flags {
        flags.set(name, value)?;
    }
    let core = CoreSession::start_core(global, flags)?;
    let is_complete = core.warn_about_missing(global, false);
    let runtime = &core.runtime;
    let device = match &call.device {
        Some(name) => runtime.device(name)?,
        None => runtime.default_device()?.clone(),
    };
    let opset = match call.opset {
        Some(opset) => opset,
        None => runtime.latest_opset(&call.domain, &call.name),
    };
    let plugin = plugin_with_file(device.host_device().plugin());
    watched_child::send_status(&format!("`{device}` of {plugin} was given the inputs of `{}`", call.name));
    let attributes = attributes::parse_attributes(call, opset, &device)?;
    let op = Op::new(runtime, &call.domain, &call.name, opset, attributes)?;
    let outputs = output_count(call, opset)?;
    let inputs = call.inputs.iter().map(|text| read_input(text, &device));
    let inputs = inputs.collect::<Result<Vec<Option<Tensor>>, CommandError>>()?;
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let invocation = OpInvocation { inputs: &inputs, outputs, device: Some(&device), stream: None };

    watched_child::send_status(&format!("a kernel for `{}` on `{device}` was looked for", call.name));
    let creates_text = oarlock_engine::creates_text(&op);
    let explanation =
        if call.explain || creates_text { Some(op.explain_call(runtime, &invocation)?) } else { None };
    let has_kernel = explanation.as_ref().is_none_or(|explanation| explanation.chosen_entry().is_some());
    // The engine creates new text itself, here as in a model.
    let is_text = creates_text && !has_kernel;
    let mut report = OpReport::new(&op, &device, explanation.as_ref().filter(|_| call.explain), is_text);
    if !global.json {
        report.print_explanation(output);
    }
    if !call.dry_run {
        report_kernel(&op, runtime, &invocation, &device);
        let result = if is_text {
            std::iter::once(Some(oarlock_engine::run_text_op(runtime, &op, &inputs)?)).collect()
        } else {
            op.invoke(runtime, &invocation)?
        };
        for (index, tensor) in result.iter().enumerate() {
            let file = call.files.get(index).and_then(|file| output_file(file));
            report.add_output(output_name(call, opset, index), tensor.as_ref(), file)?;
        }
    }
    if global.json {
        super::print_json(output, &report)?;
    } else {
        report.print_outputs(output);
    }
    output.flush();
    Ok(is_complete && (has_kernel || is_text || !call.dry_run))
}

/// `None` for an output that is printed.
fn output_file(file: &Path) -> Option<&Path> {
    Some(file).filter(|file| *file != Path::new("-"))
}

/// Tells the watching parent which kernel is about to run. It stays the suspect until the outputs are ready, because a kernel
/// may return before its work is done.
fn report_kernel(op: &Op, runtime: &Runtime, invocation: &OpInvocation<'_>, device: &Device) {
    if !watched_child::is_watched() {
        return;
    }
    // A call that cannot be explained cannot be made; the call itself reports the error.
    let Ok(explanation) = op.explain_call(runtime, invocation) else { return };
    let plugin = explanation.chosen_entry().and_then(|row| runtime.host().plugin(row.plugin_name()));
    let plugin = plugin.map_or_else(|| "the CPU".to_owned(), |plugin| plugin_with_file(plugin));
    watched_child::send_status(&format!("the kernel for `{}` of {plugin} ran on `{device}`", op.name()));
}

/// The number of outputs to request.
fn output_count(call: &OpArguments, opset: u32) -> Result<usize, CommandError> {
    let schema = schema::find_schema(&call.domain, &call.name, opset).ok();
    let fewest = schema.map_or(1, |schema| schema.min_outputs()).max(1);
    let wanted = call.outputs.map_or(call.files.len().max(fewest), usize::from);
    let most = schema.and_then(|schema| schema.max_outputs()).unwrap_or(usize::MAX);
    let problem = if wanted > most {
        format!("`{}`: expected at most {}, found {wanted}", call.name, output_count_text(most))
    } else if wanted < call.files.len() {
        format!("expected files for {} at most, found {}", output_count_text(wanted), call.files.len())
    } else {
        return Ok(wanted);
    };
    Err(CommandError::new(problem).with_hint("correct `--outputs`, or leave out some `-o`"))
}

fn output_count_text(count: usize) -> String {
    oarlock_report::text::format_count(count, "output", "outputs")
}

/// The output's name in the schema.
fn output_name(call: &OpArguments, opset: u32, index: usize) -> Option<&'static str> {
    let schema = schema::find_schema(&call.domain, &call.name, opset).ok()?;
    Some(schema.formal_output(index)?.name)
}

/// Reads an input; `None` for one that is left out.
fn read_input(text: &OsStr, device: &Device) -> Result<Option<Tensor>, CommandError> {
    if text == "-" {
        return Ok(None);
    }
    Ok(Some(read_array(text)?.to_tensor(device)?))
}

/// Reads a file or parses a literal.
fn read_array(text: &OsStr) -> Result<HostArray, CommandError> {
    let typed = text.to_str().and_then(literal::parse_literal);
    typed.unwrap_or_else(|| npy::read_npy(Path::new(text), &|_, _| Ok(())))
}
