//! Points in streams.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_portable::GpuEvent;
use oarlock_sdk::{PluginError, Result};
use opencl3::event::{CL_COMPLETE, Event};

use super::OpenClQueue;
use crate::error::driver_error;
use crate::gpu::OpenClGpu;

/// A point in a stream: the queue it was last recorded on, and the driver's event.
#[derive(Default)]
pub(crate) struct OpenClEvent(Mutex<Option<(Arc<OpenClQueue>, Arc<Event>)>>);

/// Execution status of a command: `CL_COMPLETE` is 0, negative values are errors, positive ones are in progress.
pub(crate) fn command_status(event: &Event) -> i32 {
    event.command_execution_status().map_or_else(|error| error.0, |status| status.0)
}

pub(crate) fn wait_for_command(event: &Event) -> Result<()> {
    let waited = event.wait();
    match command_status(event) {
        code if code < CL_COMPLETE => Err(driver_error("a command", code)),
        _ => waited.map_err(|error| driver_error("clWaitForEvents", error)),
    }
}

impl OpenClEvent {
    pub(crate) fn recorded_command(&self) -> Result<(Arc<OpenClQueue>, Arc<Event>)> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        recorded.ok_or_else(|| {
            PluginError::precondition_not_met("expected an event that was recorded, found none")
        })
    }

    fn completion_time(&self) -> Result<u64> {
        let (_, happening) = self.recorded_command()?;
        happening.profiling_command_end().map_err(|error| driver_error("clGetEventProfilingInfo", error))
    }
}

impl GpuEvent<OpenClGpu> for OpenClEvent {
    fn record_on_queue(&self, queue: &Arc<OpenClQueue>) -> Result<()> {
        let mark = Arc::new(queue.enqueue_marker()?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::clone(queue), mark));
        Ok(())
    }

    fn has_happened(&self) -> Result<bool> {
        Ok(command_status(&self.recorded_command()?.1) <= CL_COMPLETE)
    }

    fn wait_until_happened(&self) -> Result<()> {
        let (queue, happening) = self.recorded_command()?;
        wait_for_command(&happening)?;
        queue.take_failure()
    }

    fn elapsed_since(&self, start: &Self) -> Result<u64> {
        Ok(self.completion_time()?.saturating_sub(start.completion_time()?))
    }
}
