//! The little language that says what the simulated device is like and when it misbehaves.
//!
//! One statement a line, or several with `;` between; `#` starts a comment. See [`STATEMENTS`] for every statement.
//! A mistake in a script must never make a test pass by doing nothing, so anything unknown is an error that names the
//! line, the word, what was expected and the nearest right word. The names of calls, tables and slots are the contract's
//! and may be any; [`Script::names`] gives them to whoever knows the contract.

use std::fmt;
use std::time::Duration;

use crate::error::SimErrorKind;
use crate::fault::{Effect, Loss, Rule, When};
use crate::stream::Mode;

/// Every statement, by its first word, with its form.
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

const MOST_DEVICES: u32 = 64;
const LARGEST_QUOTA: u64 = 1 << 40;

/// A parsed script: what the devices are like, and what goes wrong.
#[derive(Clone, Debug)]
pub struct Script {
    /// What the scheduler's choices are drawn from.
    pub seed: u64,
    /// When enqueued work runs.
    pub mode: Mode,
    /// The ids of the devices, in order.
    pub device_ids: Vec<u32>,
    /// Bytes of memory of each device.
    pub quota: u64,
    /// Whether fresh and freed memory is filled with a pattern.
    pub poison: bool,
    /// Whether the scheduler keeps a log of what ran in which order.
    pub trace: bool,
    /// The only ops to have kernels of; without it those of the CPU.
    pub ops: Option<Vec<String>>,
    /// The device count to report instead of the true one.
    pub reported_device_count: Option<u32>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) lying_statistics: bool,
    table_sizes: Vec<(String, u64)>,
    missing: Vec<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            seed: 0,
            mode: Mode::Lazy,
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
    /// The line, counted from one.
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

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        for (index, line) in text.lines().enumerate() {
            let code = line.split('#').next().unwrap_or_default();
            for statement in code.split(';') {
                let mut words = Words { line: index + 1, words: statement.split_whitespace() };
                if let Some(first) = words.words.next() {
                    script.statement(first, &mut words)?;
                    words.finish()?;
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

    /// The size that a `short` or `long` statement claims for a table, for whoever lays the table out.
    pub fn table_size(&self, table: &str) -> Option<u64> {
        self.table_sizes.iter().rev().find(|(name, _)| name == table).map(|&(_, size)| size)
    }

    /// Whether a `missing` statement asks for a slot to be absent.
    pub fn is_missing(&self, slot: &str) -> bool {
        self.missing.iter().any(|name| name == slot)
    }

    /// Every call, table and slot that the script names.
    pub fn names(&self) -> Vec<&str> {
        let calls = self.rules.iter().filter_map(Rule::call);
        let tables = self.table_sizes.iter().map(|(name, _)| name.as_str());
        calls.chain(tables).chain(self.missing.iter().map(String::as_str)).collect()
    }

    fn statement(&mut self, first: &str, words: &mut Words<'_>) -> Result<(), ScriptError> {
        match first {
            "seed" => self.seed = words.number("a number")?,
            "mode" => self.mode = words.choice(&Mode::WORDS)?,
            "devices" => {
                let count = words.number_up_to(MOST_DEVICES.into(), "a number of devices")?;
                self.device_ids = (0..count as u32).collect();
            }
            "ids" => self.device_ids = words.ids()?,
            "quota" => self.quota = words.size()?,
            "poison" => self.poison = words.choice(&[("on", true), ("off", false)])?,
            "trace" => self.trace = words.choice(&[("on", true), ("off", false)])?,
            "ops" => self.ops = Some(words.ops()?),
            "lose" => {
                let device = words.number_up_to(u32::MAX.into(), "a device id")? as u32;
                words.choice(&[("after", ())])?;
                let after = words.number("a number of calls")?;
                self.losses.push(Loss { device, after, seen: 0, line: words.line });
            }
            "lie" => self.lie(words)?,
            "short" | "long" => {
                let table = words.name("a table name")?;
                self.table_sizes.push((table, words.number("a size in bytes")?));
            }
            "missing" => self.missing.push(words.name("a slot name")?),
            "fail" | "fail_later" | "delay" | "hang" | "panic" | "abort" => {
                let call = words.name("a call name")?;
                let when = words.when()?;
                let effect = words.effect(first)?;
                self.rules.push(Rule::new(call, when, effect));
            }
            other => return Err(words.unexpected(other, &STATEMENTS.map(|(word, _)| word))),
        }
        Ok(())
    }

    fn lie(&mut self, words: &mut Words<'_>) -> Result<(), ScriptError> {
        match words.choice(&[("device_count", 'd'), ("memory_stats", 'm'), ("copy", 'c')])? {
            'd' => {
                let count = words.number_up_to(u32::MAX.into(), "a number of devices")?;
                self.reported_device_count = Some(count as u32);
            }
            'm' => self.lying_statistics = true,
            _ => {
                let when = if words.is_finished() { When::ALWAYS } else { words.when()? };
                self.rules.push(Rule::for_every_copy(when));
            }
        }
        Ok(())
    }
}

/// The words of one statement that were not read yet.
struct Words<'a> {
    line: usize,
    words: std::str::SplitWhitespace<'a>,
}

impl<'a> Words<'a> {
    fn error(&self, message: String) -> ScriptError {
        ScriptError { line: self.line, message }
    }

    fn found(&self, word: &str, expected: &str) -> ScriptError {
        self.error(format!("expected {expected}, found `{}`", shown(word)))
    }

    fn unexpected(&self, word: &str, expected: &[&str]) -> ScriptError {
        let list = expected.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let hint = nearest(word, expected).map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        let one_of = if expected.len() > 1 { "one of " } else { "" };
        self.error(format!("expected {one_of}{list}, found `{}`{hint}", shown(word)))
    }

    fn next(&mut self, expected: &str) -> Result<&'a str, ScriptError> {
        let found = self.words.next();
        found.ok_or_else(|| self.error(format!("expected {expected}, found the end of the statement")))
    }

    fn is_finished(&self) -> bool {
        self.words.clone().next().is_none()
    }

    fn finish(&mut self) -> Result<(), ScriptError> {
        self.words.next().map_or(Ok(()), |word| Err(self.found(word, "the end of the statement")))
    }

    fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, ScriptError> {
        let expected: Vec<&str> = choices.iter().map(|&(word, _)| word).collect();
        let word = self.next(&format!("`{}`", expected.join("`, `")))?;
        let found = choices.iter().find(|&&(name, _)| name == word).map(|&(_, value)| value);
        found.ok_or_else(|| self.unexpected(word, &expected))
    }

    fn name(&mut self, expected: &str) -> Result<String, ScriptError> {
        let expected = format!("{expected} of `a` to `z`, digits and `_`");
        let word = self.next(&expected)?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if word.bytes().all(fits) { Ok(word.to_owned()) } else { Err(self.found(word, &expected)) }
    }

    fn number(&mut self, expected: &str) -> Result<u64, ScriptError> {
        self.number_up_to(u64::MAX, expected)
    }

    fn number_up_to(&mut self, limit: u64, expected: &str) -> Result<u64, ScriptError> {
        let expected = format!("{expected} from 0 to {limit}");
        let word = self.next(&expected)?;
        number(word).filter(|&value| value <= limit).ok_or_else(|| self.found(word, &expected))
    }

    fn ids(&mut self) -> Result<Vec<u32>, ScriptError> {
        let expected =
            format!("at most {MOST_DEVICES} different device ids with commas between, such as `3,7`");
        let word = self.next(&expected)?;
        let mut ids: Vec<u32> = Vec::new();
        for part in word.split(',') {
            match number(part).and_then(|id| u32::try_from(id).ok()) {
                Some(id) if !ids.contains(&id) && ids.len() < MOST_DEVICES as usize => ids.push(id),
                _ => return Err(self.found(word, &expected)),
            }
        }
        Ok(ids)
    }

    fn ops(&mut self) -> Result<Vec<String>, ScriptError> {
        let expected = "names of ops with commas between, such as `Add,MatMul`";
        let word = self.next(expected)?;
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let names = word.split(',').map(|name| is_name(name).then(|| name.to_owned())).collect::<Option<_>>();
        names.ok_or_else(|| self.found(word, expected))
    }

    fn size(&mut self) -> Result<u64, ScriptError> {
        const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
        let expected = "a size from 1 byte to 1024 GiB, such as `4096` or `64MiB`";
        let word = self.next(expected)?;
        let size = with_unit(word, &UNITS).filter(|size| (1..=LARGEST_QUOTA).contains(size));
        size.ok_or_else(|| self.found(word, expected))
    }

    fn time(&mut self) -> Result<Duration, ScriptError> {
        const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let expected = "a time in `ns`, `us`, `ms` or `s`, such as `5ms`";
        let word = self.next(expected)?;
        with_unit(word, &UNITS).map(Duration::from_nanos).ok_or_else(|| self.found(word, expected))
    }

    fn when(&mut self) -> Result<When, ScriptError> {
        let expected =
            "which calls: `3` for the third, `2..` from the second on, `2..5` for the second to the fifth";
        let word = self.next(expected)?;
        let (first, last) = match word.split_once("..") {
            None => (number(word), number(word)),
            Some((first, "")) => (number(first), Some(u64::MAX)),
            Some((first, last)) => (number(first), number(last)),
        };
        match (first, last) {
            (Some(first), Some(last)) if 1 <= first && first <= last => Ok(When { first, last }),
            _ => Err(self.found(word, expected)),
        }
    }

    fn effect(&mut self, statement: &str) -> Result<Effect, ScriptError> {
        Ok(match statement {
            "fail" => Effect::Fail(self.choice(&SimErrorKind::WORDS)?),
            "fail_later" => Effect::FailLater(self.choice(&SimErrorKind::WORDS)?),
            "delay" => {
                let time = self.time()?;
                if self.is_finished() {
                    Effect::Delay(time)
                } else {
                    self.choice(&[("real", Effect::Sleep(time))])?
                }
            }
            "hang" => Effect::Hang(if self.is_finished() { None } else { Some(self.time()?) }),
            "panic" => Effect::Panic,
            _ => Effect::Abort,
        })
    }
}

/// Digits only: the standard parser would also take a leading `+`.
fn number(word: &str) -> Option<u64> {
    if word.bytes().all(|byte| byte.is_ascii_digit()) { word.parse().ok() } else { None }
}

fn with_unit(word: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = word.split_at(digits);
    let &(_, factor) = units.iter().find(|&&(name, _)| name == unit)?;
    number(amount)?.checked_mul(factor)
}

/// A word as a message can carry it: short, and on one line.
fn shown(word: &str) -> String {
    let mut shown: String = word.chars().take(40).flat_map(char::escape_debug).collect();
    if word.chars().nth(40).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The expected word that is at most a third wrong, if there is one.
fn nearest<'a>(word: &str, expected: &[&'a str]) -> Option<&'a str> {
    let word = word.get(..word.len().min(40)).unwrap_or_default();
    let (distance, near) = expected.iter().map(|near| (edits(word, near), *near)).min()?;
    (distance * 3 <= near.len().max(3)).then_some(near)
}

/// How many letters must be added, dropped or changed to make one word the other.
fn edits(left: &str, right: &str) -> usize {
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
