//! State that must be the same at the end of a run as at its beginning.

use oarlock_abi as abi;

use crate::kernel_record::KernelUnderTest;
use crate::subject::ConformanceSubject;

/// The state of the plugin and of the process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessSnapshot {
    /// The record of each kernel as text.
    pub(crate) kernels: Vec<String>,
    /// The signals that the process catches or ignores, if the system reveals them.
    pub(crate) signals: Option<Vec<String>>,
}

impl ProcessSnapshot {
    pub(crate) fn capture(subject: &ConformanceSubject) -> Self {
        let describe = |raw: &abi::Kernel| KernelUnderTest { raw }.record_text();
        Self { kernels: subject.kernels.iter().map(describe).collect(), signals: caught_signals() }
    }
}

/// Signals that the C library reserves for itself and starts to catch on demand.
const LIBC_SIGNALS: u64 = 1 << 31 | 1 << 32;

fn caught_signals() -> Option<Vec<String>> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let set = |name: &str| {
        let text = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(u64::from_str_radix(text.trim(), 16).ok()? & !LIBC_SIGNALS)
    };
    let numbers = |set: u64| (0..64).filter(move |bit| set >> bit & 1 == 1).map(|bit| (bit + 1).to_string());
    let (caught, ignored) = (set("SigCgt:")?, set("SigIgn:")?);
    let caught = numbers(caught).map(|number| format!("{number} caught"));
    Some(caught.chain(numbers(ignored).map(|number| format!("{number} ignored"))).collect())
}
