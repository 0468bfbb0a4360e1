//! What the suite is to run, and how.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exceptions::ConformanceExceptions;
use crate::process_state::ProcessState;

/// What to run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuiteSettings {
    /// The time that a check, or a part of one that says what it does, may take before the suite gives up on the plugin.
    pub patience: Duration,
    /// The name of the only profile to check; `None` checks all.
    pub profile: Option<String>,
    /// What the manifest excepts.
    pub exceptions: ConformanceExceptions,
    /// The process before the plugin was loaded, if the caller knows it.
    #[serde(skip)]
    pub process_before: Option<ProcessState>,
}

impl Default for SuiteSettings {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(60),
            profile: None,
            exceptions: ConformanceExceptions::default(),
            process_before: None,
        }
    }
}
