//! Patterns in the syntax of RE2, which ONNX's and onnxruntime's ops on text take.
//!
//! `regex-automata` reads a slightly different syntax, so a pattern is rewritten first: RE2's `\d`, `\s`, `\w` and `\b` are those
//! of ASCII, and in RE2 `{` and, in classes, `[`, `&` and `~` may stand for themselves. Where RE2 knows no such syntax, a few
//! patterns are accepted that it would refuse.

use oarlock_sdk::{PluginError, Result};
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::hybrid::regex::{self, Regex};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input, MatchKind};

/// Limit on the compiled size of a pattern, as large as RE2's.
const MAX_PATTERN_BYTES: usize = 8 << 20;

/// A compiled pattern. A match is the leftmost one, and the longest of those that begin there.
pub(super) struct Re2Pattern {
    /// Finds where the leftmost match begins.
    leftmost: Regex,
    /// Finds where the longest match from there ends.
    longest: DFA,
}

/// Scratch memory of searches.
pub(super) struct PatternCache {
    leftmost: regex::Cache,
    longest: dfa::Cache,
}

impl Re2Pattern {
    /// Compiles the value of an attribute.
    pub(super) fn compile(attribute: &str, pattern: &str) -> Result<Self> {
        let wrong = |error: &dyn std::error::Error| {
            // The outer error of a build only says that there is an inner one.
            let cause = std::iter::successors(Some(error), |error| error.source()).last();
            let told = cause.map_or_else(String::new, ToString::to_string).replace('\n', " ");
            PluginError::invalid_argument(format!(
                "expected `{attribute}` to be a regular expression of RE2, found `{pattern}`: {}",
                told.trim()
            ))
        };
        let written = rewrite_pattern(pattern);
        let size = thompson::Config::new().nfa_size_limit(Some(MAX_PATTERN_BYTES));
        // A cache that is too small for a pattern is enlarged, not an error.
        let caching = dfa::Config::new().skip_cache_capacity_check(true);
        let leftmost = Regex::builder().thompson(size.clone()).dfa(caching.clone()).build(&written);
        let longest =
            DFA::builder().thompson(size).configure(caching.match_kind(MatchKind::All)).build(&written);
        Ok(Self {
            leftmost: leftmost.map_err(|error| wrong(&error))?,
            longest: longest.map_err(|error| wrong(&error))?,
        })
    }

    pub(super) fn create_cache(&self) -> PatternCache {
        PatternCache { leftmost: self.leftmost.create_cache(), longest: self.longest.create_cache() }
    }

    /// The leftmost-longest match in a text from a place on, which is the start of a character.
    pub(super) fn find_from(
        &self,
        cache: &mut PatternCache,
        text: &str,
        start: usize,
    ) -> Result<Option<std::ops::Range<usize>>> {
        let rest = Input::new(text).range(start..);
        let Some(found) = self.leftmost.try_search(&mut cache.leftmost, &rest).map_err(search_error)? else {
            return Ok(None);
        };
        let here = Input::new(text).range(found.start()..).anchored(Anchored::Yes);
        let longest = self.longest.try_search_fwd(&mut cache.longest, &here).map_err(search_error)?;
        // Between the bytes of a character, an empty match is no match.
        let end = longest.map(|end| end.offset()).filter(|end| text.is_char_boundary(*end));
        Ok(Some(found.start()..end.unwrap_or(found.end())))
    }

    /// True if the whole text matches.
    pub(super) fn matches_all(&self, cache: &mut PatternCache, text: &str) -> Result<bool> {
        let whole = Input::new(text).anchored(Anchored::Yes);
        let longest = self.longest.try_search_fwd(&mut cache.longest, &whole).map_err(search_error)?;
        Ok(longest.is_some_and(|end| end.offset() == text.len()))
    }
}

fn search_error(error: regex_automata::MatchError) -> PluginError {
    PluginError::resource_exhausted(format!("expected to search a text, found: {error}"))
}

/// Rewrites a pattern in the syntax of `regex-automata`.
fn rewrite_pattern(pattern: &str) -> String {
    let mut written = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut is_in_class = false;
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '\\' => {
                let escaped = rest[1..].chars().next();
                length += escaped.map_or(0, char::len_utf8);
                match escaped {
                    Some('Q') => {
                        let quoted = &rest[2..];
                        let end = quoted.find("\\E").unwrap_or(quoted.len());
                        quoted[..end].chars().for_each(|literal| push_literal(&mut written, literal));
                        length = rest.len().min(2 + end + 2);
                    }
                    Some('p' | 'P' | 'x') if rest[length..].starts_with('{') => {
                        length = rest.find('}').map_or(rest.len(), |end| end + 1);
                        written.push_str(&rest[..length]);
                    }
                    _ => push_escape(&mut written, &rest[..length], is_in_class),
                }
            }
            '[' if is_in_class => match rest.starts_with("[:").then(|| rest.find(":]")).flatten() {
                Some(end) => {
                    length = end + 2;
                    written.push_str(&rest[..length]);
                }
                None => written.push_str(r"\["),
            },
            '[' => {
                is_in_class = true;
                // A bracket or dash at the start stands for itself.
                let caret = usize::from(rest[1..].starts_with('^'));
                written.push_str(&rest[..=caret]);
                length = 1 + caret;
                if rest[length..].starts_with(']') || rest[length..].starts_with('-') {
                    written.push('\\');
                    written.push_str(&rest[length..=length]);
                    length += 1;
                }
            }
            ']' if is_in_class => {
                is_in_class = false;
                written.push(']');
            }
            '&' | '~' if is_in_class => push_literal(&mut written, first),
            // Two dashes would be a difference: the second is the end of a range.
            '-' if is_in_class && written.ends_with('-') && !written.ends_with(r"\-") => {
                push_literal(&mut written, first);
            }
            '{' if !is_in_class && !starts_with_repetition(rest) => written.push_str(r"\{"),
            _ => written.push(first),
        }
        rest = &rest[length..];
    }
    written
}

