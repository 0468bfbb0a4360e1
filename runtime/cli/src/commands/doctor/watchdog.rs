//! Runs trials on another thread, so that a device that hangs is reported and does not hang the command.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use oarlock_core::Runtime;
use oarlock_host::PluginDevice;

use super::diagnosis::FailureCause;
use super::trial::{self, TrialObserver, TrialStep};
use super::trial_fault::TrialFault;
use crate::messages::PluginMessages;
use crate::progress::ProgressLine;

/// Limit for one step.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a computation, during which a device may compile kernels.
pub(super) const COMPUTATION_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before progress is shown.
const PROGRESS_DELAY: Duration = Duration::from_millis(400);

pub(super) struct StepOutcome {
    pub(super) step: TrialStep,
    pub(super) outcome: Result<String, FailureCause>,
}

enum TrialEvent {
    Begins(TrialStep),
    Ends(TrialStep, Result<String, TrialFault>),
}

/// Tries a device. If a step times out, its thread is abandoned with everything it uses.
pub(super) fn try_device(
    device: &PluginDevice,
    runtime: &Arc<Runtime>,
    messages: &Arc<PluginMessages>,
) -> Vec<StepOutcome> {
    let (sender, receiver) = channel();
    let mut reporter =
        TrialReporter { sender, messages: messages.clone(), plugin: device.plugin().info().name.clone() };
    let (on_thread, runtime) = (device.clone(), runtime.clone());
    let thread = std::thread::Builder::new()
        .name(format!("trial of {device}"))
        .spawn(move || trial::run_trial(&on_thread, &runtime, &mut reporter));
    match thread {
        Ok(thread) => {
            let checked = watch_trial(&receiver, &device.to_string());
            let is_stuck =
                checked.last().is_some_and(|last| matches!(last.outcome, Err(FailureCause::NoAnswer(_))));
            if !is_stuck {
                // The panic hook has already reported a panic.
                _ = thread.join();
            }
            checked
        }
        Err(_) => vec![StepOutcome { step: TrialStep::Answers, outcome: Err(FailureCause::Died) }],
    }
}

fn watch_trial(events: &Receiver<TrialEvent>, device: &str) -> Vec<StepOutcome> {
    let mut checked = Vec::new();
    let mut running = TrialStep::Answers;
    loop {
        let limit = if running == TrialStep::Compute { COMPUTATION_TIMEOUT } else { STEP_TIMEOUT };
        match wait_for_answer(events, limit, &format!("{device}: {}", running.step_name())) {
            Ok(TrialEvent::Begins(step)) => running = step,
            Ok(TrialEvent::Ends(step, outcome)) => {
                checked.push(StepOutcome { step, outcome: outcome.map_err(FailureCause::Fault) });
                if step == TrialStep::GiveBack {
                    return checked;
                }
            }
            Err(cause) => {
                checked.push(StepOutcome { step: running, outcome: Err(cause) });
                return checked;
            }
        }
    }
}

/// Waits for an answer until the timeout, and shows what takes long.
pub(super) fn wait_for_answer<T>(
    answers: &Receiver<T>,
    limit: Duration,
    what: &str,
) -> Result<T, FailureCause> {
    let mut heard = answers.recv_timeout(PROGRESS_DELAY.min(limit));
    if matches!(heard, Err(RecvTimeoutError::Timeout)) {
        let mut progress = ProgressLine::default();
        progress.show_text(&format!("{what} …"));
        heard = answers.recv_timeout(limit.saturating_sub(PROGRESS_DELAY));
        progress.clear_line();
    }
    heard.map_err(|error| match error {
        RecvTimeoutError::Timeout => FailureCause::NoAnswer(limit),
        RecvTimeoutError::Disconnected => FailureCause::Died,
    })
}

struct TrialReporter {
    sender: Sender<TrialEvent>,
    messages: Arc<PluginMessages>,
    plugin: String,
}

impl TrialObserver for TrialReporter {
    fn on_step_begin(&mut self, step: TrialStep) {
        // Sending fails after the trial was given up.
        _ = self.sender.send(TrialEvent::Begins(step));
    }

    fn on_step_end(&mut self, step: TrialStep, outcome: Result<String, TrialFault>) {
        _ = self.sender.send(TrialEvent::Ends(step, outcome));
    }

    fn take_complaints(&mut self) -> Vec<String> {
        self.messages.take_complaints(&self.plugin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_and_who_is_gone_are_told_apart() {
        let (sender, receiver) = channel();
        assert!(matches!(
            wait_for_answer(&receiver, Duration::ZERO, "x"),
            Err(FailureCause::NoAnswer(Duration::ZERO))
        ));
        sender.send(7).unwrap();
        assert!(matches!(wait_for_answer(&receiver, Duration::ZERO, "x"), Ok(7)));
        drop(sender);
        assert!(matches!(wait_for_answer(&receiver, STEP_TIMEOUT, "x"), Err(FailureCause::Died)));
    }
}
