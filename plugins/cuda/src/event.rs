//! Events of the driver.

#![expect(unsafe_code, reason = "events are C objects")]

use std::sync::Arc;

use cudarc::driver::result::event;
use cudarc::driver::sys::{CUevent, CUevent_flags};
use oarlock_portable::Event;
use oarlock_sdk::Result;

use crate::context::{Context, Handle};
use crate::error::is_ready;
use crate::gpu::Cuda;
use crate::queue::Queue;

/// One event.
pub(crate) struct Point {
    context: Arc<Context>,
    pub(crate) raw: Handle<CUevent>,
}

impl Point {
    /// An event that knows its time.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let entered = context.enter()?;
        let raw = entered.check("cuEventCreate", event::create(CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(Self { context: Arc::clone(context), raw: Handle(raw) })
    }
}

impl Event<Cuda> for Point {
    fn record(&self, queue: &Arc<Queue>) -> Result<()> {
        queue.mark("cuEventRecord", |queue| {
            // SAFETY: stream and event are alive and of one context.
            unsafe { event::record(self.raw.0, queue) }
        })
    }

    fn has_happened(&self) -> Result<bool> {
        let entered = self.context.enter()?;
        // SAFETY: the event is alive.
        entered.check("cuEventQuery", is_ready(unsafe { event::query(self.raw.0) }))
    }

    fn wait(&self) -> Result<()> {
        let entered = self.context.enter()?;
        // SAFETY: the event is alive.
        entered.check("cuEventSynchronize", unsafe { event::synchronize(self.raw.0) })
    }

    fn since(&self, start: &Self) -> Result<u64> {
        let entered = self.context.enter()?;
        // SAFETY: both events are alive.
        let elapsed = unsafe { event::elapsed(start.raw.0, self.raw.0) };
        let milliseconds = entered.check("cuEventElapsedTime", elapsed)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // There is nobody to tell of a failure.
        let _ = self.context.give_back("cuEventDestroy", || {
            // SAFETY: the event is alive and not used after this; what waits for it goes on waiting.
            unsafe { event::destroy(self.raw.0) }
        });
    }
}
