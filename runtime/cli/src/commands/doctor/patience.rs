//! Watches trials from another thread, so that a device that never answers is told and not waited for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use oarlock_core::Runtime;
use oarlock_host::Device;

use super::cause::Cause;
use super::trial::{self, Fault, Follow, Step};
use crate::messages::Messages;
use crate::progress::Progress;

/// How long a step may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long a computation may take: a device may compile kernels first.
pub(super) const LIMIT_OF_COMPUTATION: Duration = Duration::from_secs(60);
/// How long something takes before progress is shown.
const SHORT: Duration = Duration::from_millis(400);

/// What a step of a trial came to.
pub(super) struct Checked {
    pub(super) step: Step,
    pub(super) outcome: Result<String, Cause>,
}

enum News {
    Begins(Step),
    Ends(Step, Result<String, Fault>),
}

/// Tries a device. When a step does not end in time its thread is left behind, together with all it uses.
pub(super) fn try_device(device: &Device, runtime: &Arc<Runtime>, messages: &Arc<Messages>) -> Vec<Checked> {
    let (sender, receiver) = channel();
    let mut reporter =
        Reporter { sender, messages: messages.clone(), plugin: device.plugin().info().name.clone() };
    let (on_thread, runtime) = (device.clone(), runtime.clone());
    let thread = std::thread::Builder::new()
        .name(format!("trial of {device}"))
        .spawn(move || trial::run(&on_thread, &runtime, &mut reporter));
    match thread {
        Ok(thread) => {
            let checked = watch(&receiver, &device.to_string());
            let is_stuck = checked.last().is_some_and(|last| matches!(last.outcome, Err(Cause::NoAnswer(_))));
            if !is_stuck {
                // What there was to tell about a panic was told already.
                _ = thread.join();
            }
            checked
        }
        Err(_) => vec![Checked { step: Step::Answers, outcome: Err(Cause::Died) }],
    }
}

fn watch(news: &Receiver<News>, device: &str) -> Vec<Checked> {
    let mut checked = Vec::new();
    let mut running = Step::Answers;
    loop {
        let limit = if running == Step::Compute { LIMIT_OF_COMPUTATION } else { LIMIT };
        match answer(news, limit, &format!("{device}: {}", running.name())) {
            Ok(News::Begins(step)) => running = step,
            Ok(News::Ends(step, outcome)) => {
                checked.push(Checked { step, outcome: outcome.map_err(Cause::Fault) });
                if step == Step::GiveBack {
                    return checked;
                }
            }
            Err(cause) => {
                checked.push(Checked { step: running, outcome: Err(cause) });
                return checked;
            }
        }
    }
}

/// Waits so long for an answer, and shows what it is that takes long.
pub(super) fn answer<T>(answers: &Receiver<T>, limit: Duration, what: &str) -> Result<T, Cause> {
    let mut heard = answers.recv_timeout(SHORT.min(limit));
    if matches!(heard, Err(RecvTimeoutError::Timeout)) {
        let mut progress = Progress::default();
        progress.show(&format!("{what} …"));
        heard = answers.recv_timeout(limit.saturating_sub(SHORT));
        progress.clear();
    }
    heard.map_err(|error| match error {
        RecvTimeoutError::Timeout => Cause::NoAnswer(limit),
        RecvTimeoutError::Disconnected => Cause::Died,
    })
}

struct Reporter {
    sender: Sender<News>,
    messages: Arc<Messages>,
    plugin: String,
}

impl Follow for Reporter {
    fn begins(&mut self, step: Step) {
        // Nobody listens any more once the trial was given up.
        _ = self.sender.send(News::Begins(step));
    }

    fn ends(&mut self, step: Step, outcome: Result<String, Fault>) {
        _ = self.sender.send(News::Ends(step, outcome));
    }

    fn complaints(&mut self) -> Vec<String> {
        self.messages.take_complaints(&self.plugin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_and_who_is_gone_are_told_apart() {
        let (sender, receiver) = channel();
        assert!(matches!(answer(&receiver, Duration::ZERO, "x"), Err(Cause::NoAnswer(Duration::ZERO))));
        sender.send(7).unwrap();
        assert!(matches!(answer(&receiver, Duration::ZERO, "x"), Ok(7)));
        drop(sender);
        assert!(matches!(answer(&receiver, LIMIT, "x"), Err(Cause::Died)));
    }
}
