//! State that must be the same at the end of a run as at its beginning.

use crate::kernel_record::KernelUnderTest;
use crate::process_state::ProcessState;
use crate::subject::ConformanceSubject;

/// The state of the plugin and of the process at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunSnapshot {
    /// The record of each kernel as text.
    pub(crate) kernels: Vec<String>,
    pub(crate) process: ProcessState,
    /// The open descriptors, if the system reveals them.
    pub(crate) descriptors: Option<usize>,
}

impl RunSnapshot {
    pub(crate) fn capture(subject: &ConformanceSubject) -> Self {
        let listed = std::fs::read_dir("/proc/self/fd").ok();
        Self {
            kernels: subject.kernels.iter().map(|raw| KernelUnderTest { raw }.record_text()).collect(),
            process: ProcessState::capture(),
            descriptors: listed.map(Iterator::count),
        }
    }
}
