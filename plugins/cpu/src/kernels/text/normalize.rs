//! `StringNormalizer`: words without those that say nothing.
//!
//! Words in another case would be new text, which a kernel has no way to keep for its output, so only the attribute
//! `case_change_action` with the value `NONE` is taken.

use std::collections::HashSet;

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, Result};

use super::operand::{texts, write};
use crate::device::Cpu;
use crate::kernels::attributes;
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let text = Operand::new(DtypeSet::STRING).rank(1, 2);
    let kernel = kernel("StringNormalizer", StopWords::new, |_, words, operands| words.remove(operands));
    vec![
        kernel
            .since(10)
            .flags(KernelFlags::ALLOCATES_OUTPUTS)
            .supports(|_, call| match call.string("case_change_action")?.unwrap_or("NONE") {
                "NONE" => Ok(()),
                other => Err(Error::unimplemented(format!(
                    "expected `case_change_action` to be `NONE`, found `{other}`: a kernel cannot make new text"
                ))),
            })
            .inputs([text.named("X")])
            .outputs([text.named("Y")]),
    ]
}

struct StopWords {
    words: HashSet<String>,
    is_case_sensitive: bool,
}

impl StopWords {
    fn new(call: &Call<'_>) -> Result<Self> {
        let is_case_sensitive = call.int("is_case_sensitive")?.unwrap_or(0) != 0;
        let words = attributes::texts(call, "stopwords")?.unwrap_or_default();
        let as_compared =
            |word: &&str| if is_case_sensitive { (*word).to_owned() } else { word.to_lowercase() };
        Ok(Self { words: words.iter().map(as_compared).collect(), is_case_sensitive })
    }

    fn keeps(&self, word: &str) -> bool {
        if self.is_case_sensitive {
            !self.words.contains(word)
        } else {
            !self.words.contains(&word.to_lowercase())
        }
    }

    fn remove(&self, operands: &Operands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let input = call.input(0)?;
        let mut dims = input.dims().to_vec();
        let (Some(last), [_] | [1, _]) = (dims.last_mut(), input.dims()) else {
            let found = input.dims();
            return Err(Error::invalid_argument(format!(
                "expected one row of words, found a shape of {found:?}"
            )));
        };
        let mut kept: Vec<&str> = texts(&input)?.into_iter().filter(|word| self.keeps(word)).collect();
        // Where no word is left, the output is one without letters.
        if kept.is_empty() {
            kept.push("");
        }
        *last = kept.len() as i64;
        call.allocate_output(0, Dtype::STRING, &dims)?;
        write(&call.output(0)?, kept.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_with_or_without_their_case() {
        let words = |words: &[&str], is_case_sensitive| StopWords {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            is_case_sensitive,
        };
        assert!(!words(&["monday"], false).keeps("Monday"));
        assert!(words(&["monday"], true).keeps("Monday"));
        assert!(!words(&["Monday"], true).keeps("Monday"));
    }
}
