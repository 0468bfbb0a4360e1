//! Points in streams.

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_portable::Event;
use oarlock_sdk::{Error, Result};
use opencl3::event::{CL_COMPLETE, Event as Happening};

use crate::error::failed;
use crate::gpu::OpenCl;
use crate::queue::Queue;

/// A point in a stream: the queue it was last recorded in and what the driver tells it by.
#[derive(Default)]
pub(crate) struct Point(Mutex<Option<(Arc<Queue>, Arc<Happening>)>>);

/// Where a command is: `CL_COMPLETE` is 0, what fails is below, what is on its way above.
pub(crate) fn status(event: &Happening) -> i32 {
    event.command_execution_status().map_or_else(|error| error.0, |status| status.0)
}

/// Waits for one command.
pub(crate) fn wait(event: &Happening) -> Result<()> {
    let waited = event.wait();
    match status(event) {
        code if code < CL_COMPLETE => Err(failed("a command", code)),
        _ => waited.map_err(|error| failed("clWaitForEvents", error)),
    }
}

impl Point {
    pub(crate) fn recorded(&self) -> Result<(Arc<Queue>, Arc<Happening>)> {
        let recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        recorded.ok_or_else(|| Error::precondition_not_met("expected an event that was recorded, found none"))
    }

    fn time(&self) -> Result<u64> {
        let (_, happening) = self.recorded()?;
        happening.profiling_command_end().map_err(|error| failed("clGetEventProfilingInfo", error))
    }
}

impl Event<OpenCl> for Point {
    fn record(&self, queue: &Arc<Queue>) -> Result<()> {
        let mark = Arc::new(queue.mark()?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::clone(queue), mark));
        Ok(())
    }

    fn has_happened(&self) -> Result<bool> {
        Ok(status(&self.recorded()?.1) <= CL_COMPLETE)
    }

    fn wait(&self) -> Result<()> {
        let (queue, happening) = self.recorded()?;
        wait(&happening)?;
        queue.failure()
    }

    fn since(&self, start: &Self) -> Result<u64> {
        Ok(self.time()?.saturating_sub(start.time()?))
    }
}
