//! Watches trials from another thread, so that a device that never answers is told and not waited for.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use oarlock_host::{Device, Plugin};

use super::trial::{self, Fault, Follow, Step};
use crate::messages::Messages;
use crate::progress::Progress;

/// How long a step may take.
pub(super) const LIMIT: Duration = Duration::from_secs(10);
/// How long a step takes before progress is shown.
const SHORT: Duration = Duration::from_millis(400);

/// What a step of a trial came to.
pub(crate) struct Checked {
    pub(crate) step: Step,
    pub(crate) outcome: Result<String, Cause>,
}

/// Why a step failed.
pub(crate) enum Cause {
    /// It went wrong.
    Fault(Fault),
    /// It did not end.
    NoAnswer,
    /// The thread that did it is gone.
    Died,
}

enum News {
    Begins(Step),
    Ends(Step, Result<String, Fault>),
}

/// Tries a device. When a step does not end in time its thread is left behind, together with all it uses.
pub(crate) fn try_device(device: &Device, plugins: &[Arc<Plugin>], messages: &Arc<Messages>) -> Vec<Checked> {
    let (sender, receiver) = channel();
    let mut reporter =
        Reporter { sender, messages: messages.clone(), plugin: device.plugin().info().name.clone() };
    let (on_thread, plugins) = (device.clone(), plugins.to_vec());
    let thread = std::thread::Builder::new()
        .name(format!("trial of {device}"))
        .spawn(move || trial::run(&on_thread, &plugins, &mut reporter));
    match thread {
        Ok(thread) => {
            let checked = watch(&receiver, &device.to_string());
            let is_stuck = checked.last().is_some_and(|last| matches!(last.outcome, Err(Cause::NoAnswer)));
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
    let mut progress = Progress::default();
    loop {
        let mut heard = news.recv_timeout(SHORT);
        if matches!(heard, Err(RecvTimeoutError::Timeout)) {
            progress.show(&format!("{device}: {} …", running.name()));
            heard = news.recv_timeout(LIMIT - SHORT);
            progress.clear();
        }
        match heard {
            Ok(News::Begins(step)) => running = step,
            Ok(News::Ends(step, outcome)) => {
                checked.push(Checked { step, outcome: outcome.map_err(Cause::Fault) });
                if step == Step::GiveBack {
                    return checked;
                }
            }
            Err(error) => {
                let cause = if error == RecvTimeoutError::Timeout { Cause::NoAnswer } else { Cause::Died };
                checked.push(Checked { step: running, outcome: Err(cause) });
                return checked;
            }
        }
    }
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
