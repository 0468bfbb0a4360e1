//! The state of the process that a plugin shares with its program: what it must leave as it was.
//!
//! Descriptors, threads and memory are not part of it: a driver needs some of each.

#![expect(
    unsafe_code,
    reason = "timers and the locale are read with functions of the C library, the mode of the FPU with instructions"
)]

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;

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

/// How floats are rounded, whether subnormal ones are flushed to 0, and what traps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatMode {
    control: u64,
    /// The control word of the x87, which only x86 has.
    legacy: u16,
}

impl std::fmt::Display for FloatMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#06x} and {:#06x}", self.control, self.legacy)
    }
}

/// The bits of MXCSR that are flags of what happened, not a mode.
#[cfg(target_arch = "x86_64")]
const MXCSR_FLAGS: u32 = 0x3F;

impl FloatMode {
    /// The mode of this thread.
    #[cfg(target_arch = "x86_64")]
    pub fn current() -> Self {
        let (mut control, mut legacy) = (0u32, 0u16);
        // SAFETY: the instructions only store the two words.
        unsafe {
            std::arch::asm!(
                "stmxcsr [{control}]", "fnstcw [{legacy}]",
                control = in(reg) &raw mut control, legacy = in(reg) &raw mut legacy,
                options(nostack, preserves_flags)
            );
        }
        Self { control: (control & !MXCSR_FLAGS).into(), legacy }
    }

    /// Makes this the mode of this thread.
    #[cfg(target_arch = "x86_64")]
    pub fn restore(self) {
        let (control, legacy) = (self.control as u32, self.legacy);
        // SAFETY: both words were read from the same registers, so no reserved bit is set.
        unsafe {
            std::arch::asm!(
                "ldmxcsr [{control}]", "fldcw [{legacy}]",
                control = in(reg) &raw const control, legacy = in(reg) &raw const legacy,
                options(nostack, readonly, preserves_flags)
            );
        }
    }

    /// The mode of this thread.
    #[cfg(target_arch = "aarch64")]
    pub fn current() -> Self {
        let control: u64;
        // SAFETY: the instruction only reads the register.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack, preserves_flags))
        };
        Self { control, legacy: 0 }
    }

    /// Makes this the mode of this thread.
    #[cfg(target_arch = "aarch64")]
    pub fn restore(self) {
        // SAFETY: the value was read from the same register, so no reserved bit is set.
        unsafe {
            std::arch::asm!("msr fpcr, {}", in(reg) self.control, options(nomem, nostack, preserves_flags))
        };
    }
}

/// Restores the mode of floats when dropped. It goes around code of plugins that may change it: one that is linked with
/// `-ffast-math` does so while it is loaded.
#[derive(Debug)]
pub struct FloatModeGuard(FloatMode);

impl FloatModeGuard {
    /// The mode before and now, if it changed.
    pub fn change(&self) -> Option<(FloatMode, FloatMode)> {
        let now = FloatMode::current();
        (now != self.0).then_some((self.0, now))
    }

    /// Keeps the mode of this thread as it is now.
    #[expect(clippy::new_without_default, reason = "a guard is made for what it does when dropped")]
    pub fn new() -> Self {
        Self(FloatMode::current())
    }
}

impl Drop for FloatModeGuard {
    fn drop(&mut self) {
        if FloatMode::current() != self.0 {
            self.0.restore();
        }
    }
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

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_guard_brings_back_small_floats_that_were_flushed() {
        let small = std::hint::black_box(1e-42f32);
        {
            let _guard = FloatModeGuard::new();
            let mut flushing = FloatMode::current();
            flushing.control |= 0x8040;
            flushing.restore();
            assert_eq!(std::hint::black_box(small) * std::hint::black_box(1.0), 0.0);
        }
        assert_eq!(std::hint::black_box(small) * std::hint::black_box(1.0), small);
    }
}
