//! `oarlock explain`: how a model is run, and why.

mod graph_picture;
mod graph_sections;
mod html_report;
mod memory_picture;

use std::path::PathBuf;

use oarlock_report::memory_layout::MemoryLayout;
use oarlock_report::node_report::{self, NodeReport};
use oarlock_report::pass_report::PassReport;
use oarlock_report::rounding::RoundingExtent;
use serde::Serialize;

use super::PreparedModel;
use super::model_inputs::{InputRequest, MissingInputs};
use crate::CommandVerdict;
use crate::arguments::{ExplainArguments, GlobalOptions};
use crate::output::{CommandOutput, NAME_STYLE, QUIET_STYLE};
use crate::output_file;
use crate::render::{TableCell, TextTable, print_sentence, truncate_text};
use oarlock_report::text::format_count;
use oarlock_report::value_description::ValueDescription;

/// Longer names are truncated in tables, so that one of them does not push all others off the screen.
const MAX_NAME_LENGTH: usize = 60;

/// Optional inputs listed one by one; the rest are counted.
const MAX_SHOWN_OPTIONAL: usize = 8;

#[derive(Serialize)]
struct ExplainReport {
    model: String,
    /// Kind and version of the file.
    format: String,
    producer: String,
    opsets: std::collections::BTreeMap<String, u32>,
    devices: Vec<String>,
    inputs: Vec<GraphEndpoint>,
    /// Inputs with a default in the model, whose dtype and shape are shown.
    optional_inputs: Vec<GraphEndpoint>,
    outputs: Vec<GraphEndpoint>,
    /// One sentence for each assumption.
    notes: Vec<String>,
    nodes: Vec<NodeReport>,
    nodes_in_file: usize,
    passes: Vec<PassReport>,
    memory: MemoryLayout,
    /// What is rounded; `None` if everything is exact.
    precision: Option<RoundingExtent>,
}

#[derive(Serialize)]
struct GraphEndpoint {
    name: String,
    /// The type as the model declares it.
    declared: String,
    /// The dtype in the plan; `None` if it is no tensor or unknown before the run.
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
}

pub(crate) fn explain_model(
    global: &GlobalOptions,
    call: &ExplainArguments,
    output: &mut CommandOutput,
) -> CommandVerdict {
    output_file::check_output_files(call.html.iter().chain(&call.svg).map(PathBuf::as_path))?;
    let subject = PreparedModel::load_for_inspection(global, &call.choice, call.exactness)?;
    let wish =
        InputRequest { inputs: &call.inputs, shapes: &call.choice.shapes, missing: MissingInputs::Shaped };
    let given = subject.create_inputs(&wish)?;
    let plan = subject.plan_inputs(&given.data)?;
    super::clear_progress(&subject.progress);
    subject.warn_about_failing_run(global, &given.data)?;
    let graph = plan.graph();
    let inputs = subject.session.inputs().iter().zip(&given.data).map(|(slot, value)| {
        let ValueDescription { name, dtype, shape } = ValueDescription::from_value(&slot.name, value);
        GraphEndpoint { name, declared: slot.declared.to_string(), dtype, shape }
    });
    let defaults =
        subject.session.optional_inputs().iter().zip(&subject.model.graph.overridable_initializers);
    let optional_inputs = defaults.map(|(slot, id)| {
        let value = subject.model.graph.value(*id);
        GraphEndpoint {
            name: slot.name.to_string(),
            declared: slot.declared.to_string(),
            dtype: value.dtype().map(|dtype| dtype.name()),
            shape: value.dims().map(|dims| dims.to_vec()),
        }
    });
    let outputs = subject.session.outputs().iter().zip(&graph.outputs).map(|(slot, id)| GraphEndpoint {
        name: slot.name.to_string(),
        declared: slot.declared.to_string(),
        dtype: graph.value(*id).dtype().map(|dtype| dtype.name()),
        shape: graph.value(*id).dims().map(|dims| dims.to_vec()),
    });
    let before = subject.session.effects().iter().map(|effect| PassReport::from_effect(effect, false));
    let after = plan.effects().iter().map(|effect| PassReport::from_effect(effect, true));
    let report = ExplainReport {
        model: call.choice.file.display().to_string(),
        format: subject.model.format.clone(),
        producer: subject.model.producer.clone(),
        opsets: subject.model.opsets.clone(),
        devices: subject.device_names(),
        inputs: inputs.collect(),
        optional_inputs: optional_inputs.collect(),
        outputs: outputs.collect(),
        notes: given.assumed,
        nodes: node_report::report_nodes(&plan, subject.session.devices(), &subject.core.runtime),
        nodes_in_file: subject.model.graph.nodes.len(),
        passes: before.chain(after).collect(),
        memory: MemoryLayout::from_plan(&plan, &subject.model.graph),
        precision: subject.rounding_extent(&plan)?,
    };
    if let Some(file) = &call.svg {
        graph_picture::check_node_count(report.nodes.len())?;
        output_file::write_text_file(file, &graph_picture::render_standalone(graph, &report.nodes))?;
    }
    if let Some(file) = &call.html {
        output_file::write_text_file(file, &html_report::render_explanation(&report, graph))?;
    }
    super::report_result(global, output, &report, |output| report.print_report(call.passes, output))?;
    Ok(subject.is_complete)
}

