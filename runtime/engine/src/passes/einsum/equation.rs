//! Parses the equation of an `Einsum`, such as `...ij, ...jk -> ...ik`, into a label for each dimension of each operand.

use std::collections::BTreeMap;

/// A letter, or a private-use character for a dimension of an ellipsis.
pub(super) type DimensionLabel = char;

/// Label of the last dimension of an ellipsis. Earlier dimensions get the following characters; all are in the private use
/// area.
const LAST_ELLIPSIS_LABEL: u32 = 0xe000;

/// The labels of all operands and of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EinsumTerms {
    pub(super) inputs: Vec<Vec<DimensionLabel>>,
    pub(super) output: Vec<DimensionLabel>,
}

impl EinsumTerms {
    /// Parses an equation for operands of these ranks. `None` if it does not fit them, or if an operand repeats a label, which
    /// selects a diagonal.
    pub(super) fn parse(text: &str, ranks: &[usize]) -> Option<Self> {
        let text: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        let (terms, output) =
            text.split_once("->").map_or((&*text, None), |(terms, output)| (terms, Some(output)));
        let terms: Vec<&str> = terms.split(',').collect();
        let missing: Vec<usize> =
            terms.iter().zip(ranks).map(|(term, rank)| ellipsis_rank(term, *rank)).collect::<Option<_>>()?;
        let widest = *missing.iter().max()?;
        let inputs: Vec<Vec<DimensionLabel>> = terms
            .iter()
            .zip(&missing)
            .map(|(term, missing)| parse_term(term, *missing))
            .collect::<Option<_>>()?;
        let output = match output {
            Some(output) => parse_term(output, if output.contains("...") { widest } else { 0 })?,
            None => implied_output(&inputs, widest)?,
        };
        let names_each_once = inputs.iter().chain([&output]).all(|labels| has_distinct_labels(labels));
        let is_known = output.iter().all(|label| inputs.iter().any(|labels| labels.contains(label)));
        (terms.len() == ranks.len() && names_each_once && is_known).then_some(Self { inputs, output })
    }
}

/// The number of dimensions that an ellipsis stands for.
fn ellipsis_rank(term: &str, rank: usize) -> Option<usize> {
    let has_ellipsis = term.contains("...");
    let named = term.chars().filter(|character| *character != '.').count();
    rank.checked_sub(named).filter(|missing| has_ellipsis || *missing == 0)
}

/// The labels of a term whose ellipsis stands for `missing` dimensions.
fn parse_term(term: &str, missing: usize) -> Option<Vec<DimensionLabel>> {
    let (before, after) = term.split_once("...").unwrap_or((term, ""));
    let are_letters = before.chars().chain(after.chars()).all(|letter| letter.is_ascii_alphabetic());
    let ellipsis: Vec<DimensionLabel> = ellipsis_labels(missing)?;
    are_letters.then(|| before.chars().chain(ellipsis).chain(after.chars()).collect())
}

fn ellipsis_labels(count: usize) -> Option<Vec<DimensionLabel>> {
    (0..u32::try_from(count).ok()?).rev().map(|at| char::from_u32(LAST_ELLIPSIS_LABEL + at)).collect()
}

/// The output of an equation without `->`: the ellipsis, then all letters that occur once, in alphabetical order.
fn implied_output(inputs: &[Vec<DimensionLabel>], widest: usize) -> Option<Vec<DimensionLabel>> {
    let mut counts = BTreeMap::new();
    for letter in inputs.iter().flatten().filter(|label| label.is_ascii_alphabetic()) {
        *counts.entry(*letter).or_insert(0) += 1;
    }
    let once = counts.into_iter().filter(|(_, count)| *count == 1).map(|(letter, _)| letter);
    Some(ellipsis_labels(widest)?.into_iter().chain(once).collect())
}

fn has_distinct_labels(labels: &[DimensionLabel]) -> bool {
    labels.iter().enumerate().all(|(at, label)| !labels[..at].contains(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed_labels(text: &str, ranks: &[usize]) -> Option<(Vec<String>, String)> {
        // Ellipsis dimensions are shown as digits, counted from the last: 1, 2, and so on.
        let shown = |labels: &Vec<DimensionLabel>| -> String {
            let digit =
                |label: &DimensionLabel| (*label as u32).checked_sub(LAST_ELLIPSIS_LABEL).map(|at| at + 1);
            labels.iter().map(|label| digit(label).map_or(label.to_string(), |at| at.to_string())).collect()
        };
        let EinsumTerms { inputs, output } = EinsumTerms::parse(text, ranks)?;
        Some((inputs.iter().map(shown).collect(), shown(&output)))
    }

    #[test]
    fn every_dimension_has_a_name() {
        let is = |text, ranks: &[usize], inputs: &[&str], output: &str| {
            let inputs = inputs.iter().map(|labels| (*labels).to_owned()).collect();
            assert_eq!(parsed_labels(text, ranks), Some((inputs, output.to_owned())), "{text}");
        };
        is("bij , bjk -> bik", &[3, 3], &["bij", "bjk"], "bik");
        is("ij,jk", &[2, 2], &["ij", "jk"], "ik");
        is("zij,ja", &[3, 2], &["zij", "ja"], "aiz");
        is("i,i->", &[1, 1], &["i", "i"], "");
        is("...ij,...jk->...ik", &[4, 3], &["21ij", "1jk"], "21ik");
        is("...ij,jk", &[3, 2], &["1ij", "jk"], "1ik");
        is("a...b->ab...", &[4], &["a21b"], "ab21");
        is("...i->i", &[3], &["21i"], "i");
    }

    #[test]
    fn what_does_not_fit_or_means_a_diagonal_has_none() {
        let wrong: [(&str, &[usize]); 9] = [
            ("ii->i", &[2]),
            ("ij,jk->ik", &[2]),
            ("ij->ij", &[2, 2]),
            ("ijk->ik", &[2]),
            ("ij->ii", &[2]),
            ("ij->ik", &[2]),
            ("i1->i", &[2]),
            ("...i...->i", &[3]),
            ("...ij->ij", &[1]),
        ];
        for (text, ranks) in wrong {
            assert_eq!(parsed_labels(text, ranks), None, "{text}");
        }
    }
}
