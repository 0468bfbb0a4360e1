//! The launches of one stream that may still be running, oldest first, with events between them.
//!
//! A device reports an asynchronous failure long after the launch that caused it. The first event that reports the
//! failure directly follows the launch that caused it. Between events, every launch back to the last successful event
//! may have caused it.

use std::collections::VecDeque;

use oarlock_host::{PluginDevice, PluginEvent, PluginFailure};

use crate::stream::InternedLabel;

/// The maximum number of launches in a log.
const MAX_LAUNCHES: usize = 256;
/// The maximum number of ops that an error names if it is not known which of them failed.
const MAX_SUSPECTS: usize = 8;

#[derive(Debug)]
struct LoggedLaunch {
    /// The launch count of the stream, including this launch.
    position: u64,
    label: InternedLabel,
    /// The event recorded after it, if any.
    event: Option<PluginEvent>,
}

/// The launches that are not known to be complete.
#[derive(Debug, Default)]
pub(super) struct LaunchLog {
    launches: VecDeque<LoggedLaunch>,
    /// Events to reuse.
    spare: Vec<PluginEvent>,
    /// True if launches were evicted whose outcome is unknown.
    forgot: bool,
}

/// The result of polling events.
#[derive(Debug, Default)]
pub(super) struct PolledProgress {
    /// All work up to this launch is complete or has failed.
    pub(super) passed: u64,
    /// The first failure, and the ops that may have caused it.
    pub(super) failure: Option<(PluginFailure, String)>,
}

impl LaunchLog {
    /// A reused or new event.
    pub(super) fn take_event(&mut self, device: &PluginDevice) -> Result<PluginEvent, PluginFailure> {
        self.spare.pop().map_or_else(|| device.create_event(), Ok)
    }

    /// Makes room for a launch. If the log was full, returns the result of polling.
    pub(super) fn make_room(&mut self) -> Option<PolledProgress> {
        let seen = (self.launches.len() >= MAX_LAUNCHES).then(|| self.poll_events());
        if self.launches.len() >= MAX_LAUNCHES
            && let Some(oldest) = self.launches.pop_front()
        {
            self.forgot = true;
            self.spare.extend(oldest.event);
        }
        seen
    }

    pub(super) fn push_launch(&mut self, position: u64, label: InternedLabel, event: Option<PluginEvent>) {
        self.launches.push_back(LoggedLaunch { position, label, event });
    }

    /// True if an event was recorded after the launch at this position or a later one.
    pub(super) fn has_event_behind(&self, position: u64) -> bool {
        self.launches.iter().rev().any(|launch| launch.event.is_some() && launch.position >= position)
    }

    /// Adds an event behind the last launch.
    pub(super) fn attach_event(&mut self, position: u64, event: PluginEvent) {
        match self.launches.back_mut() {
            Some(last) if last.event.is_none() => {
                last.position = position;
                last.event = Some(event);
            }
            _ => self.launches.push_back(LoggedLaunch {
                position,
                label: InternedLabel::from("unknown work"),
                event: Some(event),
            }),
        }
    }

    /// Polls the events, oldest first, and removes the launches that are complete.
    pub(super) fn poll_events(&mut self) -> PolledProgress {
        let mut seen = PolledProgress::default();
        while let Some(index) = self.launches.iter().position(|launch| launch.event.is_some()) {
            let happened = self.launches[index].event.as_ref().map_or(Ok(true), PluginEvent::has_happened);
            match happened {
                Ok(false) => break,
                Ok(true) => self.forgot = false,
                Err(failure) if seen.failure.is_none() => {
                    let suspects = self.name_suspects(&failure, index + 1);
                    seen.failure = Some((failure, suspects));
                }
                Err(_) => {}
            }
            seen.passed = self.launches[index].position;
            self.drop_first(index + 1);
        }
        seen
    }

    /// Removes the launches up to a position, after a wait for all of them. If the wait failed, returns the op that
    /// caused it.
    pub(super) fn settle_through(&mut self, through: u64, failure: Option<&PluginFailure>) -> Option<String> {
        let before = |log: &Self| log.launches.iter().take_while(|launch| launch.position <= through).count();
        let culprit = failure.map(|failure| {
            let all = self.name_suspects(failure, before(self));
            let found = if failure.is_device_lost() { PolledProgress::default() } else { self.poll_events() };
            let left = self.name_suspects(failure, before(self));
            match found.failure {
                Some((_, culprit)) => culprit,
                // Some devices report a failure only once, and the wait has already received it.
                None if left.is_empty() => all,
                None => left,
            }
        });
        self.drop_first(before(self));
        self.forgot = false;
        culprit
    }

    /// The names of the first `count` launches, for a message.
    fn name_suspects(&self, failure: &PluginFailure, count: usize) -> String {
        // On a lost device every event fails, so events do not show where the failure began.
        let count = if failure.is_device_lost() { self.launches.len() } else { count };
        let mut names: Vec<&str> = Vec::new();
        for launch in self.launches.iter().take(count) {
            if !names.contains(&launch.label.as_str()) {
                names.push(launch.label.as_str());
            }
        }
        let is_certain = names.len() == 1 && !self.forgot;
        let hidden = names.len().saturating_sub(MAX_SUSPECTS);
        names.truncate(MAX_SUSPECTS);
        let mut text = names.join(", ");
        if hidden > 0 {
            text.push_str(&format!(" and {hidden} more"));
        }
        match (is_certain, self.forgot, text.is_empty()) {
            (true, ..) | (_, false, true) => text,
            (_, true, true) => "an earlier launch".to_owned(),
            (_, true, false) => format!("one of {text} or an earlier launch"),
            (_, false, false) => format!("one of {text}"),
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.spare.extend(self.launches.drain(..count).filter_map(|launch| launch.event));
    }
}
