//! `oarlock optimize`: writes a model to a file after all passes.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use oarlock_engine::export::onnx::{OnnxExportOptions, OnnxModelFiles};
use serde::Serialize;

use super::model_inputs::specialize_shapes;
use super::{PreparedModel, check, show_progress};
use crate::CommandVerdict;
use crate::arguments::{GlobalOptions, OptimizeArguments, PrecisionArguments};
use crate::output::{self, CommandOutput};
use crate::problem::CommandError;
use crate::render::{TableCell, TextTable, print_sentence};
use crate::{output_file, watched_child};
use oarlock_report::file::replace_file;
use oarlock_report::pass_report::PassReport;
use oarlock_report::text::{format_bytes, format_count};

#[derive(Serialize)]
struct OptimizationReport {
    model: String,
    devices: Vec<String>,
    nodes_in_file: usize,
    nodes: usize,
    /// Nodes of Oarlock's own domain, which other programs may not know.
    own_nodes: usize,
    passes: Vec<PassReport>,
    files: Vec<WrittenFile>,
    /// What the file loses, in sentences.
    notes: Vec<String>,
    /// Why the model cannot run here, in sentences.
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct WrittenFile {
    file: String,
    bytes: u64,
}

pub(crate) fn optimize_model(
    global: &GlobalOptions,
    call: &OptimizeArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    let model_file = call.output.as_path();
    if model_file.as_os_str() == "-" {
        return Err(output_file::standard_output_error(model_file));
    }
    output_file::check_output_files([model_file])?;
    let weights_file = weights_path(model_file);
    let name = weights_file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        CommandError::new(format!(
            "`{}`: expected a name of letters in UTF-8, found another",
            model_file.display()
        ))
    })?;
    let subject =
        PreparedModel::load_modified(global, &call.choice, PrecisionArguments::default(), |model| {
            specialize_shapes(model, &call.choice.shapes)
        })?;
    subject.check_outputs(&call.choice)?;
    show_progress(&subject.progress, &format!("writing `{}` …", model_file.display()));
    watched_child::send_status(&format!("`{}` was written", model_file.display()));
    let mut metadata = subject.model.metadata.clone();
    metadata.insert("oarlock.optimized_for".to_owned(), subject.device_names().join(", "));
    let about = OnnxExportOptions { metadata, opsets: subject.model.opsets.clone(), weights_file: name };
    let files = subject.session.to_onnx(&about)?;
    check_distinct_files(
        &files,
        (&call.choice.file, &subject.model.weight_files),
        model_file,
        &weights_file,
    )?;
    let written = write_files(&files, model_file, &weights_file)?;
    let (runtime, devices) = (&subject.core.runtime, subject.session.devices());
    let warnings = check::describe_obstacles(&subject.model, runtime, devices, subject.is_plain);
    super::clear_progress(&subject.progress);
    for warning in &warnings {
        output::print_message(global.color, "warning", warning, Some("`oarlock check` says what can be run"));
    }
    let effects = subject.session.effects().iter();
    let report = OptimizationReport {
        model: call.choice.file.display().to_string(),
        devices: subject.device_names(),
        nodes_in_file: subject.model.graph.nodes.len(),
        nodes: files.nodes,
        own_nodes: files.own_nodes,
        passes: effects.map(|effect| PassReport::from_effect(effect, false)).collect(),
        files: written,
        notes: portability_notes(&subject, &files, &weights_file),
        warnings,
    };
    super::report_result(global, output, &report, |output| report.print_report(output))?;
    Ok(subject.is_complete)
}

/// What the file does not keep, or keeps only for this runtime.
fn portability_notes(subject: &PreparedModel, files: &OnnxModelFiles, weights_file: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    if files.own_nodes > 0 {
        let nodes = format_count(files.own_nodes, "node is", "nodes are");
        let advice = if subject.is_plain { "" } else { "; `--plain` keeps to the ops of the model" };
        notes.push(format!("{nodes} of an op, or of an opset, that only Oarlock understands{advice}"));
    }
    if files.weights.is_empty() && weights_file.exists() {
        notes.push(format!("`{}` is no part of the model", weights_file.display()));
    }
    let optional = subject.session.optional_inputs().len();
    if optional > 0 {
        let inputs = format_count(optional, "optional input is a constant", "optional inputs are constants");
        notes.push(format!("{inputs} now"));
    }
    notes
}

