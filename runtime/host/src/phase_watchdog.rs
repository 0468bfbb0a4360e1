//! Names a plugin that hangs, in a program that nobody watches from outside.
//!
//! The thread that runs the plugin is stuck, so another one says it. It exists only while phases follow each other closely.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{LogLevel, LogSink, PhaseObserver, PhaseStart, PluginPhase};

/// How long the thread waits for the next phase before it ends.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// Logs a warning when a plugin takes longer for a phase than it may.
pub struct PhaseWatchdog {
    log: Arc<dyn LogSink>,
    state: Arc<SharedWatch>,
}

#[derive(Default)]
struct SharedWatch {
    phases: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchState {
    /// The phases that have begun and not ended, the innermost last.
    running: Vec<WatchedPhase>,
    has_thread: bool,
}

struct WatchedPhase {
    file: PathBuf,
    phase: PluginPhase,
    limit: Duration,
    /// `None` once it was reported.
    deadline: Option<Instant>,
}

impl PhaseWatchdog {
    /// Reports to `log`, on another thread than the one that starts the host.
    pub fn new(log: Arc<dyn LogSink>) -> Self {
        Self { log, state: Arc::default() }
    }
}

impl PhaseObserver for PhaseWatchdog {
    fn on_phase_begin(&self, start: &PhaseStart<'_>) {
        let PhaseStart { file, phase, limit, .. } = *start;
        let deadline = Instant::now().checked_add(limit);
        let mut state = self.state.lock_state();
        state.running.push(WatchedPhase { file: file.to_path_buf(), phase, limit, deadline });
        if !state.has_thread {
            let (log, shared) = (self.log.clone(), self.state.clone());
            let thread = std::thread::Builder::new().name("plugin watchdog".to_owned());
            // Without a thread, a plugin that hangs is not named; that is no reason not to start it.
            state.has_thread = thread.spawn(move || shared.watch_phases(&*log)).is_ok();
        }
        drop(state);
        self.state.changed.notify_all();
    }

    fn on_phase_end(&self) {
        self.state.lock_state().running.pop();
        self.state.changed.notify_all();
    }
}

impl SharedWatch {
    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for phases to exceed their limits, until there are none for a while.
    fn watch_phases(&self, log: &dyn LogSink) {
        let mut state = self.lock_state();
        loop {
            let now = Instant::now();
            let is_idle = state.running.is_empty();
            let deadline = state.running.last().and_then(|phase| phase.deadline);
            if let Some(phase) = state.running.last_mut().filter(|_| deadline.is_some_and(|due| due <= now)) {
                phase.deadline = None;
                let message = format!(
                    "`{}` has not returned for {} ms while {}; end the program if this lasts, and start it without the plugin",
                    phase.file.display(),
                    phase.limit.as_millis(),
                    phase.phase
                );
                drop(state);
                log.log("host", LogLevel::WARNING, &message);
                state = self.lock_state();
                continue;
            }
            let wait = deadline.map_or(IDLE_TIME, |due| due.duration_since(now));
            let (next, waited) =
                self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if waited.timed_out() && is_idle && state.running.is_empty() {
                state.has_thread = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct SendingLog(Mutex<Sender<String>>);

    impl LogSink for SendingLog {
        fn log(&self, _plugin: &str, _level: LogLevel, message: &str) {
            _ = self.0.lock().expect("no thread panics").send(message.to_owned());
        }
    }

    #[test]
    fn a_phase_that_takes_too_long_is_named_once_and_one_that_ends_is_not() {
        let (sender, messages) = channel();
        let watchdog = PhaseWatchdog::new(Arc::new(SendingLog(Mutex::new(sender))));
        let begin = |file: &str, phase, limit| {
            watchdog.on_phase_begin(&PhaseStart { file: Path::new(file), phase, limit, layers: &[] });
        };
        begin("/x/libquick.so", PluginPhase::Load, Duration::from_secs(3600));
        watchdog.on_phase_end();
        begin("/x/libslow.so", PluginPhase::Initialize, Duration::from_millis(1));
        let message = messages.recv().expect("a warning");
        assert!(
            message.starts_with("`/x/libslow.so` has not returned for 1 ms while its devices"),
            "{message}"
        );
        watchdog.on_phase_end();
        begin("/x/libnext.so", PluginPhase::Unload, Duration::from_millis(1));
        assert!(messages.recv().expect("a warning").starts_with("`/x/libnext.so`"));
        watchdog.on_phase_end();
    }
}