/// Writes a character that stands for itself.
fn push_literal(written: &mut String, literal: char) {
    if literal.is_ascii_punctuation() {
        written.push('\\');
    }
    written.push(literal);
}

/// Writes an escape of which RE2 and Rust have different opinions as what it is in RE2.
fn push_escape(written: &mut String, escape: &str, is_in_class: bool) {
    let (class, is_negated) = match escape {
        r"\d" => ("0-9", false),
        r"\D" => ("0-9", true),
        r"\s" => (r"\t\n\f\r ", false),
        r"\S" => (r"\t\n\f\r ", true),
        r"\w" => ("0-9A-Za-z_", false),
        r"\W" => ("0-9A-Za-z_", true),
        r"\b" if !is_in_class => return written.push_str(r"(?-u:\b)"),
        r"\B" if !is_in_class => return written.push_str(r"(?-u:\B)"),
        other => return written.push_str(other),
    };
    if is_in_class && !is_negated {
        return written.push_str(class);
    }
    written.push_str(if is_negated { "[^" } else { "[" });
    written.push_str(class);
    written.push(']');
}

/// True for `{3}`, `{3,}` and `{3,5}`.
fn starts_with_repetition(text: &str) -> bool {
    let Some((inner, _)) = text[1..].split_once('}') else { return false };
    let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && is_number(least) && is_number(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches<'a>(pattern: &str, text: &'a str) -> Vec<&'a str> {
        let pattern = Re2Pattern::compile("tokenexp", pattern).unwrap();
        let (mut cache, mut found, mut start) = (pattern.create_cache(), Vec::new(), 0);
        while let Some(range) = pattern.find_from(&mut cache, text, start).unwrap() {
            start = range.end;
            found.push(&text[range.clone()]);
            if range.is_empty() {
                break;
            }
        }
        found
    }

    #[test]
    fn the_leftmost_match_is_as_long_as_possible() {
        assert_eq!(matches("a|ab|abcd|b", "abcabcd"), ["ab", "abcd"]);
        assert_eq!(matches("a+?b*?", "caabba"), ["aabb", "a"]);
        assert_eq!(matches("x*", "a"), [""]);
        assert_eq!(matches(r"^a|\bb|c$", "ab b acc"), ["a", "b", "c"]);
    }

    #[test]
    fn classes_are_those_of_ascii_and_dots_are_characters() {
        assert_eq!(matches(r"\w+", "naïve 3é_"), ["na", "ve", "3", "_"]);
        assert_eq!(matches(r"[^\W\d]+", "a1é_b"), ["a", "_b"]);
        assert_eq!(matches(r"[\D]+|\d", "1٣"), ["1", "٣"]);
        assert_eq!(matches(r"\S+", "a\u{b}b\tc"), ["a\u{b}b", "c"]);
        assert_eq!(matches(r"\b.", "éa-"), ["a", "-"]);
        assert_eq!(matches(r"\p{Greek}+|\pN|\x{78}", "αβ٣x"), ["αβ", "٣", "x"]);
        assert_eq!(matches("(?i)straße|k", "STRAßE \u{212a}"), ["STRAßE", "\u{212a}"]);
    }

    #[test]
    fn what_has_no_meaning_in_re2_stands_for_itself() {
        assert_eq!(matches("[[a&&b~~]+", "[a&b~c"), ["[a&b~"]);
        assert_eq!(matches("[+--]+", "+,-."), ["+,-"]);
        assert_eq!(matches("[-a]+|[]b]+|[^^-]", "-a]b^c"), ["-a", "]b", "c"]);
        assert_eq!(matches("[[:alpha:]-]+", "a-1"), ["a-"]);
        assert_eq!(matches("a{,2}|b{1,2}|{c}", "a{,2}bbb{c}"), ["a{,2}", "bb", "b", "{c}"]);
        assert_eq!(matches(r"\Qa.+\E|\Q[", "a.+ab["), ["a.+", "["]);
        assert_eq!(matches(r"[\]\-\\]+", r"a]-\"), [r"]-\"]);
    }

    #[test]
    fn whole_texts_match_by_any_of_the_alternatives() {
        let matches = |pattern: &str, text: &str| {
            let pattern = Re2Pattern::compile("pattern", pattern).unwrap();
            pattern.matches_all(&mut pattern.create_cache(), text).unwrap()
        };
        assert!(matches("a|ab", "ab") && matches("a*?", "aaa") && matches("", ""));
        assert!(!matches("a|ab", "abc") && !matches("b", "ab") && !matches("a$", "a\n"));
    }

    #[test]
    fn patterns_that_are_none_or_too_large_are_named() {
        for pattern in ["(", "a)", "[a", r"\1", "(?=a)", r"\C", "((a{900}){900}){900}", "(?<n>a"] {
            let error = Re2Pattern::compile("tokenexp", pattern).err().unwrap().to_string();
            assert!(error.contains("`tokenexp`") && error.contains(pattern), "{error}");
        }
    }
}
