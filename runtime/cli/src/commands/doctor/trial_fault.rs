//! What can go wrong in the trial of a device.

use oarlock_core::Error;
use oarlock_host::PluginFailure;

/// The reason a step of a trial failed.
#[derive(Clone, Debug)]
pub(super) enum TrialFault {
    /// The plugin or the core reported an error.
    Reported(Error),
    /// No error was reported, but the result is wrong.
    WrongResult {
        found: String,
        /// The plugin whose kernel ran; `None` if no kernel was involved.
        plugin: Option<String>,
    },
}

impl TrialFault {
    pub(super) fn wrong_result(found: impl Into<String>) -> Self {
        Self::WrongResult { found: found.into(), plugin: None }
    }
}

impl From<Error> for TrialFault {
    fn from(error: Error) -> Self {
        Self::Reported(error)
    }
}

impl From<PluginFailure> for TrialFault {
    fn from(failure: PluginFailure) -> Self {
        Self::Reported(failure.into())
    }
}
