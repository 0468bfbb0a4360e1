//! `Einsum`: sums of products, with the axes named by letters.

use std::collections::BTreeMap;

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, broadcast, one};
use super::table::{LATEST, Rule, rule};
use crate::{Error, Result};

pub(super) const RULES: &[Rule] = &[rule("Einsum", 12, LATEST, &[], einsum)];

/// The axes of one operand: letters, and perhaps `...` somewhere among them.
struct Term {
    before: Vec<char>,
    behind: Vec<char>,
    has_ellipsis: bool,
}

/// What is known of the axes after all inputs are read.
struct Sizes {
    by_letter: BTreeMap<char, Dim>,
    /// Those that `...` stands for.
    ellipsis: Shape,
}

fn einsum(call: &Call<'_>) -> Result<Vec<Output>> {
    let equation: String = call.text("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let wrong = |expected: &str| wrong_attribute("equation", expected, format!("`{equation}`"));
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation.as_str(), None),
    };
    let parse =
        |term| Term::parse(term).ok_or_else(|| wrong("letters and at most one `...` for each operand"));
    let terms = inputs.split(',').map(parse).collect::<Result<Vec<_>>>()?;
    if terms.len() != call.input_count() {
        return Err(wrong(&format!("axes for each of {} inputs", call.input_count())));
    }
    let mut sizes = Sizes { by_letter: BTreeMap::new(), ellipsis: Some(PartialDims::new()) };
    for (input, term) in terms.iter().enumerate() {
        sizes.read(call, input, term)?;
    }
    let output = match output {
        Some(output) => parse(output)?,
        None => implied(&terms),
    };
    if output.letters().any(|letter| !sizes.by_letter.contains_key(letter)) {
        return Err(wrong("only letters of the inputs in the output"));
    }
    if output.letters().count() != output.letters().collect::<std::collections::BTreeSet<_>>().len() {
        return Err(wrong("each letter at most once in the output"));
    }
    one(sizes.shape_of(&output))
}

/// Where no output is written: what `...` stands for, then the letters that occur once, in their order.
fn implied(terms: &[Term]) -> Term {
    let mut counts = BTreeMap::new();
    for letter in terms.iter().flat_map(Term::letters) {
        *counts.entry(*letter).or_insert(0) += 1;
    }
    let once = counts.into_iter().filter(|(_, count)| *count == 1).map(|(letter, _)| letter);
    Term {
        before: Vec::new(),
        behind: once.collect(),
        has_ellipsis: terms.iter().any(|term| term.has_ellipsis),
    }
}

impl Term {
    fn parse(text: &str) -> Option<Self> {
        let (before, behind) = text.split_once("...").unwrap_or((text, ""));
        let are_letters = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic());
        (are_letters(before) && are_letters(behind)).then(|| Self {
            before: before.chars().collect(),
            behind: behind.chars().collect(),
            has_ellipsis: text.contains("..."),
        })
    }

    fn letters(&self) -> impl Iterator<Item = &char> {
        self.before.iter().chain(&self.behind)
    }
}

impl Sizes {
    fn read(&mut self, call: &Call<'_>, input: usize, term: &Term) -> Result<()> {
        let Some(dims) = call.dims(input)? else {
            term.letters().for_each(|letter| _ = self.by_letter.entry(*letter).or_insert(Dim::Unknown));
            if term.has_ellipsis {
                self.ellipsis = None;
            }
            return Ok(());
        };
        let named = term.before.len() + term.behind.len();
        let more = dims.len().checked_sub(named).filter(|more| *more == 0 || term.has_ellipsis);
        let Some(more) = more else {
            return Err(call.wrong(input, format!("{named} dimensions, as `equation` says"), Listed(dims)));
        };
        let (before, rest) = dims.split_at(term.before.len());
        let (ellipsis, behind) = rest.split_at(more);
        for (letter, dim) in term.letters().zip(before.iter().chain(behind)) {
            self.merge(*letter, *dim).map_err(call.blame(input))?;
        }
        if term.has_ellipsis {
            self.ellipsis = broadcast(&self.ellipsis, &Some(ellipsis.into())).map_err(call.blame(input))?;
        }
        Ok(())
    }

    /// A size of 1 is repeated.
    fn merge(&mut self, letter: char, dim: Dim) -> Result<()> {
        let known = self.by_letter.entry(letter).or_insert(Dim::Known(1));
        *known = match (*known, dim) {
            (Dim::Known(1), other) | (other, Dim::Known(1)) => other,
            (a, b) if a.agrees(b) => a.or(b),
            (a, b) => {
                return Err(Error::invalid_argument(format!("expected {a} along `{letter}`, found {b}")));
            }
        };
        Ok(())
    }

    fn shape_of(&self, term: &Term) -> Shape {
        let dim = |letter| self.by_letter.get(letter).copied().unwrap_or(Dim::Unknown);
        let ellipsis: &[Dim] = if term.has_ellipsis { self.ellipsis.as_ref()? } else { &[] };
        let before = term.before.iter().map(dim);
        Some(before.chain(ellipsis.iter().copied()).chain(term.behind.iter().map(dim)).collect())
    }
}
