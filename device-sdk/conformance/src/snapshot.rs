//! What must be the same at the end of a run as at its beginning.

use oarlock_abi as abi;

use crate::kernel_call::Kernel;
use crate::subject::Subject;

/// How the plugin and the process were at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Each kernel, as its record reads.
    pub(crate) kernels: Vec<String>,
    /// Which signals the process catches and ignores, where the system says so.
    pub(crate) signals: Option<Vec<String>>,
}

impl Snapshot {
    pub(crate) fn take(subject: &Subject) -> Self {
        let describe = |raw: &abi::Kernel| Kernel { raw }.describe();
        Self { kernels: subject.kernels.iter().map(describe).collect(), signals: signals() }
    }
}

fn signals() -> Option<Vec<String>> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let is_about_handlers = |line: &&str| line.starts_with("SigCgt:") || line.starts_with("SigIgn:");
    Some(status.lines().filter(is_about_handlers).map(str::to_owned).collect())
}
