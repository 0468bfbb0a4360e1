//! The small language that describes the simulated device and its faults.
//!
//! One statement per line, or several separated by `;`; `#` starts a comment. See [`STATEMENTS`] for every statement. A mistake
//! in a script must never make a test pass by doing nothing, so anything unknown is an error that names the line, the word, what
//! was expected and the nearest valid word. Names of calls, tables and slots are not checked here;
//! [`FaultScript::referenced_names`] lists them for code that knows the contract.

use std::fmt;
use std::time::Duration;

use crate::error::SimErrorKind;
use crate::fault_rule::{CallRange, DeviceLoss, FaultEffect, FaultRule};
use crate::stream::SchedulingMode;

/// Every statement: its first word and its syntax.
pub const STATEMENTS: [(&str, &str); 19] = [
    ("seed", "seed NUMBER"),
    ("mode", "mode eager|lazy|random"),
    ("devices", "devices COUNT"),
    ("ids", "ids NUMBER,NUMBER,..."),
    ("quota", "quota SIZE"),
    ("poison", "poison on|off"),
    ("trace", "trace on|off"),
    ("ops", "ops NAME,NAME,..."),
    ("fail", "fail CALL WHEN KIND"),
    ("fail_later", "fail_later CALL WHEN KIND"),
    ("delay", "delay CALL WHEN TIME [real]"),
    ("hang", "hang CALL WHEN [TIME]"),
    ("panic", "panic CALL WHEN"),
    ("abort", "abort CALL WHEN"),
    ("lose", "lose DEVICE after COUNT"),
    ("lie", "lie device_count COUNT | lie memory_stats | lie copy [WHEN]"),
    ("short", "short TABLE SIZE"),
    ("long", "long TABLE SIZE"),
    ("missing", "missing SLOT"),
];

const MAX_DEVICES: u32 = 64;
const MAX_QUOTA: u64 = 1 << 40;

/// A parsed script: properties of the devices, and faults.
#[derive(Clone, Debug)]
pub struct FaultScript {
    /// Seed of the scheduler's choices.
    pub seed: u64,
    /// Decides when enqueued work runs.
    pub mode: SchedulingMode,
    /// The ids of the devices, in order.
    pub device_ids: Vec<u32>,
    /// Memory of each device in bytes.
    pub quota: u64,
    /// True if fresh and freed memory is filled with a pattern.
    pub poison: bool,
    /// True if the scheduler logs what ran in which order.
    pub trace: bool,
    /// Ops to register kernels for; `None` means all ops of the CPU.
    pub ops: Option<Vec<String>>,
    /// A false device count to report.
    pub reported_device_count: Option<u32>,
    pub(crate) rules: Vec<FaultRule>,
    pub(crate) losses: Vec<DeviceLoss>,
    pub(crate) lying_statistics: bool,
    table_sizes: Vec<(String, u64)>,
    missing: Vec<String>,
}

