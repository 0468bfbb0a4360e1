//! The state of the process that a plugin shares with its program: what it must leave as it was.
//!
//! Descriptors, threads and memory are not part of it: a driver needs some of each.

#![expect(unsafe_code, reason = "timers and the locale are read with functions of the C library")]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;

use crate::float_mode::FloatMode;

/// Facts about the process at one moment, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessState {
    facts: BTreeMap<String, String>,
}

/// Signals that the C library reserves for itself and starts to catch on demand.
const LIBC_SIGNALS: u64 = 1 << 31 | 1 << 32;

impl ProcessState {
    /// Reads the state. What the system does not reveal is left out.
    pub fn capture() -> Self {
        let mut state = Self::default();
        state.add_status();
        state.add("the rounding and flushing of floats", FloatMode::current().to_string());
        state.add_known(
            "the working directory",
            std::env::current_dir().map(|path| path.display().to_string()),
        );
        state.add_known("the limits", std::fs::read_to_string("/proc/self/limits"));
        for (number, name) in [(0, "standard input"), (1, "standard output"), (2, "standard error")] {
            let file = std::fs::metadata(format!("/proc/self/fd/{number}"));
            let found =
                file.map_or("closed".to_owned(), |file| format!("file {} of {}", file.ino(), file.dev()));
            state.add(name, found);
        }
        let timers = [
            (libc::ITIMER_REAL, "the real timer"),
            (libc::ITIMER_VIRTUAL, "the virtual timer"),
            (libc::ITIMER_PROF, "the profiling timer"),
        ];
        for (timer, name) in timers {
            // SAFETY: zeros are a timer that is off, and the function writes one.
            let is_set = unsafe {
                let mut left: libc::itimerval = std::mem::zeroed();
                libc::getitimer(timer, &raw mut left) == 0
                    && (left.it_value.tv_sec, left.it_value.tv_usec) != (0, 0)
            };
            state.add(name, if is_set { "set" } else { "off" }.to_owned());
        }
        // SAFETY: without a name, the function only returns the current one, which stays valid until the next call.
        let locale = unsafe {
            let name = libc::setlocale(libc::LC_ALL, std::ptr::null());
            (!name.is_null()).then(|| std::ffi::CStr::from_ptr(name).to_string_lossy().into_owned())
        };
        state.add("the locale", locale.unwrap_or_default());
        for (name, value) in std::env::vars_os() {
            // Values may be secret.
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            let name = format!("the variable `{}`", name.to_string_lossy());
            state.add(&name, format!("a value with the hash {:08x}", hasher.finish() as u32));
        }
        state
    }

    fn add(&mut self, name: &str, value: String) {
        self.facts.insert(name.to_owned(), value);
    }

    fn add_known<E>(&mut self, name: &str, value: Result<String, E>) {
        if let Ok(value) = value {
            self.add(name, value);
        }
    }

    fn add_status(&mut self) {
        let Ok(status) = std::fs::read_to_string("/proc/thread-self/status") else { return };
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let signals = |name: &str| {
            let set = u64::from_str_radix(line(name)?, 16).ok()? & !LIBC_SIGNALS;
            let numbers: Vec<String> =
                (0..64).filter(|bit| set >> bit & 1 == 1).map(|bit: u32| (bit + 1).to_string()).collect();
            Some(if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") })
        };
        let facts = [
            ("the umask", line("Umask:").map(str::to_owned)),
            ("the signals that are blocked", signals("SigBlk:")),
            ("the signals that are ignored", signals("SigIgn:")),
            ("the signals that are caught", signals("SigCgt:")),
        ];
        for (name, value) in facts {
            self.add_known(name, value.ok_or(()));
        }
    }

    /// What differs in a later state, each as a sentence.
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> =
            self.facts.keys().chain(later.facts.keys()).collect();
        let change = |name: &&String| {
            let (before, now) = (self.facts.get(*name), later.facts.get(*name));
            let shown = |value: Option<&String>| value.map_or("nothing".to_owned(), |value| shorten(value));
            (before != now).then(|| match name.as_str() {
                "the limits" => changed_limits(before, now),
                _ => format!("expected {name} to stay {}, found {}", shown(before), shown(now)),
            })
        };
        names.iter().filter_map(change).collect()
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(200).collect()
}

/// The first line of the table of limits that differs.
fn changed_limits(before: Option<&String>, now: Option<&String>) -> String {
    let lines = |table: Option<&String>| -> Vec<String> {
        let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        table.map(|table| table.lines().map(squeeze).collect()).unwrap_or_default()
    };
    let (before, now) = (lines(before), lines(now));
    let pair = before.iter().zip(&now).find(|(before, now)| before != now);
    let (before, now) = pair.map_or(("", ""), |(before, now)| (before.as_str(), now.as_str()));
    format!("expected the limit `{before}` to stay, found `{now}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_differs_from_itself_in_nothing_and_from_another_in_what_changed() {
        let before = ProcessState::capture();
        assert_eq!(before.changes(&before), [""; 0]);
        let mut later = before.clone();
        later.add("the umask", "0000".to_owned());
        later.facts.remove("the locale");
        let changes = before.changes(&later);
        assert!(changes.len() == 2 && changes[1].ends_with("found 0000"), "{changes:?}");
    }
}
