//! Messages of plugins: shown on standard error, and errors and warnings kept for the doctor.
//!
//! A plugin that repeats itself on every call must fill neither terminal nor memory, so only a limited number of its messages
//! is shown and kept; the rest is counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_host::{LogLevel, LogSink};

use crate::arguments::GlobalOptions;
use crate::output::{self, ColorChoice};

/// Messages shown or kept per plugin.
const MAX_MESSAGES: usize = 100;
/// Messages shown per plugin with `--verbose`.
const MAX_VERBOSE_MESSAGES: usize = 10_000;

/// Receives the messages of all plugins.
pub(crate) struct PluginMessages {
    color: ColorChoice,
    /// The least severe level that is shown.
    shown: LogLevel,
    /// Limit per plugin.
    most_shown: usize,
    plugins: Mutex<BTreeMap<String, MessageTally>>,
}

#[derive(Default)]
struct MessageTally {
    /// Messages that qualified to be shown, including those beyond the limit.
    to_show: usize,
    /// The first errors and warnings since the last [`PluginMessages::take_complaints`].
    complaints: Vec<String>,
    /// Errors and warnings beyond the limit.
    more_complaints: usize,
}

struct MessageHandling {
    /// The prefix, such as `warning`.
    word: &'static str,
    /// True if the message is kept as a complaint.
    is_complaint: bool,
    /// True if the user wants to see this level.
    is_shown: bool,
}

impl PluginMessages {
    pub(crate) fn new(global: &GlobalOptions) -> Arc<Self> {
        let (shown, most_shown) = match global.verbose {
            0 => (LogLevel::WARNING, MAX_MESSAGES),
            1 => (LogLevel::INFO, MAX_VERBOSE_MESSAGES),
            _ => (LogLevel::DEBUG, MAX_VERBOSE_MESSAGES),
        };
        Arc::new(Self { color: global.color, shown, most_shown, plugins: Mutex::default() })
    }

    /// Keeps complaints but shows nothing.
    pub(crate) fn new_silent() -> Arc<Self> {
        let (color, shown) = (ColorChoice::Never, LogLevel(0));
        Arc::new(Self { color, shown, most_shown: 0, plugins: Mutex::default() })
    }

    /// Errors and warnings of a plugin since the last call.
    pub(crate) fn take_complaints(&self, plugin: &str) -> Vec<String> {
        let mut plugins = self.lock_tallies();
        let Some(tally) = plugins.get_mut(plugin) else { return Vec::new() };
        let mut taken = std::mem::take(&mut tally.complaints);
        let more = std::mem::take(&mut tally.more_complaints);
        if more > 0 {
            taken.push(format!("… and {more} more"));
        }
        taken
    }

    fn receive_message(
        &self,
        plugin: &str,
        message: &str,
        MessageHandling { word, is_complaint, is_shown }: MessageHandling,
    ) {
        let is_among_first = {
            let mut plugins = self.lock_tallies();
            let tally = plugins.entry(plugin.to_owned()).or_default();
            if is_complaint && tally.complaints.len() < MAX_MESSAGES {
                tally.complaints.push(message.to_owned());
            } else if is_complaint {
                tally.more_complaints += 1;
            }
            tally.to_show += usize::from(is_shown);
            tally.to_show <= self.most_shown
        };
        if is_shown && is_among_first {
            output::print_message(self.color, word, &format!("`{plugin}`: {message}"), None);
        }
    }

    fn lock_tallies(&self) -> MutexGuard<'_, BTreeMap<String, MessageTally>> {
        self.plugins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogSink for PluginMessages {
    fn log(&self, plugin: &str, level: LogLevel, message: &str) {
        self.receive_message(
            plugin,
            message,
            MessageHandling {
                word: level.name().unwrap_or("message"),
                is_complaint: level.0 <= LogLevel::WARNING.0,
                is_shown: level.0 <= self.shown.0,
            },
        );
    }

    fn log_layer_note(&self, layer: &str, message: &str) {
        self.receive_message(
            layer,
            message,
            MessageHandling { word: "note", is_complaint: false, is_shown: self.shown.0 > 0 },
        );
    }
}

/// On drop, reports how many messages were not shown.
pub(crate) struct UnshownNotice(pub(crate) Arc<PluginMessages>);

impl Drop for UnshownNotice {
    fn drop(&mut self) {
        for (plugin, tally) in self.0.lock_tallies().iter() {
            let more = tally.to_show.saturating_sub(self.0.most_shown);
            if more > 0 {
                output::print_message(self.0.color, "note", &format!("`{plugin}`: … and {more} more"), None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_complaints_the_first_are_kept_and_the_rest_is_counted() {
        let messages = PluginMessages::new_silent();
        (0..MAX_MESSAGES + 5).for_each(|at| messages.log("loud", LogLevel::ERROR, &at.to_string()));
        messages.log("calm", LogLevel::WARNING, "once");
        messages.log("calm", LogLevel::INFO, "by the way");
        let taken = messages.take_complaints("loud");
        assert_eq!(
            (taken.len(), taken[0].as_str(), taken[MAX_MESSAGES].as_str()),
            (MAX_MESSAGES + 1, "0", "… and 5 more")
        );
        assert!(messages.take_complaints("loud").is_empty());
        assert_eq!(messages.take_complaints("calm"), ["once"]);
    }
}
