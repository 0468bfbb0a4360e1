//! `StringSplit`: texts cut at a delimiter.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, Result};

use super::operand::{texts, write};
use crate::device::Cpu;
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let text = Operand::new(DtypeSet::STRING);
    let kernel = kernel("StringSplit", Cut::new, |_, cut, operands| cut.run(operands));
    vec![
        kernel
            .since(20)
            .flags(KernelFlags::ALLOCATES_OUTPUTS)
            .inputs([text.named("X")])
            .outputs([text.named("Y"), Operand::new(DtypeSet::I64).named("Z")]),
    ]
}

/// How texts are cut.
struct Cut {
    /// Without it, at any blanks.
    delimiter: Option<String>,
    most: usize,
}

impl Cut {
    fn new(call: &Call<'_>) -> Result<Self> {
        let delimiter = call.string("delimiter")?.filter(|delimiter| !delimiter.is_empty());
        let most = call.int("maxsplit")?.and_then(|most| usize::try_from(most).ok());
        Ok(Self { delimiter: delimiter.map(str::to_owned), most: most.unwrap_or(usize::MAX) })
    }

    fn parts<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match &self.delimiter {
            Some(delimiter) => text.splitn(self.most.saturating_add(1), delimiter.as_str()).collect(),
            None => self.words(text),
        }
    }

    /// Words between blanks. What is left after the last cut keeps the blanks in it.
    fn words<'a>(&self, text: &'a str) -> Vec<&'a str> {
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

    fn run(&self, operands: &Operands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let input = call.input(0)?;
        let parts: Vec<Vec<&str>> = texts(&input)?.into_iter().map(|text| self.parts(text)).collect();
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut dims = input.dims().to_vec();
        call.allocate_output(1, Dtype::I64, &dims)?;
        dims.push(most as i64);
        call.allocate_output(0, Dtype::STRING, &dims)?;
        for (count, parts) in operands.write::<i64>(1)?.iter_mut().zip(&parts) {
            *count = parts.len() as i64;
        }
        let place = |index: usize| parts[index / most].get(index % most).copied().unwrap_or_default();
        write(&call.output(0)?, (0..parts.len() * most).map(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut<'a>(delimiter: Option<&str>, most: usize, text: &'a str) -> Vec<&'a str> {
        Cut { delimiter: delimiter.map(str::to_owned), most }.parts(text)
    }

    #[test]
    fn words_lie_between_any_blanks() {
        assert_eq!(cut(None, usize::MAX, "  a\tb  c "), ["a", "b", "c"]);
        assert_eq!(cut(None, 1, " a b  c "), ["a", "b  c "]);
        assert_eq!(cut(None, 0, " a b"), ["a b"]);
        assert!(cut(None, 3, "  ").is_empty());
    }

    #[test]
    fn delimiters_side_by_side_have_nothing_between_them() {
        assert_eq!(cut(Some(", "), usize::MAX, "a, , b"), ["a", "", "b"]);
        assert_eq!(cut(Some("-"), 1, "a-b-c"), ["a", "b-c"]);
        assert_eq!(cut(Some("-"), 1, ""), [""]);
    }
}
