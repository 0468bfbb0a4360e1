//! `oarlock explain`: how a model is run, and why so.

mod html;
mod memory;
mod nodes;
mod picture;

use std::path::PathBuf;

use oarlock_engine::passes::{self, Effect};
use serde::Serialize;

use super::accuracy::Extent;
use super::feeds::{Missing, Wish};
use super::{Kind, Subject};
use crate::Verdict;
use crate::arguments::{ExplainCall, Global};
use crate::output::{NAME, Output, QUIET};
use crate::render::{Cell, Table, count, cut, sentence};
use crate::{target, watched};
use memory::Memory;
use nodes::NodeReport;

/// Names of more letters are cut in tables for people, so that one of them does not push all others off the screen.
const MOST_LETTERS: usize = 60;

/// How many optional inputs are told one by one.
const MOST_OPTIONAL: usize = 8;

/// What there is to say about a model.
#[derive(Serialize)]
struct Report {
    model: String,
    /// What kind of file it is.
    format: String,
    producer: String,
    opsets: std::collections::BTreeMap<String, u32>,
    devices: Vec<String>,
    inputs: Vec<End>,
    /// What a run may be given beside; with the dtype and the shape of the value that the model has for it.
    optional_inputs: Vec<End>,
    outputs: Vec<End>,
    /// What was assumed, in sentences.
    notes: Vec<String>,
    nodes: Vec<NodeReport>,
    /// How many nodes the file has.
    nodes_in_file: usize,
    passes: Vec<PassReport>,
    memory: Memory,
    /// What is rounded; nothing where all has to be exact.
    precision: Option<Extent>,
}

/// An input or output.
#[derive(Serialize)]
struct End {
    name: String,
    /// As the model has it.
    declared: String,
    /// What the plan is for; nothing for what is no tensor, or not known before the run.
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
}

/// What a pass did.
#[derive(Serialize)]
pub(super) struct PassReport {
    pass: &'static str,
    purpose: &'static str,
    /// Whether it ran with the shapes of the inputs known.
    with_shapes: bool,
    changes: usize,
    nodes_before: usize,
    nodes_after: usize,
}

pub(crate) fn run(global: &Global, call: &ExplainCall, output: &mut Output) -> Verdict {
    target::check(call.html.iter().chain(&call.svg).map(PathBuf::as_path))?;
    let subject = Subject::load_to_look(global, &call.choice, call.exactness)?;
    let wish = Wish { inputs: &call.inputs, shapes: &call.choice.shapes, missing: Missing::Shaped };
    let given = wish.fulfil(&subject.session, subject.device()?)?;
    let devices = subject.devices().join("`, `");
    watched::tell(&format!("the nodes of the model were readied on `{devices}`"));
    let plan = subject.session.plan(&given.data)?;
    super::clear(&subject.progress);
    subject.mention_failing_run(global, &given.data)?;
    let graph = plan.graph();
    let inputs = subject.session.inputs().iter().zip(&given.data).map(|(slot, datum)| {
        let Kind { name, dtype, shape } = Kind::of(&slot.name, datum);
        End { name, declared: slot.declared.to_string(), dtype, shape }
    });
    let defaults = subject.session.optional_inputs().iter().zip(&subject.model.graph.defaults);
    let optional_inputs = defaults.map(|(slot, id)| {
        let value = subject.model.graph.value(*id);
        End {
            name: slot.name.to_string(),
            declared: slot.declared.to_string(),
            dtype: value.dtype().map(|dtype| dtype.name()),
            shape: value.dims().map(|dims| dims.to_vec()),
        }
    });
    let outputs = subject.session.outputs().iter().zip(&graph.outputs).map(|(slot, id)| End {
        name: slot.name.to_string(),
        declared: slot.declared.to_string(),
        dtype: graph.value(*id).dtype().map(|dtype| dtype.name()),
        shape: graph.value(*id).dims().map(|dims| dims.to_vec()),
    });
    let before = subject.session.effects().iter().map(|effect| PassReport::of(effect, false));
    let after = plan.effects().iter().map(|effect| PassReport::of(effect, true));
    let report = Report {
        model: call.choice.file.display().to_string(),
        format: subject.model.format.clone(),
        producer: subject.model.producer.clone(),
        opsets: subject.model.opsets.clone(),
        devices: subject.devices(),
        inputs: inputs.collect(),
        optional_inputs: optional_inputs.collect(),
        outputs: outputs.collect(),
        notes: given.assumed,
        nodes: nodes::reports(&plan, subject.session.devices(), &subject.core.runtime),
        nodes_in_file: subject.model.graph.nodes.len(),
        passes: before.chain(after).collect(),
        memory: Memory::of(&plan, &subject.model.graph),
        precision: Extent::of(&subject, &plan)?,
    };
    if let Some(file) = &call.svg {
        picture::check(report.nodes.len())?;
        target::write_text(file, &picture::alone(graph, &report.nodes))?;
    }
    if let Some(file) = &call.html {
        target::write_text(file, &html::page(&report, graph))?;
    }
    super::tell(global, output, &report, |output| report.print(call.passes, output))?;
    Ok(subject.is_complete)
}