/// The file for weights too large for the model file.
fn weights_path(model_file: &Path) -> PathBuf {
    let mut name = model_file.as_os_str().to_owned();
    name.push(".data");
    name.into()
}

/// Refuses to overwrite files beside the model that its weights are read from, unless the model is replaced as well.
fn check_distinct_files(
    files: &OnnxModelFiles,
    (source, beside_source): (&Path, &[PathBuf]),
    model_file: &Path,
    weights_file: &Path,
) -> Result<(), CommandError> {
    let beside = (!files.weights.is_empty()).then_some(weights_file);
    output_file::check_output_files(beside)?;
    let is_same = |one: &Path, other: &Path| {
        one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
    };
    let is_read = |file: &&Path| beside_source.iter().any(|source| is_same(source, file));
    match [Some(model_file), beside].into_iter().flatten().find(is_read) {
        Some(file) if !is_same(source, model_file) => {
            let message = format!(
                "`{}`: expected a file of its own, found one that weights of the model are read from",
                file.display()
            );
            Err(CommandError::new(message).with_hint("name another file"))
        }
        _ => Ok(()),
    }
}

/// Writes weights first, because a model without them is useless.
fn write_files(
    files: &OnnxModelFiles,
    model_file: &Path,
    weights_file: &Path,
) -> Result<Vec<WrittenFile>, CommandError> {
    let mut written = Vec::new();
    let written_file = |file: &Path, bytes| WrittenFile { file: file.display().to_string(), bytes };
    if let Some((place, last)) = files.weights.last() {
        let put = |file: &mut std::fs::File| {
            for (place, bytes) in &files.weights {
                file.seek(SeekFrom::Start(*place))?;
                file.write_all(bytes)?;
            }
            Ok(())
        };
        replace_file(weights_file, put)
            .map_err(|error| output_file::unwritable_file(weights_file, &error))?;
        written.push(written_file(weights_file, place + last.len() as u64));
    }
    replace_file(model_file, |file| file.write_all(&files.model))
        .map_err(|error| output_file::unwritable_file(model_file, &error))?;
    written.insert(0, written_file(model_file, files.model.len() as u64));
    Ok(written)
}

impl OptimizationReport {
    fn print_report(&self, output: &mut CommandOutput) {
        for WrittenFile { file, bytes: size } in &self.files {
            print_sentence(output, 0, &format!("`{file}`: {}", format_bytes(*size)));
        }
        let (nodes, devices) = (format_count(self.nodes, "node", "nodes"), self.devices.join(", "));
        print_sentence(
            output,
            0,
            &format!("{nodes}, of {} in `{}`, for {devices}", self.nodes_in_file, self.model),
        );
        self.notes.iter().for_each(|note| print_sentence(output, 0, note));
        let mut table = TextTable::new(3);
        for pass in &self.passes {
            let [name, _, changes, nodes, purpose] = pass.table_row();
            table.add_row([name, changes, nodes, purpose].map(TableCell::new));
        }
        table.print_table(output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_weights_lie_beside_the_model() {
        assert_eq!(weights_path(Path::new("out/model.onnx")), Path::new("out/model.onnx.data"));
        let directory = tempfile::tempdir().unwrap();
        let (model, weights) = (directory.path().join("m.onnx"), directory.path().join("m.onnx.data"));
        let parts = vec![(0, vec![1; 3].into()), (8, vec![2; 2].into())];
        let files = OnnxModelFiles { model: vec![9], weights: parts, nodes: 1, own_nodes: 0 };
        let written = write_files(&files, &model, &weights).unwrap();
        assert_eq!(std::fs::read(&model).unwrap(), [9]);
        assert_eq!(std::fs::read(&weights).unwrap(), [1, 1, 1, 0, 0, 0, 0, 0, 2, 2]);
        assert_eq!(written.iter().map(|written| written.bytes).collect::<Vec<_>>(), [1, 10]);
    }
}