impl Default for FaultScript {
    fn default() -> Self {
        Self {
            seed: 0,
            mode: SchedulingMode::Lazy,
            device_ids: vec![0, 1],
            quota: 256 << 20,
            poison: true,
            trace: false,
            ops: None,
            reported_device_count: None,
            rules: Vec::new(),
            losses: Vec::new(),
            lying_statistics: false,
            table_sizes: Vec::new(),
            missing: Vec::new(),
        }
    }
}

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
        write!(formatter, "line {} of the sim script: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

impl FaultScript {
    /// Parses a script.
    pub fn parse_script(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        for (index, line) in text.lines().enumerate() {
            let code = line.split('#').next().unwrap_or_default();
            for statement in code.split(';') {
                let mut words = StatementWords { line: index + 1, words: statement.split_whitespace() };
                if let Some(first) = words.words.next() {
                    script.parse_statement(first, &mut words)?;
                    words.expect_end()?;
                }
            }
        }
        match script.losses.iter().find(|loss| !script.device_ids.contains(&loss.device)) {
            Some(loss) => Err(ScriptError {
                line: loss.line,
                message: format!(
                    "device {} cannot be lost, the devices are {:?}",
                    loss.device, script.device_ids
                ),
            }),
            None => Ok(script),
        }
    }

    /// The size that a `short` or `long` statement claims for a table.
    pub fn table_size(&self, table: &str) -> Option<u64> {
        self.table_sizes.iter().rev().find(|(name, _)| name == table).map(|&(_, size)| size)
    }

    /// True if a `missing` statement removes the slot.
    pub fn is_missing(&self, slot: &str) -> bool {
        self.missing.iter().any(|name| name == slot)
    }

    /// Every call, table and slot that the script names.
    pub fn referenced_names(&self) -> Vec<&str> {
        let calls = self.rules.iter().filter_map(FaultRule::call_name);
        let tables = self.table_sizes.iter().map(|(name, _)| name.as_str());
        calls.chain(tables).chain(self.missing.iter().map(String::as_str)).collect()
    }

    fn parse_statement(&mut self, first: &str, words: &mut StatementWords<'_>) -> Result<(), ScriptError> {
        match first {
            "seed" => self.seed = words.parse_number("a number")?,
            "mode" => self.mode = words.parse_choice(&SchedulingMode::SCRIPT_WORDS)?,
            "devices" => {
                let count = words.parse_number_up_to(MAX_DEVICES.into(), "a number of devices")?;
                self.device_ids = (0..count as u32).collect();
            }
            "ids" => self.device_ids = words.parse_device_ids()?,
            "quota" => self.quota = words.parse_size()?,
            "poison" => self.poison = words.parse_choice(&[("on", true), ("off", false)])?,
            "trace" => self.trace = words.parse_choice(&[("on", true), ("off", false)])?,
            "ops" => self.ops = Some(words.parse_op_names()?),
            "lose" => {
                let device = words.parse_number_up_to(u32::MAX.into(), "a device id")? as u32;
                words.parse_choice(&[("after", ())])?;
                let after = words.parse_number("a number of calls")?;
                self.losses.push(DeviceLoss { device, after, seen: 0, line: words.line });
            }
            "lie" => self.parse_lie(words)?,
            "short" | "long" => {
                let table = words.parse_name("a table name")?;
                self.table_sizes.push((table, words.parse_number("a size in bytes")?));
            }
            "missing" => self.missing.push(words.parse_name("a slot name")?),
            "fail" | "fail_later" | "delay" | "hang" | "panic" | "abort" => {
                let call = words.parse_name("a call name")?;
                let when = words.parse_call_range()?;
                let effect = words.parse_effect(first)?;
                self.rules.push(FaultRule::new(call, when, effect));
            }
            other => return Err(words.unexpected_word_error(other, &STATEMENTS.map(|(word, _)| word))),
        }
        Ok(())
    }

    fn parse_lie(&mut self, words: &mut StatementWords<'_>) -> Result<(), ScriptError> {
        match words.parse_choice(&[("device_count", 'd'), ("memory_stats", 'm'), ("copy", 'c')])? {
            'd' => {
                let count = words.parse_number_up_to(u32::MAX.into(), "a number of devices")?;
                self.reported_device_count = Some(count as u32);
            }
            'm' => self.lying_statistics = true,
            _ => {
                let when = if words.is_finished() { CallRange::ALWAYS } else { words.parse_call_range()? };
                self.rules.push(FaultRule::for_every_copy(when));
            }
        }
        Ok(())
    }
}

/// The unread words of one statement.
struct StatementWords<'a> {
    line: usize,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> StatementWords<'a> {
    fn script_error(&self, message: String) -> ScriptError {
        ScriptError { line: self.line, message }
    }

    fn expected_found_error(&self, word: &str, expected: &str) -> ScriptError {
        self.script_error(format!("expected {expected}, found `{}`", quote_word(word)))
    }

    fn unexpected_word_error(&self, word: &str, expected: &[&str]) -> ScriptError {
        let list = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let hint =
            nearest_word(word, expected).map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        let one_of = if expected.len() > 1 { "one of " } else { "" };
        self.script_error(format!("expected {one_of}{list}, found `{}`{hint}", quote_word(word)))
    }

    fn next(&mut self, expected: &str) -> Result<&'a str, ScriptError> {
        let found = self.words.next();
        found.ok_or_else(|| self.script_error(format!("expected {expected}, found the end of the statement")))
    }

    fn is_finished(&self) -> bool {
        self.words.clone().next().is_none()
    }

    fn expect_end(&mut self) -> Result<(), ScriptError> {
        self.words
            .next()
            .map_or(Ok(()), |word| Err(self.expected_found_error(word, "the end of the statement")))
    }

    fn parse_choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, ScriptError> {
        let expected: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let word = self.next(&format!("`{}`", expected.join("`, `")))?;
        let found = choices.iter().find(|&&(name, _)| name == word).map(|&(_, value)| value);
        found.ok_or_else(|| self.unexpected_word_error(word, &expected))
    }

    fn parse_name(&mut self, expected: &str) -> Result<String, ScriptError> {
        let expected = format!("{expected} of `a` to `z`, digits and `_`");
        let word = self.next(&expected)?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if word.bytes().all(fits) {
            Ok(word.to_owned())
        } else {
            Err(self.expected_found_error(word, &expected))
        }
    }

    fn parse_number(&mut self, expected: &str) -> Result<u64, ScriptError> {
        self.parse_number_up_to(u64::MAX, expected)
    }

    fn parse_number_up_to(&mut self, limit: u64, expected: &str) -> Result<u64, ScriptError> {
        let expected = format!("{expected} from 0 to {limit}");
        let word = self.next(&expected)?;
        parse_digits(word)
            .filter(|&value| value <= limit)
            .ok_or_else(|| self.expected_found_error(word, &expected))
    }

    fn parse_device_ids(&mut self) -> Result<Vec<u32>, ScriptError> {
        let expected =
            format!("at most {MAX_DEVICES} different device ids with commas between, such as `3,7`");
        let word = self.next(&expected)?;
        let mut ids: Vec<u32> = Vec::new();
        for part in word.split(',') {
            match parse_digits(part).and_then(|id| u32::try_from(id).ok()) {
                Some(id) if !ids.contains(&id) && ids.len() < MAX_DEVICES as usize => ids.push(id),
                _ => return Err(self.expected_found_error(word, &expected)),
            }
        }
        Ok(ids)
    }

    fn parse_op_names(&mut self) -> Result<Vec<String>, ScriptError> {
        let expected = "names of ops with commas between, such as `Add,MatMul`";
        let word = self.next(expected)?;
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let names = word.split(',').map(|name| is_name(name).then(|| name.to_owned())).collect::<Option<_>>();
        names.ok_or_else(|| self.expected_found_error(word, expected))
    }

    fn parse_size(&mut self) -> Result<u64, ScriptError> {
        const SIZE_UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
        let expected = "a size from 1 byte to 1024 GiB, such as `4096` or `64MiB`";
        let word = self.next(expected)?;
        let size = parse_with_unit(word, &SIZE_UNITS).filter(|size| (1..=MAX_QUOTA).contains(size));
        size.ok_or_else(|| self.expected_found_error(word, expected))
    }

    fn parse_duration(&mut self) -> Result<Duration, ScriptError> {
        const TIME_UNITS: [(&str, u64); 4] =
            [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let expected = "a time in `ns`, `us`, `ms` or `s`, such as `5ms`";
        let word = self.next(expected)?;
        parse_with_unit(word, &TIME_UNITS)
            .map(Duration::from_nanos)
            .ok_or_else(|| self.expected_found_error(word, expected))
    }

    fn parse_call_range(&mut self) -> Result<CallRange, ScriptError> {
        let expected =
            "which calls: `3` for the third, `2..` from the second on, `2..5` for the second to the fifth";
        let word = self.next(expected)?;
        let (first, last) = match word.split_once("..") {
            None => (parse_digits(word), parse_digits(word)),
            Some((first, "")) => (parse_digits(first), Some(u64::MAX)),
            Some((first, last)) => (parse_digits(first), parse_digits(last)),
        };
        match (first, last) {
            (Some(first), Some(last)) if 1 <= first && first <= last => Ok(CallRange { first, last }),
            _ => Err(self.expected_found_error(word, expected)),
        }
    }

    fn parse_effect(&mut self, statement: &str) -> Result<FaultEffect, ScriptError> {
        Ok(match statement {
            "fail" => FaultEffect::Fail(self.parse_choice(&SimErrorKind::SCRIPT_WORDS)?),
            "fail_later" => FaultEffect::FailLater(self.parse_choice(&SimErrorKind::SCRIPT_WORDS)?),
            "delay" => {
                let time = self.parse_duration()?;
                if self.is_finished() {
                    FaultEffect::Delay(time)
                } else {
                    self.parse_choice(&[("real", FaultEffect::Sleep(time))])?
                }
            }
            "hang" => FaultEffect::Hang(if self.is_finished() { None } else { Some(self.parse_duration()?) }),
            "panic" => FaultEffect::Panic,
            _ => FaultEffect::Abort,
        })
    }
}

/// Accepts digits only; the standard parser would also take a leading `+`.
fn parse_digits(word: &str) -> Option<u64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

fn parse_with_unit(word: &str, units: &[(&str, u64)]) -> Option<u64> {
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

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
