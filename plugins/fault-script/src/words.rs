//! Statements of a script as words, and messages about mistakes in them.
//!
//! One statement per line, or several separated by `;`; `#` starts a comment. A mistake in a script must never make a test pass by
//! doing nothing, so anything unknown is an error that names the line, the word, what was expected and the nearest valid word.

use std::fmt;
use std::time::Duration;

/// A mistake in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, counted from 1.
    pub line: usize,
    /// What was found there, and what was expected.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} of the script: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Hands each statement of a script to `parse`, with its first word; words that it leaves are an error.
pub fn parse_statements(
    text: &str,
    mut parse: impl FnMut(&str, &mut StatementWords<'_>) -> Result<(), ScriptError>,
) -> Result<(), ScriptError> {
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default();
        for statement in code.split(';') {
            let mut words = StatementWords { line: index + 1, words: statement.split_whitespace() };
            if let Some(first) = words.words.next() {
                parse(first, &mut words)?;
                words.expect_end()?;
            }
        }
    }
    Ok(())
}

/// The unread words of one statement.
pub struct StatementWords<'a> {
    pub(crate) line: usize,
    pub(crate) words: std::str::SplitWhitespace<'a>,
}

impl<'a> StatementWords<'a> {
    /// The line of the statement, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// An error at this statement.
    pub fn script_error(&self, message: String) -> ScriptError {
        ScriptError { line: self.line, message }
    }

    /// An error about a word that is not what was expected.
    pub fn expected_found_error(&self, word: &str, expected: &str) -> ScriptError {
        self.script_error(format!("expected {expected}, found `{}`", quote_word(word)))
    }

    /// An error about a word that is none of those expected; it names the nearest.
    pub fn unexpected_word_error(&self, word: &str, expected: &[&str]) -> ScriptError {
        let list = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let hint =
            nearest_word(word, expected).map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        let one_of = if expected.len() > 1 { "one of " } else { "" };
        self.script_error(format!("expected {one_of}{list}, found `{}`{hint}", quote_word(word)))
    }

    /// The next word.
    pub fn next_word(&mut self, expected: &str) -> Result<&'a str, ScriptError> {
        let found = self.words.next();
        found.ok_or_else(|| self.script_error(format!("expected {expected}, found the end of the statement")))
    }

    /// True if no word is left.
    pub fn is_finished(&self) -> bool {
        self.words.clone().next().is_none()
    }

    /// Fails if a word is left.
    pub fn expect_end(&mut self) -> Result<(), ScriptError> {
        self.words
            .next()
            .map_or(Ok(()), |word| Err(self.expected_found_error(word, "the end of the statement")))
    }

    /// One of several words.
    pub fn parse_choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, ScriptError> {
        let expected: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let word = self.next_word(&format!("`{}`", expected.join("`, `")))?;
        let found = choices.iter().find(|&&(name, _)| name == word).map(|&(_, value)| value);
        found.ok_or_else(|| self.unexpected_word_error(word, &expected))
    }

    /// A name of small letters, digits and `_`.
    pub fn parse_name(&mut self, expected: &str) -> Result<String, ScriptError> {
        let expected = format!("{expected} of `a` to `z`, digits and `_`");
        let word = self.next_word(&expected)?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if word.bytes().all(fits) {
            Ok(word.to_owned())
        } else {
            Err(self.expected_found_error(word, &expected))
        }
    }

    /// A number.
    pub fn parse_number(&mut self, expected: &str) -> Result<u64, ScriptError> {
        self.parse_number_up_to(u64::MAX, expected)
    }

    /// A number up to a limit.
    pub fn parse_number_up_to(&mut self, limit: u64, expected: &str) -> Result<u64, ScriptError> {
        let expected = format!("{expected} from 0 to {limit}");
        let word = self.next_word(&expected)?;
        parse_digits(word)
            .filter(|&value| value <= limit)
            .ok_or_else(|| self.expected_found_error(word, &expected))
    }

    /// A time with its unit.
    pub fn parse_duration(&mut self) -> Result<Duration, ScriptError> {
        const TIME_UNITS: [(&str, u64); 4] =
            [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let expected = "a time in `ns`, `us`, `ms` or `s`, such as `5ms`";
        let word = self.next_word(expected)?;
        parse_with_unit(word, &TIME_UNITS)
            .map(Duration::from_nanos)
            .ok_or_else(|| self.expected_found_error(word, expected))
    }
}

/// A number of digits only; the standard parser would also take a leading `+`.
pub fn parse_digits(word: &str) -> Option<u64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

/// A number with one of some units, each with its factor.
pub fn parse_with_unit(word: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = word.split_at(digits);
    let &(_, factor) = units.iter().find(|&&(name, _)| name == unit)?;
    parse_digits(amount)?.checked_mul(factor)
}

/// Quotes a word for a message, shortened and on one line.
fn quote_word(word: &str) -> String {
    let mut shown: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().nth(40).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The closest expected word, if at most a third of its letters are wrong.
fn nearest_word<'a>(word: &str, expected: &[&'a str]) -> Option<&'a str> {
    let word = word.get(..word.len().min(40)).unwrap_or_default();
    let (distance, near) = expected.iter().map(|near| (edit_distance(word, near), *near)).min()?;
    (distance * 3 <= near.len().max(3)).then_some(near)
}

/// Levenshtein distance.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.bytes().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}
