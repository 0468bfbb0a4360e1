//! Breaches of rules: what they say, how often each was seen, and what happens then.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use oarlock_layer::LayerHost;
use oarlock_sdk::{LogLevel, PluginError, Result, abi};

/// Who broke a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreachSide {
    /// The host, or a layer between it and this one.
    Caller,
    /// The plugin, or a layer between it and this one.
    Plugin,
}

/// A rule that a call broke.
#[derive(Clone, Debug)]
pub(crate) struct CallBreach {
    pub(crate) side: BreachSide,
    /// The number of the rule or, for a promise without a number, the slot whose description makes it.
    pub(crate) rule: &'static str,
    /// What was expected and what was found.
    pub(crate) message: String,
}

impl CallBreach {
    pub(crate) fn by_caller(rule: &'static str, message: impl Into<String>) -> Self {
        Self { side: BreachSide::Caller, rule, message: message.into() }
    }

    pub(crate) fn by_plugin(rule: &'static str, message: impl Into<String>) -> Self {
        Self { side: BreachSide::Plugin, rule, message: message.into() }
    }
}

/// What happens at a breach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BreachReaction {
    Log,
    Fail,
    Abort,
}

impl BreachReaction {
    pub(crate) fn from_option(word: Option<&str>) -> Result<Self> {
        match word {
            None | Some("log") => Ok(Self::Log),
            Some("fail") => Ok(Self::Fail),
            Some("abort") => Ok(Self::Abort),
            Some(other) => Err(PluginError::invalid_argument(format!(
                "expected `log`, `fail` or `abort` for `on_breach`, found `{other}`"
            ))),
        }
    }
}

/// Where a breach was found: a slot of a plugin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BreachSite<'a> {
    pub(crate) plugin: &'a str,
    /// The slot and, for a kernel, its op.
    pub(crate) place: &'a str,
    /// The number of the call.
    pub(crate) call: u64,
}

/// All breaches so far.
pub(crate) struct BreachLog {
    host: LayerHost,
    pub(crate) reaction: BreachReaction,
    calls: AtomicU64,
    /// How often each rule was broken at each place.
    counts: Mutex<BTreeMap<(&'static str, String), u64>>,
}

impl BreachLog {
    pub(crate) fn new(host: LayerHost, reaction: BreachReaction) -> Self {
        Self { host, reaction, calls: AtomicU64::new(0), counts: Mutex::default() }
    }

    /// Counts a call, and returns its number.
    pub(crate) fn count_call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a breach, and logs it if it is the first of its rule at its place. Returns its message.
    pub(crate) fn report_breach(&self, site: BreachSite<'_>, breach: &CallBreach) -> String {
        let side = match breach.side {
            BreachSide::Caller => "the caller",
            BreachSide::Plugin => "the plugin",
        };
        let message = format!(
            "`{}` of `{}`, call {}, by {side}: {} (rule {})",
            site.place, site.plugin, site.call, breach.message, breach.rule
        );
        let is_first = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry((breach.rule, site.place.to_owned())).or_insert(0);
            *count += 1;
            *count == 1
        };
        if is_first {
            self.host.log(LogLevel::ERROR, &message);
        }
        if self.reaction == BreachReaction::Abort {
            eprintln!("error: `validate`: {message}");
            std::process::abort();
        }
        message
    }

    /// The error for a call that is refused, or that failed because of a breach.
    pub(crate) fn breach_error(&self, breach: &CallBreach, message: String) -> abi::Error {
        self.host.report_error(&PluginError::precondition_not_met(message).with_rule(breach.rule))
    }

    /// One sentence about all calls.
    pub(crate) fn summary(&self) -> (LogLevel, String) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let breaches: u64 = counts.values().sum();
        let calls = self.calls.load(Ordering::Relaxed);
        let counted = format!(
            "{} in {}",
            count_words(breaches, "breach", "breaches"),
            count_words(calls, "call", "calls")
        );
        if breaches == 0 {
            return (LogLevel::INFO, counted);
        }
        let each: Vec<String> =
            counts.iter().map(|((rule, place), count)| format!("{rule} at `{place}` ({count})")).collect();
        (LogLevel::ERROR, format!("{counted}: {}", each.join(", ")))
    }
}

/// A number with its digits in groups, and its noun.
fn count_words(count: u64, one: &str, many: &str) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::count_words;

    #[test]
    fn numbers_have_their_digits_in_groups() {
        assert_eq!(count_words(0, "breach", "breaches"), "0 breaches");
        assert_eq!(count_words(1, "breach", "breaches"), "1 breach");
        assert_eq!(count_words(1234, "call", "calls"), "1,234 calls");
        assert_eq!(count_words(1_234_567, "call", "calls"), "1,234,567 calls");
    }
}
