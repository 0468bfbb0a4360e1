//! `Einsum`: sums of products over axes that letters name.

use std::collections::BTreeMap;

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, broadcast_shapes, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::{Error, Result};

pub(super) const RULES: &[InferenceRule] = &[rule("Einsum", 12, LATEST, &[], infer_einsum)];

/// The axes of one operand: letters before and behind an optional `...`.
struct EinsumTerm {
    before: Vec<char>,
    behind: Vec<char>,
    has_ellipsis: bool,
}

/// The sizes of all letters, collected from the inputs.
struct LetterSizes {
    by_letter: BTreeMap<char, PartialDim>,
    /// The sizes that `...` stands for.
    ellipsis: PartialShape,
}

fn infer_einsum(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let equation: String =
        call.string_attribute("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let wrong = |expected: &str| attribute_error("equation", expected, format!("`{equation}`"));
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let parse = |term| {
        EinsumTerm::parse_term(term).ok_or_else(|| wrong("letters and at most one `...` for each operand"))
    };
    let terms = inputs.split(',').map(parse).collect::<Result<Vec<_>>>()?;
    if terms.len() != call.input_count() {
        return Err(wrong(&format!("axes for each of {} inputs", call.input_count())));
    }
    let mut sizes = LetterSizes { by_letter: BTreeMap::new(), ellipsis: Some(PartialDims::new()) };
    for (input, term) in terms.iter().enumerate() {
        sizes.read_operand(call, input, term)?;
    }
    let output = match output {
        Some(output) => parse(output)?,
        None => implied_output(&terms),
    };
    if output.iter_letters().any(|letter| !sizes.by_letter.contains_key(letter)) {
        return Err(wrong("only letters of the inputs in the output"));
    }
    if output.iter_letters().count() != output.iter_letters().collect::<std::collections::BTreeSet<_>>().len()
    {
        return Err(wrong("each letter at most once in the output"));
    }
    single_output(sizes.term_shape(&output))
}

/// The output if the equation has none: the axes of `...`, then the letters that occur once, in alphabetical order.
fn implied_output(terms: &[EinsumTerm]) -> EinsumTerm {
    let mut counts = BTreeMap::new();
    for letter in terms.iter().flat_map(EinsumTerm::iter_letters) {
        *counts.entry(*letter).or_insert(0) += 1;
    }
    let once = counts.into_iter().filter(|(_, count)| *count == 1).map(|(letter, _)| letter);
    EinsumTerm {
        before: Vec::new(),
        behind: once.collect(),
        has_ellipsis: terms.iter().any(|term| term.has_ellipsis),
    }
}

impl EinsumTerm {
    fn parse_term(text: &str) -> Option<Self> {
        let (before, behind) = text.split_once("...").unwrap_or((text, ""));
        let are_letters = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic());
        (are_letters(before) && are_letters(behind)).then(|| Self {
            before: before.chars().collect(),
            behind: behind.chars().collect(),
            has_ellipsis: text.contains("..."),
        })
    }

    fn iter_letters(&self) -> impl Iterator<Item = &char> {
        self.before.iter().chain(&self.behind)
    }
}

impl LetterSizes {
    fn read_operand(&mut self, call: &InferenceContext<'_>, input: usize, term: &EinsumTerm) -> Result<()> {
        let Some(dims) = call.input_dims(input)? else {
            term.iter_letters()
                .for_each(|letter| _ = self.by_letter.entry(*letter).or_insert(PartialDim::Unknown));
            if term.has_ellipsis {
                self.ellipsis = None;
            }
            return Ok(());
        };
        let named = term.before.len() + term.behind.len();
        let more = dims.len().checked_sub(named).filter(|more| *more == 0 || term.has_ellipsis);
        let Some(more) = more else {
            return Err(call.input_error(
                input,
                format!("{named} dimensions, as `equation` specifies"),
                DisplayDims(dims),
            ));
        };
        let (before, rest) = dims.split_at(term.before.len());
        let (ellipsis, behind) = rest.split_at(more);
        for (letter, dim) in term.iter_letters().zip(before.iter().chain(behind)) {
            self.merge_size(*letter, *dim).map_err(call.blame_input(input))?;
        }
        if term.has_ellipsis {
            self.ellipsis =
                broadcast_shapes(&self.ellipsis, &Some(ellipsis.into())).map_err(call.blame_input(input))?;
        }
        Ok(())
    }

    /// A size of 1 broadcasts.
    fn merge_size(&mut self, letter: char, dim: PartialDim) -> Result<()> {
        let known = self.by_letter.entry(letter).or_insert(PartialDim::Known(1));
        *known = match (*known, dim) {
            (PartialDim::Known(1), other) | (other, PartialDim::Known(1)) => other,
            (a, b) if a.may_equal(b) => a.refine_with(b),
            (a, b) => {
                return Err(Error::invalid_argument(format!("expected {a} along `{letter}`, found {b}")));
            }
        };
        Ok(())
    }

    fn term_shape(&self, term: &EinsumTerm) -> PartialShape {
        let dim = |letter| self.by_letter.get(letter).copied().unwrap_or(PartialDim::Unknown);
        let ellipsis: &[PartialDim] = if term.has_ellipsis { self.ellipsis.as_ref()? } else { &[] };
        let before = term.before.iter().map(dim);
        Some(before.chain(ellipsis.iter().copied()).chain(term.behind.iter().map(dim)).collect())
    }
}
