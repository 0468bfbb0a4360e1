//! Streams and events of the driver.

#![expect(unsafe_code, reason = "streams and events are C objects")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::DriverError;
use cudarc::driver::result::{event, stream};
use cudarc::driver::sys::{CUevent, CUevent_flags, CUevent_wait_flags, CUresult, CUstream, cuStreamQuery};
use oarlock_sdk::{Result, ensure};

use crate::context::{Context, Entered, Handle};

/// One stream.
#[derive(Debug)]
pub(crate) struct Queue {
    context: Arc<Context>,
    raw: Handle<CUstream>,
    /// Whether this is the device's own, in which calls finish before they return.
    is_own: bool,
}

impl Queue {
    /// A stream that waits for no other. Smaller priorities come first, and the driver brings them into its range.
    pub(crate) fn new(context: &Arc<Context>, priority: i32, is_own: bool) -> Result<Self> {
        let entered = context.enter()?;
        let raw = stream::create_with_priority(stream::StreamKind::NonBlocking, priority);
        let raw = entered.check("cuStreamCreateWithPriority", raw)?;
        Ok(Self { context: Arc::clone(context), raw: Handle(raw), is_own })
    }

    /// Puts work into the stream with a function of the driver. In the device's own stream it is done when this returns.
    pub(crate) fn put(
        &self,
        function: &str,
        enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>,
    ) -> Result<()> {
        self.run(|entered, stream| entered.check(function, enqueue(stream)))
    }

    /// The same for work that another library of CUDA puts into the stream.
    pub(crate) fn run(&self, enqueue: impl FnOnce(&Entered<'_>, CUstream) -> Result<()>) -> Result<()> {
        let entered = self.context.enter()?;
        enqueue(&entered, self.raw.0)?;
        if self.is_own {
            // SAFETY: the stream is alive.
            entered.check("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })?;
        }
        Ok(())
    }

    /// Puts a point into the stream, which is not waited for.
    pub(crate) fn mark(
        &self,
        function: &str,
        enqueue: impl FnOnce(CUstream) -> Result<(), DriverError>,
    ) -> Result<()> {
        self.context.enter()?.check(function, enqueue(self.raw.0))
    }

    /// Waits for everything in the stream.
    pub(crate) fn finish(&self) -> Result<()> {
        let entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        entered.check("cuStreamSynchronize", unsafe { stream::synchronize(self.raw.0) })
    }

    /// The same for a stream that is given back, for which nothing is left to wait on a device that is lost.
    pub(crate) fn finish_to_free(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.context.give_back("cuStreamSynchronize", || unsafe { stream::synchronize(self.raw.0) })
    }

    pub(crate) fn is_empty(&self) -> Result<bool> {
        let entered = self.context.enter()?;
        // SAFETY: the stream is alive.
        let state = unsafe { cuStreamQuery(self.raw.0) };
        entered.check("cuStreamQuery", is_ready(state.result()))
    }

    /// Holds what comes after back until an event of any device has happened.
    pub(crate) fn wait_for(&self, point: &Point) -> Result<()> {
        self.mark("cuStreamWaitEvent", |queue| {
            // SAFETY: stream and event are alive.
            unsafe { stream::wait_event(queue, point.raw.0, CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT) }
        })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // There is nobody to tell of a failure.
        let _ = self.context.give_back("cuStreamDestroy", || {
            // SAFETY: the stream is alive and not used after this; what is in it still gets done.
            unsafe { stream::destroy(self.raw.0) }
        });
    }
}

fn is_ready(state: Result<(), DriverError>) -> Result<bool, DriverError> {
    match state {
        Ok(()) => Ok(true),
        Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// One event.
#[derive(Debug)]
pub(crate) struct Point {
    context: Arc<Context>,
    raw: Handle<CUevent>,
    is_recorded: AtomicBool,
}

impl Point {
    /// An event that knows its time.
    pub(crate) fn new(context: &Arc<Context>) -> Result<Self> {
        let entered = context.enter()?;
        let raw = entered.check("cuEventCreate", event::create(CUevent_flags::CU_EVENT_DEFAULT))?;
        Ok(Self { context: Arc::clone(context), raw: Handle(raw), is_recorded: AtomicBool::new(false) })
    }

    pub(crate) fn record(&self, queue: &Queue) -> Result<()> {
        queue.mark("cuEventRecord", |queue| {
            // SAFETY: stream and event are alive and of one context.
            unsafe { event::record(self.raw.0, queue) }
        })?;
        self.is_recorded.store(true, Ordering::Release);
        Ok(())
    }

    /// Whether it has happened. One that was never recorded has.
    pub(crate) fn has_happened(&self) -> Result<bool> {
        let entered = self.context.enter()?;
        // SAFETY: the event is alive.
        entered.check("cuEventQuery", is_ready(unsafe { event::query(self.raw.0) }))
    }

    pub(crate) fn wait(&self) -> Result<()> {
        let entered = self.context.enter()?;
        // SAFETY: the event is alive.
        entered.check("cuEventSynchronize", unsafe { event::synchronize(self.raw.0) })
    }

    /// The nanoseconds from another event to this one.
    pub(crate) fn since(&self, start: &Self) -> Result<u64> {
        for point in [start, self] {
            ensure!(
                point.is_recorded.load(Ordering::Acquire) && point.has_happened()?,
                precondition_not_met,
                "expected two events that have happened, found one that has not"
            );
        }
        let entered = self.context.enter()?;
        // SAFETY: both events are alive.
        let elapsed = unsafe { event::elapsed(start.raw.0, self.raw.0) };
        let milliseconds = entered.check("cuEventElapsedTime", elapsed)?;
        Ok((f64::from(milliseconds.max(0.0)) * 1e6) as u64)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        // As above.
        let _ = self.context.give_back("cuEventDestroy", || {
            // SAFETY: the event is alive and not used after this; what waits for it goes on waiting.
            unsafe { event::destroy(self.raw.0) }
        });
    }
}
