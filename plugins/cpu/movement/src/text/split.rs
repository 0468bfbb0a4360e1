//! `StringSplit`: strings split at a delimiter.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result};

pub(super) fn string_split_kernels() -> Vec<Kernel<Cpu>> {
    let text = OperandSpec::new(DtypeSet::STRING);
    let kernel =
        operand_kernel("StringSplit", StringSplitter::new, |_, cut, operands| cut.split_all(operands));
    vec![
        kernel
            .since_version(20)
            .with_flags(KernelFlags::ALLOCATES_OUTPUTS)
            .with_inputs([text.with_name("X")])
            .with_outputs([text.with_name("Y"), OperandSpec::new(DtypeSet::I64).with_name("Z")]),
    ]
}

/// How strings are split.
struct StringSplitter {
    /// Without one, at whitespace.
    delimiter: Option<String>,
    most: usize,
}

impl StringSplitter {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let delimiter = call.string_attribute("delimiter")?.filter(|delimiter| !delimiter.is_empty());
        // A negative number means no limit, as in Python.
        let most = call.int_attribute("maxsplit")?.and_then(|most| usize::try_from(most).ok());
        Ok(Self { delimiter: delimiter.map(str::to_owned), most: most.unwrap_or(usize::MAX) })
    }

    fn split_text<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match &self.delimiter {
            Some(delimiter) => text.splitn(self.most.saturating_add(1), delimiter.as_str()).collect(),
            None => self.split_words(text),
        }
    }

    /// Words between whitespace. The rest after the last split keeps its whitespace.
    fn split_words<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let (mut words, mut rest) = (Vec::new(), text.trim_start());
        while !rest.is_empty() {
            match rest.find(char::is_whitespace).filter(|_| words.len() < self.most) {
                Some(end) => {
                    words.push(&rest[..end]);
                    rest = rest[end..].trim_start();
                }
                None => {
                    words.push(rest);
                    break;
                }
            }
        }
        words
    }

    fn split_all(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let input = call.input(0)?;
        let parts: Vec<Vec<&str>> =
            read_texts(&input)?.into_iter().map(|text| self.split_text(text)).collect();
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut dims = input.dims().to_vec();
        call.allocate_output(1, Dtype::I64, &dims)?;
        dims.push(most as i64);
        call.allocate_output(0, Dtype::STRING, &dims)?;
        for (count, parts) in operands.write_output::<i64>(1)?.iter_mut().zip(&parts) {
            *count = parts.len() as i64;
        }
        // Rows with fewer parts are padded with empty strings.
        let place = |index: usize| parts[index / most].get(index % most).copied().unwrap_or_default();
        write_texts(&call.output(0)?, (0..parts.len() * most).map(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_with<'a>(delimiter: Option<&str>, most: usize, text: &'a str) -> Vec<&'a str> {
        StringSplitter { delimiter: delimiter.map(str::to_owned), most }.split_text(text)
    }

    #[test]
    fn words_lie_between_any_blanks() {
        assert_eq!(split_with(None, usize::MAX, "  a\tb  c "), ["a", "b", "c"]);
        assert_eq!(split_with(None, 1, " a b  c "), ["a", "b  c "]);
        assert_eq!(split_with(None, 0, " a b"), ["a b"]);
        assert!(split_with(None, 3, "  ").is_empty());
    }

    #[test]
    fn adjacent_delimiters_yield_an_empty_string() {
        assert_eq!(split_with(Some(", "), usize::MAX, "a, , b"), ["a", "", "b"]);
        assert_eq!(split_with(Some("-"), 1, "a-b-c"), ["a", "b-c"]);
        assert_eq!(split_with(Some("-"), 1, ""), [""]);
    }
}
