//! `StringNormalizer`: words without stop words.
//!
//! Words in another case would be new strings, which a kernel has no way to store for its output, so only the attribute
//! `case_change_action` with the value `NONE` is supported.

use std::collections::HashSet;

use oarlock_cpu_base::attributes;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, PluginError, Result};

pub(super) fn string_normalizer_kernels() -> Vec<Kernel<Cpu>> {
    let text = OperandSpec::new(DtypeSet::STRING).with_rank(1, 2);
    let kernel = operand_kernel("StringNormalizer", StopWords::new, |_, words, operands| {
        words.remove_stop_words(operands)
    });
    vec![
        kernel
            .since_version(10)
            .with_flags(KernelFlags::ALLOCATES_OUTPUTS)
            .with_support_check(|_, call| match call.string_attribute("case_change_action")?.unwrap_or("NONE") {
                "NONE" => Ok(()),
                other => Err(PluginError::unimplemented(format!(
                    "expected `case_change_action` to be `NONE`, found `{other}`: a kernel cannot make new text"
                ))),
            })
            .with_inputs([text.with_name("X")])
            .with_outputs([text.with_name("Y")]),
    ]
}

struct StopWords {
    words: HashSet<String>,
    is_case_sensitive: bool,
}

impl StopWords {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let is_case_sensitive = call.int_attribute("is_case_sensitive")?.unwrap_or(0) != 0;
        let words = attributes::string_list(call, "stopwords")?.unwrap_or_default();
        // Lower case as Unicode defines it. The attribute `locale` is not read, since this does not depend on
        // one.
        let as_compared =
            |word: &&str| if is_case_sensitive { (*word).to_owned() } else { word.to_lowercase() };
        Ok(Self { words: words.iter().map(as_compared).collect(), is_case_sensitive })
    }

    fn keeps_word(&self, word: &str) -> bool {
        if self.is_case_sensitive {
            !self.words.contains(word)
        } else {
            !self.words.contains(&word.to_lowercase())
        }
    }

    fn remove_stop_words(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let input = call.input(0)?;
        let mut dims = input.dims().to_vec();
        let (Some(last), [_] | [1, _]) = (dims.last_mut(), input.dims()) else {
            let found = input.dims();
            return Err(PluginError::invalid_argument(format!(
                "expected one row of words, found a shape of {found:?}"
            )));
        };
        let mut kept: Vec<&str> =
            read_texts(&input)?.into_iter().filter(|word| self.keeps_word(word)).collect();
        // If no word is left, the output is one empty string.
        if kept.is_empty() {
            kept.push("");
        }
        *last = kept.len() as i64;
        call.allocate_output(0, Dtype::STRING, &dims)?;
        write_texts(&call.output(0)?, kept.into_iter())
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
        assert!(!words(&["monday"], false).keeps_word("Monday"));
        assert!(words(&["monday"], true).keeps_word("Monday"));
        assert!(!words(&["Monday"], true).keeps_word("Monday"));
    }
}
