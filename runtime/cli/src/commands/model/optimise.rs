//! `oarlock optimise`: a model as passes leave it, as a file.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use oarlock_engine::export::onnx::{About, Files};
use oarlock_engine::import;
use serde::Serialize;

use super::explain::PassReport;
use super::feeds::specialise;
use super::{Subject, check, show};
use crate::Verdict;
use crate::arguments::{Exactness, Global, OptimiseCall};
use crate::output::{self, Output};
use crate::problem::Problem;
use crate::render::{Cell, Table, bytes, count, sentence};
use crate::{target, watched};

/// What was done.
#[derive(Serialize)]
struct Report {
    model: String,
    devices: Vec<String>,
    nodes_in_file: usize,
    nodes: usize,
    /// Nodes that other programs may not understand.
    own_nodes: usize,
    passes: Vec<PassReport>,
    files: Vec<Written>,
    /// What else there is to know, in sentences.
    notes: Vec<String>,
    /// Why the model cannot be run here, in sentences.
    warnings: Vec<String>,
}

/// A file that was written.
#[derive(Serialize)]
struct Written {
    file: String,
    bytes: u64,
}

pub(crate) fn run(global: &Global, call: &OptimiseCall, output: &mut Output) -> Verdict {
    let model_file = call.output.as_path();
    if model_file.as_os_str() == "-" {
        return Err(target::no_output(model_file));
    }
    target::check([model_file])?;
    let weights_file = beside(model_file);
    let name = weights_file.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        Problem::new(format!(
            "`{}`: expected a name of letters in UTF-8, found another",
            model_file.display()
        ))
    })?;
    let subject = Subject::load_changed(global, &call.choice, Exactness::default(), |model| {
        specialise(model, &call.choice.shapes)
    })?;
    subject.check_outputs(&call.choice)?;
    show(&subject.progress, &format!("writing `{}` …", model_file.display()));
    watched::tell(&format!("`{}` was written", model_file.display()));
    let mut metadata = subject.model.metadata.clone();
    metadata.insert("oarlock.optimised_for".to_owned(), subject.devices().join(", "));
    let about = About { metadata, opsets: subject.model.opsets.clone(), weights_file: name };
    let files = subject.session.to_onnx(&about)?;
    check_apart(&files, &call.choice.file, model_file, &weights_file)?;
    let written = write(&files, model_file, &weights_file)?;
    let (runtime, devices) = (&subject.core.runtime, subject.session.devices());
    let warnings = check::obstacles(&subject.model, runtime, devices, subject.is_plain);
    super::clear(&subject.progress);
    for warning in &warnings {
        output::say(global.color, "warning", warning, Some("`oarlock check` says what can be run"));
    }
    let effects = subject.session.effects().iter();
    let report = Report {
        model: call.choice.file.display().to_string(),
        devices: subject.devices(),
        nodes_in_file: subject.model.graph.nodes.len(),
        nodes: files.nodes,
        own_nodes: files.own_nodes,
        passes: effects.map(|effect| PassReport::of(effect, false)).collect(),
        files: written,
        notes: notes(&subject, &files, &weights_file),
        warnings,
    };
    super::tell(global, output, &report, |output| report.print(output))?;
    Ok(subject.is_complete)
}

/// What the file does not keep, or not for everybody.
fn notes(subject: &Subject, files: &Files, weights_file: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    if files.own_nodes > 0 {
        let nodes = count(files.own_nodes, "node is", "nodes are");
        let advice = if subject.is_plain { "" } else { "; `--plain` keeps to the ops of the model" };
        notes.push(format!("{nodes} of an op, or of an opset, that only Oarlock understands{advice}"));
    }
    if files.weights.is_empty() && weights_file.exists() {
        notes.push(format!("`{}` is no part of the model", weights_file.display()));
    }
    let optional = subject.session.optional_inputs().len();
    if optional > 0 {
        let inputs = count(optional, "optional input is a constant", "optional inputs are constants");
        notes.push(format!("{inputs} now"));
    }
    notes
}

/// The file for weights that are too large to lie in the model.
fn beside(model_file: &Path) -> PathBuf {
    let mut name = model_file.as_os_str().to_owned();
    name.push(".data");
    name.into()
}

/// Checks that nothing is written over that the model is read from, unless it is the model itself, which the file then
/// takes the place of.
fn check_apart(files: &Files, source: &Path, model_file: &Path, weights_file: &Path) -> Result<(), Problem> {
    let is_replaced =
        model_file.canonicalize().is_ok_and(|file| source.canonicalize().is_ok_and(|own| own == file));
    let beside = (!files.weights.is_empty()).then_some(weights_file);
    target::check(beside)?;
    match [Some(model_file), beside].into_iter().flatten().find(|file| import::is_in_use(file)) {
        Some(file) if !is_replaced => {
            let message = format!(
                "`{}`: expected a file of its own, found one that the model is read from",
                file.display()
            );
            Err(Problem::new(message).hint("name another file"))
        }
        _ => Ok(()),
    }
}

/// Writes the weights before the model, which is of no use without them.
fn write(files: &Files, model_file: &Path, weights_file: &Path) -> Result<Vec<Written>, Problem> {
    let mut written = Vec::new();
    let told = |file: &Path, bytes| Written { file: file.display().to_string(), bytes };
    if let Some((place, last)) = files.weights.last() {
        let put = |file: &mut std::fs::File| {
            for (place, bytes) in &files.weights {
                file.seek(SeekFrom::Start(*place))?;
                file.write_all(bytes)?;
            }
            Ok(())
        };
        target::replace(weights_file, put).map_err(|error| target::unwritable(weights_file, &error))?;
        written.push(told(weights_file, place + last.len() as u64));
    }
    target::replace(model_file, |file| file.write_all(&files.model))
        .map_err(|error| target::unwritable(model_file, &error))?;
    written.insert(0, told(model_file, files.model.len() as u64));
    Ok(written)
}

impl Report {
    fn print(&self, output: &mut Output) {
        for Written { file, bytes: size } in &self.files {
            sentence(output, 0, &format!("`{file}`: {}", bytes(*size)));
        }
        let (nodes, devices) = (count(self.nodes, "node", "nodes"), self.devices.join(", "));
        sentence(
            output,
            0,
            &format!("{nodes}, of {} in `{}`, for {devices}", self.nodes_in_file, self.model),
        );
        self.notes.iter().for_each(|note| sentence(output, 0, note));
        let mut table = Table::new(3);
        for pass in &self.passes {
            let [name, _, changes, nodes, purpose] = pass.row();
            table.row([name, changes, nodes, purpose].map(Cell::new));
        }
        table.print(output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_weights_lie_beside_the_model() {
        assert_eq!(beside(Path::new("out/model.onnx")), Path::new("out/model.onnx.data"));
        let directory = tempfile::tempdir().unwrap();
        let (model, weights) = (directory.path().join("m.onnx"), directory.path().join("m.onnx.data"));
        let parts = vec![(0, vec![1; 3].into()), (8, vec![2; 2].into())];
        let files = Files { model: vec![9], weights: parts, nodes: 1, own_nodes: 0 };
        let written = write(&files, &model, &weights).unwrap();
        assert_eq!(std::fs::read(&model).unwrap(), [9]);
        assert_eq!(std::fs::read(&weights).unwrap(), [1, 1, 1, 0, 0, 0, 0, 0, 2, 2]);
        assert_eq!(written.iter().map(|written| written.bytes).collect::<Vec<_>>(), [1, 10]);
    }
}
