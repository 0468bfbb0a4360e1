//! `oarlock.Tokenizer`: texts cut into tokens, at separators or by a pattern of a token, as in onnxruntime's op of that name.
//!
//! A token is a part of an input. What is no part of it comes from another input: the padding and, if rows are marked, what
//! stands before and after the tokens of a row.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::attributes;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::{read_texts, write_texts};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, PluginError, Result, ensure,
};

use super::re2_pattern::{PatternCache, Re2Pattern};

pub(super) fn tokenizer_kernels() -> Vec<Kernel<Cpu>> {
    let text = OperandSpec::new(DtypeSet::STRING);
    let kernel = operand_kernel("Tokenizer", Tokenizer::new, |_, tokenizer, operands| {
        tokenizer.tokenize_all(operands)
    });
    vec![
        kernel
            .with_domain(OARLOCK_DOMAIN)
            .with_flags(KernelFlags::ALLOCATES_OUTPUTS)
            .with_inputs([text.with_name("X"), text.with_name("padding").with_rank(1, 1)])
            .with_outputs([text.with_name("Y")]),
    ]
}

struct Tokenizer {
    cut: TokenCut,
    /// Tokens of fewer characters are left out.
    least: usize,
}

/// How a text is cut.
enum TokenCut {
    Characters,
    /// At what matches the first pattern, then the parts at what matches the second, and so on.
    Separators(Vec<Re2Pattern>),
    Tokens(Box<Re2Pattern>),
}

impl Tokenizer {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let least = call.int_attribute("mincharnum")?.unwrap_or(1);
        let least = usize::try_from(least).ok().filter(|least| *least > 0).ok_or_else(|| {
            PluginError::invalid_argument(format!("expected `mincharnum` of at least 1, found {least}"))
        })?;
        let separators = attributes::string_list(call, "separators")?.unwrap_or_default();
        let cut = match (&separators[..], call.string_attribute("tokenexp")?.unwrap_or_default()) {
            ([""], _) | ([], ".") => TokenCut::Characters,
            ([], "") => {
                return Err(PluginError::invalid_argument(
                    "expected `separators` or a `tokenexp`, found neither",
                ));
            }
            ([], pattern) => TokenCut::Tokens(Box::new(Re2Pattern::compile("tokenexp", pattern)?)),
            (separators, _) => {
                let compile = |separator: &&str| Re2Pattern::compile("separators", separator);
                TokenCut::Separators(separators.iter().map(compile).collect::<Result<_>>()?)
            }
        };
        ensure!(
            least == 1 || !matches!(cut, TokenCut::Characters),
            invalid_argument,
            "expected `mincharnum` of 1 for tokens of one character, found {least}"
        );
        Ok(Self { cut, least })
    }

    /// Scratch memory for each pattern.
    fn create_caches(&self) -> Vec<PatternCache> {
        match &self.cut {
            TokenCut::Characters => Vec::new(),
            TokenCut::Separators(separators) => separators.iter().map(Re2Pattern::create_cache).collect(),
            TokenCut::Tokens(pattern) => vec![pattern.create_cache()],
        }
    }

    fn has_token_size(&self, text: &str) -> bool {
        text.chars().nth(self.least - 1).is_some()
    }

    fn tokenize<'a>(&self, text: &'a str, caches: &mut [PatternCache]) -> Result<Vec<&'a str>> {
        match &self.cut {
            TokenCut::Characters => Ok(text.split_inclusive(|_| true).collect()),
            TokenCut::Separators(separators) => {
                let mut parts = vec![text];
                for (separator, cache) in separators.iter().zip(caches) {
                    let mut smaller = Vec::new();
                    for part in parts {
                        self.cut_at_separators(part, separator, cache, &mut smaller)?;
                    }
                    parts = smaller;
                }
                Ok(parts)
            }
            TokenCut::Tokens(pattern) => match caches {
                [cache] => self.find_tokens(text, pattern, cache),
                _ => Ok(Vec::new()),
            },
        }
    }

    fn cut_at_separators<'a>(
        &self,
        text: &'a str,
        separator: &Re2Pattern,
        cache: &mut PatternCache,
        parts: &mut Vec<&'a str>,
    ) -> Result<()> {
        let mut start = 0;
        while let Some(found) = separator.find_from(cache, text, start)? {
            parts.extend(Some(&text[start..found.start]).filter(|part| self.has_token_size(part)));
            if found.is_empty() {
                // A separator of no length takes the next character with it.
                let Some(next) = next_character(text, found.start) else { return Ok(()) };
                start = next;
            } else {
                start = found.end;
            }
        }
        parts.extend(Some(&text[start..]).filter(|part| self.has_token_size(part)));
        Ok(())
    }

    fn find_tokens<'a>(
        &self,
        text: &'a str,
        pattern: &Re2Pattern,
        cache: &mut PatternCache,
    ) -> Result<Vec<&'a str>> {
        let (mut tokens, mut start) = (Vec::new(), 0);
        while let Some(found) = pattern.find_from(cache, text, start)? {
            let token = &text[found.clone()];
            if self.has_token_size(token) {
                tokens.push(token);
                start = found.end;
            } else {
                // Another match may begin within one that is too short.
                let Some(next) = next_character(text, found.start) else { break };
                start = next;
            }
        }
        Ok(tokens)
    }

    fn tokenize_all(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let call = operands.call();
        let (input, padding) = (call.input(0)?, read_texts(&call.input(1)?)?);
        let (padding, marks) = match padding[..] {
            [padding] => (padding, None),
            [padding, start, end] => (padding, Some([start, end])),
            ref other => {
                let found = other.len();
                return Err(PluginError::invalid_argument(format!(
                    "expected one text as padding, or with two marks, found {found} texts"
                )));
            }
        };
        let mut caches = self.create_caches();
        let rows = read_texts(&input)?.into_iter().map(|text| self.tokenize(text, &mut caches));
        let rows: Vec<Vec<&str>> = rows.collect::<Result<_>>()?;
        let tokens = rows.iter().map(Vec::len).max().unwrap_or(0);
        // If no row has a token, none is marked either.
        let marks = marks.filter(|_| tokens > 0);
        let width = tokens + marks.map_or(0, |marks| marks.len());
        let mut dims = input.dims().to_vec();
        dims.push(width as i64);
        call.allocate_output(0, Dtype::STRING, &dims)?;
        let place = |index: usize| {
            let (row, at) = (&rows[index / width], index % width);
            let Some([start, end]) = marks else { return row.get(at).copied().unwrap_or(padding) };
            match at.checked_sub(1) {
                None => start,
                Some(at) if at == row.len() => end,
                Some(at) => row.get(at).copied().unwrap_or(padding),
            }
        };
        write_texts(&call.output(0)?, (0..rows.len() * width).map(place))
    }
}

