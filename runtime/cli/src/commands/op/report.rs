//! The report of `oarlock op`: why a kernel was chosen, and its outputs, printed or in files.

use std::path::Path;

use oarlock_core::registry::DispatchExplanation;
use oarlock_core::{Device, Op, Tensor};
use serde::Serialize;

use crate::output::{CommandOutput, NAME_STYLE};
use crate::problem::CommandError;
use crate::render::print_sentence;
use oarlock_report::npy;
use oarlock_report::scalar::{self, TensorScalars};

#[derive(Serialize)]
pub(super) struct OpReport {
    op: &'static str,
    version: u32,
    device: String,
    /// `None` unless `--explain` was given.
    explanation: Option<Vec<KernelCandidate>>,
    outputs: Vec<OpOutput>,
    #[serde(skip)]
    reasons: Option<String>,
}

/// A kernel that was considered.
#[derive(Serialize)]
struct KernelCandidate {
    plugin: String,
    score: i32,
    /// True for the kernel that runs. Other kernels without a refusal could have run too.
    chosen: bool,
    refusal: Option<String>,
}

/// One output; all fields are empty if it was left out.
#[derive(Serialize)]
struct OpOutput {
    name: Option<&'static str>,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
    file: Option<String>,
    /// All elements in order; `None` if they are in a file.
    elements: Option<TensorScalars<'static>>,
}

impl OpReport {
    /// `explanation` is given for `--explain`; `is_text` marks an op that makes text without a kernel.
    pub(super) fn new(
        op: &Op,
        device: &Device,
        explanation: Option<&DispatchExplanation>,
        is_text: bool,
    ) -> Self {
        let considered = |explanation: &DispatchExplanation| {
            let chosen = explanation.chosen_entry();
            let one = |considered: &oarlock_core::registry::ConsideredKernel| KernelCandidate {
                plugin: considered.entry.plugin_name().to_owned(),
                score: considered.entry.info().score,
                chosen: chosen.is_some_and(|chosen| std::ptr::eq(chosen, &considered.entry)),
                refusal: considered.refusal().map(str::to_owned),
            };
            explanation.considered.iter().map(one).collect()
        };
        Self {
            op: op.name(),
            version: op.version(),
            device: device.name().to_owned(),
            explanation: explanation.map(considered),
            outputs: Vec::new(),
            reasons: explanation.map(|explanation| {
                let engine = if is_text { "\n  new text is made on the CPU without one" } else { "" };
                format!("{}{engine}", explanation.to_string().trim_end())
            }),
        }
    }

    /// Waits for the next output and writes it, if it has a file.
    pub(super) fn add_output(
        &mut self,
        name: Option<&'static str>,
        tensor: Option<&Tensor>,
        file: Option<&Path>,
    ) -> Result<(), CommandError> {
        let elements = match (tensor, file) {
            (Some(tensor), Some(file)) => {
                npy::write_npy(file, tensor)?;
                None
            }
            (Some(tensor), None) => Some(TensorScalars::from_tensor(tensor)?.into_owned()),
            (None, _) => None,
        };
        self.outputs.push(OpOutput {
            name,
            dtype: tensor.map(|tensor| tensor.dtype().name()),
            shape: tensor.map(|tensor| tensor.dims().to_vec()),
            file: file.filter(|_| tensor.is_some()).map(|file| file.display().to_string()),
            elements,
        });
        Ok(())
    }

    pub(super) fn print_explanation(&self, output: &mut CommandOutput) {
        for line in self.reasons.iter().flat_map(|reasons| reasons.lines()) {
            let indent = line.len() - line.trim_start().len();
            print_sentence(output, indent, line.trim_start());
        }
        // The explanation stays visible even if the kernel never returns.
        output.flush();
    }

    pub(super) fn print_outputs(&self, output: &mut CommandOutput) {
        for (index, result) in self.outputs.iter().enumerate() {
            if index > 0 || self.reasons.is_some() {
                output.write_line("");
            }
            result.print_output(index, output);
        }
    }
}

impl OpOutput {
    fn print_output(&self, index: usize, output: &mut CommandOutput) {
        let name = self.name.map_or_else(String::new, |name| format!(" ({name})"));
        let kind = match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("{dtype} {shape:?}"),
            _ => "left out".to_owned(),
        };
        let heading = output.paint_text(NAME_STYLE, &format!("output {index}{name}: {kind}"));
        output.write_line(&heading);
        if let Some(file) = &self.file {
            print_sentence(output, 0, &format!("written to `{file}`"));
        }
        if let (Some(scalars), Some(shape)) = (&self.elements, &self.shape) {
            output.write_line(&scalar::format_tensor(scalars, shape));
        }
    }
}
