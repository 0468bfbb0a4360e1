//! Runs the conformance suite on a loaded plugin.

#![expect(unsafe_code, reason = "the suite trusts the tables it is given")]

use std::sync::Arc;
use std::time::Duration;

use oarlock_abi as abi;
use oarlock_conformance::{ConformanceReport, ConformanceSubject, ErrorText};

use crate::LoadedPlugin;
use crate::services::errors::take_failure;

/// The rule that every error comes from the host.
const MADE_BY_THE_HOST: &str = "R-1";

impl LoadedPlugin {
    /// Runs the conformance suite on the plugin; `progress` gets the name of each check before it starts. `None` for a plugin
    /// without devices, for which the suite has no checks. Each check may take as long as `patience`.
    ///
    /// The plugin may end the process or print, so a program that must survive this runs it in a child process.
    pub fn check_conformance(
        self: &Arc<Self>,
        patience: Duration,
        progress: &mut dyn FnMut(&str),
    ) -> Option<ConformanceReport> {
        let subject = self.conformance_subject()?;
        // SAFETY: the tables were checked when the plugin was loaded, and the subject keeps the plugin.
        Some(unsafe { oarlock_conformance::run_suite(subject, patience, progress) })
    }

    fn conformance_subject(self: &Arc<Self>) -> Option<ConformanceSubject> {
        let core = self.table_calls().core?;
        let owner = Arc::clone(self);
        let read_error = move |error: abi::Error| {
            let failure = take_failure(error);
            let is_unknown = failure.origin != owner.info().name && failure.rule == MADE_BY_THE_HOST;
            ErrorText {
                code: failure.code,
                breach: is_unknown.then(|| failure.message.clone()),
                message: failure.message.clone(),
            }
        };
        Some(ConformanceSubject {
            name: self.info().name.clone(),
            version: self.info().version.clone(),
            device_type: self.info().device_type.clone().unwrap_or_default(),
            context: core.context,
            core: core.table,
            asynchronous: self.table_calls().r#async.map(|calls| calls.table),
            kernels: self.kernels().iter().map(|kernel| kernel.calls.table).collect(),
            devices: self.device_ids().to_vec(),
            read_error: Box::new(read_error),
        })
    }
}
