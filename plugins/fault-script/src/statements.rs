//! The statements about faults.

use crate::fault_kind::FaultKind;
use crate::fault_rule::{CallSelection, DeviceLoss, FaultEffect, FaultRule};
use crate::words::{ScriptError, StatementWords, parse_digits};

/// Every statement about faults: its first word and its syntax. WHEN is `3`, `2..`, `2..5`, or a chance such as `5%`.
pub const FAULT_STATEMENTS: [(&str, &str); 10] = [
    ("seed", "seed NUMBER"),
    ("fail", "fail CALL WHEN KIND"),
    ("fail_later", "fail_later CALL WHEN KIND"),
    ("delay", "delay CALL WHEN TIME [real]"),
    ("hang", "hang CALL WHEN [TIME]"),
    ("panic", "panic CALL WHEN"),
    ("abort", "abort CALL WHEN"),
    ("shorten", "shorten CALL WHEN"),
    ("lose", "lose DEVICE after COUNT"),
    ("lie", "lie copy [WHEN]"),
];

/// The faults of a script.
#[derive(Clone, Debug, Default)]
pub struct FaultStatements {
    /// Seed of all choices.
    pub seed: u64,
    pub(crate) rules: Vec<FaultRule>,
    pub(crate) losses: Vec<DeviceLoss>,
}

impl FaultStatements {
    /// Reads the rest of a statement whose first word is `first`. False if it is not about faults.
    pub fn parse_statement(
        &mut self,
        first: &str,
        words: &mut StatementWords<'_>,
    ) -> Result<bool, ScriptError> {
        match first {
            "seed" => self.seed = words.parse_number("a number")?,
            "lose" => {
                let device = words.parse_number_up_to(u32::MAX.into(), "a device id")? as u32;
                words.parse_choice(&[("after", ())])?;
                let after = words.parse_number("a number of calls")?;
                self.losses.push(DeviceLoss { device, after, seen: 0, line: words.line() });
            }
            "fail" | "fail_later" | "delay" | "hang" | "panic" | "abort" | "shorten" => {
                let call = words.parse_name("a call name")?;
                let when = parse_selection(words)?;
                let effect = parse_effect(words, first)?;
                self.rules.push(FaultRule::new(call, when, effect));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads what follows `lie copy`.
    pub fn parse_lying_copy(&mut self, words: &mut StatementWords<'_>) -> Result<(), ScriptError> {
        let when = if words.is_finished() { CallSelection::ALWAYS } else { parse_selection(words)? };
        self.rules.push(FaultRule::for_every_copy(when));
        Ok(())
    }

    /// Every call that the script names.
    pub fn call_names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().filter_map(FaultRule::call_name)
    }

    /// Fails if the script loses a device that is not among `devices`.
    pub fn check_losses(&self, devices: &[u32]) -> Result<(), ScriptError> {
        match self.losses.iter().find(|loss| !devices.contains(&loss.device)) {
            Some(loss) => Err(ScriptError {
                line: loss.line,
                message: format!("device {} cannot be lost, the devices are {devices:?}", loss.device),
            }),
            None => Ok(()),
        }
    }
}

fn parse_selection(words: &mut StatementWords<'_>) -> Result<CallSelection, ScriptError> {
    let expected = "which calls: `3` for the third, `2..` from the second on, `2..5` for the second to the fifth, \
                    `5%` for one in twenty by chance";
    let word = words.next_word(expected)?;
    if let Some(percent) = word.strip_suffix('%') {
        let percent = parse_digits(percent).filter(|percent| (1..=100).contains(percent));
        let percent = percent.ok_or_else(|| words.expected_found_error(word, expected))?;
        return Ok(CallSelection::Chance(percent));
    }
    let (first, last) = match word.split_once("..") {
        None => (parse_digits(word), parse_digits(word)),
        Some((first, "")) => (parse_digits(first), Some(u64::MAX)),
        Some((first, last)) => (parse_digits(first), parse_digits(last)),
    };
    match (first, last) {
        (Some(first), Some(last)) if 1 <= first && first <= last => Ok(CallSelection::Range(first, last)),
        _ => Err(words.expected_found_error(word, expected)),
    }
}

fn parse_effect(words: &mut StatementWords<'_>, statement: &str) -> Result<FaultEffect, ScriptError> {
    Ok(match statement {
        "fail" => FaultEffect::Fail(words.parse_choice(&FaultKind::SCRIPT_WORDS)?),
        "fail_later" => FaultEffect::FailLater(words.parse_choice(&FaultKind::SCRIPT_WORDS)?),
        "delay" => {
            let time = words.parse_duration()?;
            if words.is_finished() {
                FaultEffect::Delay(time)
            } else {
                words.parse_choice(&[("real", FaultEffect::Sleep(time))])?
            }
        }
        "hang" => FaultEffect::Hang(if words.is_finished() { None } else { Some(words.parse_duration()?) }),
        "panic" => FaultEffect::Panic,
        "shorten" => FaultEffect::Shorten,
        _ => FaultEffect::Abort,
    })
}
