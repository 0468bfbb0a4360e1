//! `oarlock op`: one op, from files to the metal and back.

mod attributes;
mod report;

use std::ffi::OsStr;
use std::path::Path;

use oarlock_core::{Device, Invocation, Op, Runtime, Tensor, schema};

use crate::Verdict;
use crate::arguments::{Global, OpCall};
use crate::array::Array;
use crate::output::Output;
use crate::problem::Problem;
use crate::render::named;
use crate::session::Core;
use crate::{literal, npy, target, variables, watched};
use report::Report;

pub(crate) fn run(global: &Global, call: &OpCall, output: &mut Output) -> Verdict {
    target::check(call.files.iter().filter_map(|file| written_to(file)))?;
    let mut flags = variables::flags()?;
    for (name, value) in &call.flags {
        flags.set(name, value)?;
    }
    let core = Core::start(global, flags)?;
    let is_complete = core.mention_what_is_missing(global, false);
    let runtime = &core.runtime;
    let device = match &call.device {
        Some(name) => runtime.device(name)?,
        None => runtime.default_device()?.clone(),
    };
    let opset = match call.opset {
        Some(opset) => opset,
        None => runtime.newest_opset(&call.domain, &call.name),
    };
    let plugin = named(device.host_device().plugin());
    watched::tell(&format!("`{device}` of {plugin} was given the inputs of `{}`", call.name));
    let attributes = attributes::parse(call, opset, &device)?;
    let op = Op::new(runtime, &call.domain, &call.name, opset, attributes)?;
    let outputs = output_count(call, opset)?;
    let inputs = call.inputs.iter().map(|text| input(text, &device));
    let inputs = inputs.collect::<Result<Vec<Option<Tensor>>, Problem>>()?;
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let invocation = Invocation { inputs: &inputs, outputs, device: Some(&device), stream: None };

    watched::tell(&format!("a kernel for `{}` on `{device}` was looked for", call.name));
    let makes_text = oarlock_engine::makes_text(&op);
    let explanation = if call.explain || makes_text { Some(op.explain(runtime, &invocation)?) } else { None };
    let has_kernel = explanation.as_ref().is_none_or(|explanation| explanation.chosen().is_some());
    // New text is made by the engine, here as in a model.
    let is_text = makes_text && !has_kernel;
    let mut report = Report::new(&op, &device, explanation.as_ref().filter(|_| call.explain), is_text);
    if !global.json {
        report.print_explanation(output);
    }
    if !call.dry_run {
        tell_kernel(&op, runtime, &invocation, &device);
        let made = if is_text {
            std::iter::once(Some(oarlock_engine::make_text(runtime, &op, &inputs)?)).collect()
        } else {
            op.invoke(runtime, &invocation)?
        };
        for (index, tensor) in made.iter().enumerate() {
            let file = call.files.get(index).and_then(|file| written_to(file));
            report.add(output_name(call, opset, index), tensor.as_ref(), file)?;
        }
    }
    if global.json {
        super::print_json(output, &report)?;
    } else {
        report.print_outputs(output);
    }
    output.flush();
    watched::tell("the plugins were ended");
    Ok(is_complete && (has_kernel || is_text || !call.dry_run))
}

/// The file that an output is written to; nothing for one that is printed.
fn written_to(file: &Path) -> Option<&Path> {
    Some(file).filter(|file| *file != Path::new("-"))
}

/// Tells whoever watches which kernel is about to run. One that leaves its work behind is meant until the outputs are there.
fn tell_kernel(op: &Op, runtime: &Runtime, invocation: &Invocation<'_>, device: &Device) {
    if !watched::is_watched() {
        return;
    }
    // A call that cannot be explained cannot be made, which the call says itself.
    let Ok(explanation) = op.explain(runtime, invocation) else { return };
    let plugin = explanation.chosen().and_then(|row| runtime.host().plugin(row.plugin()));
    let plugin = plugin.map_or_else(|| "the CPU".to_owned(), |plugin| named(plugin));
    watched::tell(&format!("the kernel for `{}` of {plugin} ran on `{device}`", op.name()));
}

/// How many outputs the call is to have.
fn output_count(call: &OpCall, opset: u32) -> Result<usize, Problem> {
    let schema = schema::find(&call.domain, &call.name, opset).ok();
    let fewest = schema.map_or(1, |schema| schema.min_outputs()).max(1);
    let wanted = call.outputs.map_or(call.files.len().max(fewest), usize::from);
    let most = schema.and_then(|schema| schema.max_outputs()).unwrap_or(usize::MAX);
    let problem = if wanted > most {
        format!("`{}`: expected at most {}, found {wanted}", call.name, outputs(most))
    } else if wanted < call.files.len() {
        format!("expected files for {} at most, found {}", outputs(wanted), call.files.len())
    } else {
        return Ok(wanted);
    };
    Err(Problem::new(problem).hint("correct `--outputs`, or leave out some `-o`"))
}

fn outputs(count: usize) -> String {
    crate::render::count(count, "output", "outputs")
}

/// What the schema calls an output.
fn output_name(call: &OpCall, opset: u32, index: usize) -> Option<&'static str> {
    let schema = schema::find(&call.domain, &call.name, opset).ok()?;
    Some(schema.formal_output(index)?.name)
}

/// The tensor that an argument stands for; nothing for an input that is left out.
fn input(text: &OsStr, device: &Device) -> Result<Option<Tensor>, Problem> {
    if text == "-" {
        return Ok(None);
    }
    array(text)?.to_tensor(device).map(Some)
}

/// What an argument holds, be it a file or values.
fn array(text: &OsStr) -> Result<Array, Problem> {
    let typed = text.to_str().and_then(literal::parse);
    typed.unwrap_or_else(|| npy::read(Path::new(text), &|_, _| Ok(())))
}
