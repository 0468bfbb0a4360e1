//! Watches over a call that takes long.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::child_life::ChildLife;
use crate::wire::generated::slot_name;

/// How long a thread sleeps before it looks whether the child is alive.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The child is ended if its heart does not beat for so many looks, while somebody waits for it.
const SILENT_LOOKS: u32 = 150;

/// The patience of a thread that waits for the child.
pub(crate) struct CallPatience<'a> {
    life: &'a ChildLife,
    /// Grows as long as the child is alive.
    heartbeat: &'a AtomicU32,
    slot: u32,
    limit: Option<Duration>,
    /// When the thread looked first, which is soon after the call began.
    began: Option<Instant>,
    last_beat: u32,
    silent: u32,
}

impl<'a> CallPatience<'a> {
    pub(crate) fn new(
        life: &'a ChildLife,
        heartbeat: &'a AtomicU32,
        slot: u32,
        limit: Option<Duration>,
    ) -> Self {
        Self { life, heartbeat, slot, limit, began: None, last_beat: 0, silent: 0 }
    }

    /// Called every [`LOOK_AGAIN`]: ends a child that is stopped, or whose call exceeds its limit.
    pub(crate) fn look(&mut self) {
        let beat = self.heartbeat.load(Ordering::Relaxed);
        // Looks are counted instead of time, which also passes while this process is stopped.
        self.silent = if beat == self.last_beat { self.silent + 1 } else { 0 };
        self.last_beat = beat;
        let began = *self.began.get_or_insert_with(Instant::now);
        if self.silent >= SILENT_LOOKS {
            self.life.condemn(|| "it gave no sign of life".to_owned());
        }
        if let Some(limit) = self.limit
            && began.elapsed() > limit
        {
            self.life
                .condemn(|| format!("`{}` took longer than the limit of {limit:?}", slot_name(self.slot)));
        }
    }
}