impl Report {
    fn print(&self, with_passes: bool, output: &mut Output) {
        let heading = output.paint(NAME, &oarlock_host::clean_text(&self.model));
        output.line(&heading);
        sentence(output, 0, &self.origin());
        End::print(&self.inputs, "inputs", output);
        self.notes.iter().for_each(|note| sentence(output, 2, note));
        self.print_optional(output);
        End::print(&self.outputs, "outputs", output);
        if with_passes {
            heading_line(output, "passes");
            let mut table = Table::new(4);
            for pass in &self.passes {
                table.row(pass.row().map(Cell::new));
            }
            table.print(output);
            if self.passes.is_empty() {
                sentence(output, 2, "none had anything to change");
            }
        }
        let (now, file) = (self.nodes.len(), self.nodes_in_file);
        let nodes = count(now, "node", "nodes");
        let title = if now == file { nodes } else { format!("{nodes}, of {file} in the file") };
        heading_line(output, &title);
        let mut table = Table::new(4);
        let titles = ["  op", "node", "output", "device", "kernel", "why"];
        table.row(titles.map(|title| Cell::styled(title, QUIET)));
        for row in self.nodes.iter().flat_map(|node| node.rows(1)) {
            let [op, node, made, device, kernel, why] = row;
            let names = [op, node, made].map(|name| Cell::new(cut(&name, MOST_LETTERS)));
            table.row(names.into_iter().chain([device, kernel, why].map(Cell::new)).collect::<Vec<_>>());
        }
        table.print(output);
        heading_line(output, "memory");
        self.memory.sentences().iter().for_each(|text| sentence(output, 2, text));
        if let Some(precision) = &self.precision {
            heading_line(output, "precision");
            precision.sentences().iter().for_each(|text| sentence(output, 2, text));
        }
    }

    /// Old models have all of their weights among these, so not all of them are told.
    fn print_optional(&self, output: &mut Output) {
        let (shown, rest) = self.optional_inputs.split_at(self.optional_inputs.len().min(MOST_OPTIONAL));
        if !shown.is_empty() {
            End::print(shown, "optional inputs, which the model has values for", output);
        }
        if !rest.is_empty() {
            sentence(output, 2, &format!("and {}", count(rest.len(), "other", "others")));
        }
    }

    /// Where the model comes from.
    fn origin(&self) -> String {
        let opsets: Vec<String> =
            self.opsets.iter().map(|(domain, version)| format!("{domain} {version}")).collect();
        let by = if self.producer.is_empty() { String::new() } else { format!(" by {}", self.producer) };
        format!("{}{by}, opsets {}; on {}", self.format, opsets.join(", "), self.devices.join(", "))
    }
}

fn heading_line(output: &mut Output, title: &str) {
    let title = output.paint(NAME, title);
    output.line("");
    output.line(&title);
}

impl End {
    fn print(ends: &[Self], title: &str, output: &mut Output) {
        heading_line(output, title);
        let mut table = Table::new(1);
        for end in ends {
            let name = format!("  {}", cut(&end.name, MOST_LETTERS));
            table.row([
                Cell::new(name),
                Cell::new(cut(&end.declared, MOST_LETTERS)),
                Cell::new(end.planned()),
            ]);
        }
        table.print(output);
    }

    /// What the plan is for.
    fn planned(&self) -> String {
        match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("planned for {dtype} {shape:?}"),
            _ => "known in the run".to_owned(),
        }
    }
}

impl PassReport {
    pub(super) fn of(effect: &Effect, with_shapes: bool) -> Self {
        let (nodes_before, nodes_after) = effect.nodes;
        Self {
            pass: effect.pass,
            purpose: passes::ALL.iter().find(|pass| pass.name == effect.pass).map_or("", |pass| pass.purpose),
            with_shapes,
            changes: effect.changes,
            nodes_before,
            nodes_after,
        }
    }

    /// What is told about it in a line.
    pub(super) fn row(&self) -> [String; 5] {
        let when = if self.with_shapes { "with shapes" } else { "before shapes" };
        [
            format!("  {}", self.pass),
            when.to_owned(),
            count(self.changes, "change", "changes"),
            format!("{} → {} nodes", self.nodes_before, self.nodes_after),
            self.purpose.to_owned(),
        ]
    }
}
