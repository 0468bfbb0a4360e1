//! What came out of a call: why it was run as it was, and its outputs, printed or in files.

use std::path::Path;

use oarlock_core::registry::Explanation;
use oarlock_core::{Device, Op, Tensor};
use serde::Serialize;

use crate::npy;
use crate::output::{NAME, Output};
use crate::problem::Problem;
use crate::render::sentence;
use crate::scalar::{self, Scalars};

/// What there is to say about a call.
#[derive(Serialize)]
pub(super) struct Report {
    op: &'static str,
    version: u32,
    device: String,
    /// Nothing unless it was asked for.
    explanation: Option<Vec<Considered>>,
    outputs: Vec<Made>,
    #[serde(skip)]
    reasons: Option<String>,
}

/// A kernel that was looked at.
#[derive(Serialize)]
struct Considered {
    plugin: String,
    score: i32,
    /// Whether it is the one that runs. Others that could have run have no refusal either.
    chosen: bool,
    refusal: Option<String>,
}

/// One output; nothing is known of one that was left out.
#[derive(Serialize)]
struct Made {
    name: Option<&'static str>,
    dtype: Option<&'static str>,
    shape: Option<Vec<i64>>,
    /// Where it was written.
    file: Option<String>,
    /// All of them, in order; nothing where they are in a file.
    elements: Option<Scalars<'static>>,
}

impl Report {
    /// Of an op on a device, with what was looked at if that was asked for, and whether it takes no kernel to make text.
    pub(super) fn new(op: &Op, device: &Device, explanation: Option<&Explanation>, is_text: bool) -> Self {
        let considered = |explanation: &Explanation| {
            let chosen = explanation.chosen();
            let one = |considered: &oarlock_core::registry::Considered| Considered {
                plugin: considered.row.plugin().to_owned(),
                score: considered.row.info().score,
                chosen: chosen.is_some_and(|chosen| std::ptr::eq(chosen, &considered.row)),
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

    /// Waits for the next output, and writes it if there is a file for it.
    pub(super) fn add(
        &mut self,
        name: Option<&'static str>,
        tensor: Option<&Tensor>,
        file: Option<&Path>,
    ) -> Result<(), Problem> {
        let elements = match (tensor, file) {
            (Some(tensor), Some(file)) => {
                npy::write(file, tensor)?;
                None
            }
            (Some(tensor), None) => Some(Scalars::of(tensor)?.into_owned()),
            (None, _) => None,
        };
        self.outputs.push(Made {
            name,
            dtype: tensor.map(|tensor| tensor.dtype().name()),
            shape: tensor.map(|tensor| tensor.dims().to_vec()),
            file: file.filter(|_| tensor.is_some()).map(|file| file.display().to_string()),
            elements,
        });
        Ok(())
    }

    pub(super) fn print_explanation(&self, output: &mut Output) {
        for line in self.reasons.iter().flat_map(|reasons| reasons.lines()) {
            let indent = line.len() - line.trim_start().len();
            sentence(output, indent, line.trim_start());
        }
        // What is said so far is there even if the kernel does not return.
        output.flush();
    }

    pub(super) fn print_outputs(&self, output: &mut Output) {
        for (index, made) in self.outputs.iter().enumerate() {
            if index > 0 || self.reasons.is_some() {
                output.line("");
            }
            made.print(index, output);
        }
    }
}

impl Made {
    fn print(&self, index: usize, output: &mut Output) {
        let name = self.name.map_or_else(String::new, |name| format!(" ({name})"));
        let kind = match (self.dtype, &self.shape) {
            (Some(dtype), Some(shape)) => format!("{dtype} {shape:?}"),
            _ => "left out".to_owned(),
        };
        let heading = output.paint(NAME, &format!("output {index}{name}: {kind}"));
        output.line(&heading);
        if let Some(file) = &self.file {
            sentence(output, 0, &format!("written to `{file}`"));
        }
        if let (Some(scalars), Some(shape)) = (&self.elements, &self.shape) {
            output.line(&scalar::show(scalars, shape));
        }
    }
}