impl ExplainReport {
    fn print_report(&self, with_passes: bool, output: &mut CommandOutput) {
        let heading = output.paint_text(NAME_STYLE, &oarlock_host::sanitize_text(&self.model));
        output.write_line(&heading);
        print_sentence(output, 0, &self.origin_text());
        GraphEndpoint::print_endpoints(&self.inputs, "inputs", output);
        self.notes.iter().for_each(|note| print_sentence(output, 2, note));
        self.print_optional_inputs(output);
        GraphEndpoint::print_endpoints(&self.outputs, "outputs", output);
        if with_passes {
            print_heading(output, "passes");
            let mut table = TextTable::new(4);
            for pass in &self.passes {
                table.add_row(pass.table_row().map(TableCell::new));
            }
            table.print_table(output);
            if self.passes.is_empty() {
                print_sentence(output, 2, "none had anything to change");
            }
        }
        let (now, file) = (self.nodes.len(), self.nodes_in_file);
        let nodes = format_count(now, "node", "nodes");
        let title = if now == file { nodes } else { format!("{nodes}, of {file} in the file") };
        print_heading(output, &title);
        let mut table = TextTable::new(4);
        let titles = ["  op", "node", "output", "device", "kernel", "why"];
        table.add_row(titles.map(|title| TableCell::with_style(title, QUIET_STYLE)));
        for row in self.nodes.iter().flat_map(|node| node.table_rows(1)) {
            let [op, node, result, device, kernel, why] = row;
            let names = [op, node, result].map(|name| TableCell::new(truncate_text(&name, MAX_NAME_LENGTH)));
            table.add_row(
                names.into_iter().chain([device, kernel, why].map(TableCell::new)).collect::<Vec<_>>(),
            );
        }
        table.print_table(output);
        print_heading(output, "memory");
        self.memory.to_sentences().iter().for_each(|text| print_sentence(output, 2, text));
        if let Some(precision) = &self.precision {
            print_heading(output, "precision");
            precision.to_sentences().iter().for_each(|text| print_sentence(output, 2, text));
        }
    }

    /// Old models list all their weights as optional inputs, so only a few are shown.
    fn print_optional_inputs(&self, output: &mut CommandOutput) {
        let (shown, rest) = self.optional_inputs.split_at(self.optional_inputs.len().min(MAX_SHOWN_OPTIONAL));
        if !shown.is_empty() {
            GraphEndpoint::print_endpoints(shown, "optional inputs, which the model has values for", output);
        }
        if !rest.is_empty() {
            print_sentence(output, 2, &format!("and {}", format_count(rest.len(), "other", "others")));
        }
    }

    /// Format and producer of the model.
    fn origin_text(&self) -> String {
        let opsets: Vec<String> =
            self.opsets.iter().map(|(domain, version)| format!("{domain} {version}")).collect();
        let by = if self.producer.is_empty() { String::new() } else { format!(" by {}", self.producer) };
        format!("{}{by}, opsets {}; on {}", self.format, opsets.join(", "), self.devices.join(", "))
    }
}

fn print_heading(output: &mut CommandOutput, title: &str) {
    let title = output.paint_text(NAME_STYLE, title);
    output.write_line("");
    output.write_line(&title);
}

impl GraphEndpoint {
    fn print_endpoints(ends: &[Self], title: &str, output: &mut CommandOutput) {
        print_heading(output, title);
        let mut table = TextTable::new(1);
        for end in ends {
            let name = format!("  {}", truncate_text(&end.name, MAX_NAME_LENGTH));
            table.add_row([
                TableCell::new(name),
                TableCell::new(truncate_text(&end.declared, MAX_NAME_LENGTH)),
                TableCell::new(end.plan_text()),
            ]);
        }
        table.print_table(output);
    }

    /// What the plan was made for.
    fn plan_text(&self) -> String {
        match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("planned for {dtype} {shape:?}"),
            _ => "known in the run".to_owned(),
        }
    }
}
