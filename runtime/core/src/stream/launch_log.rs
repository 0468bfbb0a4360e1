//! The launches of one stream that are not known to have happened, oldest first, with events between them.
//!
//! An asynchronous failure is told long after the launch that caused it. The first event that reports the failure stands
//! right behind the culprit; where launches have no event behind them, all since the last good event may be to blame.

use std::collections::VecDeque;

use oarlock_host::{PluginDevice, PluginEvent, PluginFailure};

use crate::stream::InternedLabel;

/// How many launches are kept.
const MAX_LAUNCHES: usize = 256;
/// How many ops an error names when it cannot tell which of them failed.
const MAX_SUSPECTS: usize = 8;

/// A launch.
#[derive(Debug)]
struct LoggedLaunch {
    /// How many launches the stream had with this one.
    position: u64,
    label: InternedLabel,
    /// The event behind it, if there is one.
    event: Option<PluginEvent>,
}

/// The launches that are not known to have happened.
#[derive(Debug, Default)]
pub(super) struct LaunchLog {
    launches: VecDeque<LoggedLaunch>,
    /// Events that nobody waits for any more.
    spare: Vec<PluginEvent>,
    /// Whether launches were dropped of which nobody knows how they went.
    forgot: bool,
}

/// What asking the events showed.
#[derive(Debug, Default)]
pub(super) struct PolledProgress {
    /// Everything up to here has happened, or failed.
    pub(super) passed: u64,
    /// The first failure, and the ops that may have caused it.
    pub(super) failure: Option<(PluginFailure, String)>,
}

impl LaunchLog {
    /// An event to record.
    pub(super) fn take_event(&mut self, device: &PluginDevice) -> Result<PluginEvent, PluginFailure> {
        self.spare.pop().map_or_else(|| device.create_event(), Ok)
    }

    /// Makes room for a launch; what asking after old ones showed when there was none.
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

    /// Notes a launch.
    pub(super) fn push_launch(&mut self, position: u64, label: InternedLabel, event: Option<PluginEvent>) {
        self.launches.push_back(LoggedLaunch { position, label, event });
    }

    /// Whether an event stands behind the launch with this position.
    pub(super) fn has_event_behind(&self, position: u64) -> bool {
        self.launches.iter().rev().any(|launch| launch.event.is_some() && launch.position >= position)
    }

    /// Puts an event behind the last launch.
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

    /// Asks the events, oldest first, and forgets the launches that have happened.
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

    /// Forgets the launches up to a position after all work up to there was waited for; who caused the failure of the
    /// wait, if it failed.
    pub(super) fn settle_through(&mut self, through: u64, failure: Option<&PluginFailure>) -> Option<String> {
        let before = |log: &Self| log.launches.iter().take_while(|launch| launch.position <= through).count();
        let culprit = failure.map(|failure| {
            let all = self.name_suspects(failure, before(self));
            let found = if failure.is_device_lost() { PolledProgress::default() } else { self.poll_events() };
            let left = self.name_suspects(failure, before(self));
            match found.failure {
                Some((_, culprit)) => culprit,
                // A device that tells a failure only once told it to the wait.
                None if left.is_empty() => all,
                None => left,
            }
        });
        self.drop_first(before(self));
        self.forgot = false;
        culprit
    }

    /// The names of the first so many launches, as one text.
    fn name_suspects(&self, failure: &PluginFailure, count: usize) -> String {
        // Every event of a lost device fails, so none of them says where it began.
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
