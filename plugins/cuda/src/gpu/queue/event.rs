//! Events of the driver.

#![expect(unsafe_code, reason = "events are C objects")]

use std::sync::Arc;

use cudarc::driver::result::event;
use cudarc::driver::sys::{CUevent, CUevent_flags};
use oarlock_portable::GpuEvent;
use oarlock_sdk::Result;

use super::CudaQueue;
use crate::context::{DriverHandle, PrimaryContext};
use crate::error::is_complete;
use crate::gpu::CudaGpu;

pub(crate) struct CudaEvent {
    context: Arc<PrimaryContext>,
    pub(crate) raw: DriverHandle<CUevent>,
}

impl CudaEvent {
    /// Creates an event with timing.
    pub(crate) fn new(context: &Arc<PrimaryContext>) -> Result<Self> {
        let entered = context.enter_context()?;
        let raw = entered.check_result("cuEventCreate", event::create(CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(Self { context: Arc::clone(context), raw: DriverHandle(raw) })
    }
}

impl GpuEvent<CudaGpu> for CudaEvent {
    fn record_on_queue(&self, queue: &Arc<CudaQueue>) -> Result<()> {
        queue.record_point("cuEventRecord", |queue| {
            // SAFETY: stream and event are alive and belong to one context.
            unsafe { event::record(self.raw.0, queue) }
        })
    }

    fn has_happened(&self) -> Result<bool> {
        let entered = self.context.enter_context()?;
        // SAFETY: the event is alive.
        entered.check_result("cuEventQuery", is_complete(unsafe { event::query(self.raw.0) }))
    }

    fn wait_until_happened(&self) -> Result<()> {
        let entered = self.context.enter_context()?;
        // SAFETY: the event is alive.
        entered.check_result("cuEventSynchronize", unsafe { event::synchronize(self.raw.0) })
    }

    fn elapsed_since(&self, start: &Self) -> Result<u64> {
        let entered = self.context.enter_context()?;
        // SAFETY: both events are alive.
        let elapsed = unsafe { event::elapsed(start.raw.0, self.raw.0) };
        let milliseconds = entered.check_result("cuEventElapsedTime", elapsed)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // `drop` cannot report a failure.
        let _ = self.context.release_resource("cuEventDestroy", || {
            // SAFETY: the event is alive and not used after this; work that waits for it is not affected.
            unsafe { event::destroy(self.raw.0) }
        });
    }
}