/// The place after the character at a place; `None` at the end.
fn next_character(text: &str, at: usize) -> Option<usize> {
    text[at..].chars().next().map(|character| at + character.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(cut: TokenCut, least: usize, text: &str) -> Vec<&str> {
        let tokenizer = Tokenizer { cut, least };
        tokenizer.tokenize(text, &mut tokenizer.create_caches()).unwrap()
    }

    fn pattern(written: &str) -> Re2Pattern {
        Re2Pattern::compile("tokenexp", written).unwrap()
    }

    #[test]
    fn parts_are_cut_at_one_separator_after_another() {
        let separators =
            |written: &[&str]| TokenCut::Separators(written.iter().map(|it| pattern(it)).collect());
        assert_eq!(tokens(separators(&[" ", ","]), 1, "a b,,cd "), ["a", "b", "cd"]);
        assert_eq!(tokens(separators(&[" ", ","]), 2, "a b,,cd "), ["cd"]);
        assert_eq!(tokens(separators(&["b|bc"]), 1, "abcabc"), ["a", "a"]);
        assert!(tokens(separators(&["x*"]), 1, "abé").is_empty());
    }

    #[test]
    fn tokens_that_are_too_short_are_left_out_by_their_characters() {
        assert_eq!(tokens(TokenCut::Tokens(Box::new(pattern("[^ ]+"))), 2, "a éß 日本"), ["éß", "日本"]);
        assert_eq!(tokens(TokenCut::Tokens(Box::new(pattern("x*|b"))), 1, "ab b"), ["b", "b"]);
        assert_eq!(tokens(TokenCut::Tokens(Box::new(pattern("a|bcd"))), 2, "abcd"), ["bcd"]);
        assert_eq!(tokens(TokenCut::Characters, 1, "aé日"), ["a", "é", "日"]);
    }
}
