//! The small language that describes the simulated device and its faults.
//!
//! One statement per line, or several separated by `;`; `#` starts a comment. See [`STATEMENTS`] for every statement. A mistake
//! in a script must never make a test pass by doing nothing, so anything unknown is an error that names the line, the word, what
//! was expected and the nearest valid word. Names of calls, tables and slots are not checked here;
//! [`FaultScript::referenced_names`] lists them for code that knows the contract.

use oarlock_fault_script::{
    FaultStatements, ScriptError, StatementWords, parse_digits, parse_statements, parse_with_unit,
};

use crate::stream::SchedulingMode;

/// Every statement: its first word and its syntax.
pub const STATEMENTS: [(&str, &str); 20] = [
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
    ("shorten", "shorten CALL WHEN"),
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
    /// The faults, and the seed of all choices.
    pub faults: FaultStatements,
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
    pub(crate) lying_statistics: bool,
    table_sizes: Vec<(String, u64)>,
    missing: Vec<String>,
}

impl Default for FaultScript {
    fn default() -> Self {
        Self {
            faults: FaultStatements::default(),
            mode: SchedulingMode::Lazy,
            device_ids: vec![0, 1],
            quota: 256 << 20,
            poison: true,
            trace: false,
            ops: None,
            reported_device_count: None,
            lying_statistics: false,
            table_sizes: Vec::new(),
            missing: Vec::new(),
        }
    }
}

impl FaultScript {
    /// Parses a script.
    pub fn parse_script(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        parse_statements(text, |first, words| script.parse_statement(first, words))?;
        script.faults.check_losses(&script.device_ids)?;
        Ok(script)
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
        let calls = self.faults.call_names();
        let tables = self.table_sizes.iter().map(|(name, _)| name.as_str());
        calls.chain(tables).chain(self.missing.iter().map(String::as_str)).collect()
    }

    fn parse_statement(&mut self, first: &str, words: &mut StatementWords<'_>) -> Result<(), ScriptError> {
        match first {
            "mode" => self.mode = words.parse_choice(&SchedulingMode::SCRIPT_WORDS)?,
            "devices" => {
                let count = words.parse_number_up_to(MAX_DEVICES.into(), "a number of devices")?;
                self.device_ids = (0..count as u32).collect();
            }
            "ids" => self.device_ids = parse_device_ids(words)?,
            "quota" => self.quota = parse_size(words)?,
            "poison" => self.poison = words.parse_choice(&[("on", true), ("off", false)])?,
            "trace" => self.trace = words.parse_choice(&[("on", true), ("off", false)])?,
            "ops" => self.ops = Some(parse_op_names(words)?),
            "lie" => self.parse_lie(words)?,
            "short" | "long" => {
                let table = words.parse_name("a table name")?;
                self.table_sizes.push((table, words.parse_number("a size in bytes")?));
            }
            "missing" => self.missing.push(words.parse_name("a slot name")?),
            _ if self.faults.parse_statement(first, words)? => {}
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
            _ => self.faults.parse_lying_copy(words)?,
        }
        Ok(())
    }
}

fn parse_device_ids(words: &mut StatementWords<'_>) -> Result<Vec<u32>, ScriptError> {
    let expected = format!("at most {MAX_DEVICES} different device ids with commas between, such as `3,7`");
    let word = words.next_word(&expected)?;
    let mut ids: Vec<u32> = Vec::new();
    for part in word.split(',') {
        match parse_digits(part).and_then(|id| u32::try_from(id).ok()) {
            Some(id) if !ids.contains(&id) && ids.len() < MAX_DEVICES as usize => ids.push(id),
            _ => return Err(words.expected_found_error(word, &expected)),
        }
    }
    Ok(ids)
}

fn parse_op_names(words: &mut StatementWords<'_>) -> Result<Vec<String>, ScriptError> {
    let expected = "names of ops with commas between, such as `Add,MatMul`";
    let word = words.next_word(expected)?;
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let names = word.split(',').map(|name| is_name(name).then(|| name.to_owned())).collect::<Option<_>>();
    names.ok_or_else(|| words.expected_found_error(word, expected))
}

fn parse_size(words: &mut StatementWords<'_>) -> Result<u64, ScriptError> {
    const SIZE_UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
    let expected = "a size from 1 byte to 1024 GiB, such as `4096` or `64MiB`";
    let word = words.next_word(expected)?;
    let size = parse_with_unit(word, &SIZE_UNITS).filter(|size| (1..=MAX_QUOTA).contains(size));
    size.ok_or_else(|| words.expected_found_error(word, expected))
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
