//! The equation of an `Einsum`, such as `...ij, ...jk -> ...ik`.

use std::collections::BTreeMap;

use oarlock_sdk::{Result, ensure};

use super::super::dimension_size;

/// The name of a dimension: a letter, or a private-use character for a dimension of an ellipsis.
pub(super) type AxisLabel = char;

/// The labels of the dimensions of an ellipsis, last one first: private-use characters, which no equation contains.
const ELLIPSIS: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// A syntactically valid equation.
pub(super) struct EinsumEquation {
    text: String,
    inputs: Vec<EinsumSubscripts>,
    output: Option<EinsumSubscripts>,
}

/// The subscripts of one operand: letters before and after an optional ellipsis.
#[derive(Clone, Default)]
struct EinsumSubscripts {
    before: Vec<AxisLabel>,
    ellipsis: bool,
    after: Vec<AxisLabel>,
}

/// The labels of all dimensions of some operands, with their sizes.
pub(super) struct EinsumLabels {
    pub(super) inputs: Vec<Vec<AxisLabel>>,
    pub(super) output: Vec<AxisLabel>,
    sizes: BTreeMap<AxisLabel, usize>,
}

impl EinsumLabels {
    pub(super) fn label_size(&self, label: AxisLabel) -> usize {
        self.sizes.get(&label).copied().unwrap_or(1)
    }
}

impl EinsumEquation {
    pub(super) fn new(text: &str) -> Result<Self> {
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(EinsumSubscripts::new(output, text)?)),
            // Without an arrow, the output is derived from the inputs (the implicit form).
            None => (text, None),
        };
        let inputs =
            inputs.split(',').map(|term| EinsumSubscripts::new(term, text)).collect::<Result<_>>()?;
        Ok(Self { text: text.to_owned(), inputs, output })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Labels the dimensions of operands of these shapes.
    pub(super) fn resolve_labels(&self, shapes: &[&[i64]]) -> Result<EinsumLabels> {
        ensure!(
            shapes.len() == self.inputs.len(),
            invalid_argument,
            "expected {} operands for `{}`, found {}",
            self.inputs.len(),
            self.text,
            shapes.len()
        );
        let mut sizes = BTreeMap::new();
        let mut inputs = Vec::new();
        let mut widest = 0;
        for (term, dims) in self.inputs.iter().zip(shapes) {
            let named = term.before.len() + term.after.len();
            ensure!(
                if term.ellipsis { dims.len() >= named } else { dims.len() == named },
                invalid_argument,
                "expected operands with the dimensions that `{}` names, found shape {dims:?}",
                self.text
            );
            let labels = term.expand_ellipsis(dims.len() - named)?;
            widest = widest.max(dims.len() - named);
            for (label, dim) in labels.iter().zip(*dims) {
                let (dim, known) = (dimension_size(*dim)?, sizes.entry(*label).or_insert(1));
                ensure!(
                    // In ONNX, a dimension of size 1 broadcasts even if its label is a letter.
                    *known == 1 || dim == 1 || *known == dim,
                    invalid_argument,
                    "expected one size for `{label}` in `{}`, found {known} and {dim}",
                    self.text
                );
                *known = if *known == 1 { dim } else { *known };
            }
            inputs.push(labels);
        }
        let output = match &self.output {
            // The output's ellipsis has as many dimensions as the longest ellipsis of an input.
            Some(term) => term.expand_ellipsis(if term.ellipsis { widest } else { 0 })?,
            None => self.implicit_output(widest)?,
        };
        for (index, label) in output.iter().enumerate() {
            ensure!(
                // A label that is in no input has no size.
                sizes.contains_key(label),
                invalid_argument,
                "expected `{label}` of `{}` in an input",
                self.text
            );
            ensure!(
                !output[..index].contains(label),
                invalid_argument,
                "expected each label of the output of `{}` once, found `{label}` twice",
                self.text
            );
        }
        Ok(EinsumLabels { inputs, output, sizes })
    }

    /// The implicit output: dimensions of ellipses, then letters that appear once, in alphabetical order.
    fn implicit_output(&self, widest: usize) -> Result<Vec<AxisLabel>> {
        let mut counts = BTreeMap::new();
        for label in self.inputs.iter().flat_map(|term| term.before.iter().chain(&term.after)) {
            *counts.entry(*label).or_insert(0) += 1;
        }
        let once = counts.into_iter().filter(|(_, count)| *count == 1).map(|(label, _)| label);
        EinsumSubscripts { ellipsis: true, after: once.collect(), before: Vec::new() }.expand_ellipsis(widest)
    }
}

impl EinsumSubscripts {
    fn new(term: &str, text: &str) -> Result<Self> {
        let mut parts = term.split("...");
        let letters = |part: Option<&str>| -> Result<Vec<AxisLabel>> {
            let letters = part.unwrap_or("").chars().filter(|letter| !letter.is_whitespace());
            letters
                .map(|letter| {
                    ensure!(
                        letter.is_ascii_alphabetic(),
                        invalid_argument,
                        "expected letters, commas, `...` and `->` in the equation `{text}`, found `{letter}`"
                    );
                    Ok(letter)
                })
                .collect()
        };
        let before = letters(parts.next())?;
        let after = parts.next();
        ensure!(parts.next().is_none(), invalid_argument, "expected one `...` for each operand in `{text}`");
        Ok(Self { before, ellipsis: after.is_some(), after: letters(after)? })
    }

    /// The labels, with the ellipsis expanded to this many dimensions.
    fn expand_ellipsis(&self, dimensions: usize) -> Result<Vec<AxisLabel>> {
        let ellipsis: Vec<_> = ELLIPSIS.take(dimensions).collect();
        ensure!(
            ellipsis.len() == dimensions,
            unimplemented,
            "expected fewer dimensions than {dimensions} for an ellipsis"
        );
        Ok(self
            .before
            .iter()
            .copied()
            .chain(ellipsis.into_iter().rev())
            .chain(self.after.iter().copied())
            .collect())
    }
}
