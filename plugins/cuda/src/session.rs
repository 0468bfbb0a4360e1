//! What a device has while it is in use: its context, and the tables of what the host has made on it. Dropping it gives
//! everything back, also what the host has forgotten.

#![expect(unsafe_code, reason = "memory is taken by a C function")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::result::{free_sync, malloc_sync, mem_get_info};
use cudarc::driver::sys::CUdevice;
use oarlock_sdk::{Error, Event, Memory, Result, Stream, ensure};

use crate::blas::Blas;
use crate::context::Context;
use crate::memory::Blocks;
use crate::pinned::Pinned;
use crate::queue::{Point, Queue};

/// One device in use.
pub(crate) struct Session {
    pub(crate) context: Arc<Context>,
    pub(crate) blocks: Blocks,
    pub(crate) pinned: Pinned,
    blas: OnceLock<Blas>,
    own: Arc<Queue>,
    streams: Mutex<HashMap<u64, Arc<Queue>>>,
    points: Mutex<HashMap<u64, Arc<Point>>>,
}

impl Session {
    pub(crate) fn open(device: CUdevice) -> Result<Self> {
        let context = Arc::new(Context::retain(device)?);
        let own = Arc::new(Queue::new(&context, 0, true)?);
        Ok(Self {
            context,
            blocks: Blocks::default(),
            pinned: Pinned::default(),
            blas: OnceLock::new(),
            own,
            streams: Mutex::default(),
            points: Mutex::default(),
        })
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, Arc<Queue>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn points(&self) -> MutexGuard<'_, HashMap<u64, Arc<Point>>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn queue(&self, stream: Stream) -> Result<Arc<Queue>> {
        if stream.0 == 0 {
            return Ok(Arc::clone(&self.own));
        }
        self.streams().get(&stream.0).cloned().ok_or_else(|| unknown("stream", stream.0))
    }

    pub(crate) fn add_stream(&self, handle: u64, priority: i32) -> Result<Stream> {
        let queue = Queue::new(&self.context, priority, false)?;
        self.streams().insert(handle, Arc::new(queue));
        Ok(Stream(handle))
    }

    pub(crate) fn remove_stream(&self, stream: Stream) -> Result<Arc<Queue>> {
        if stream.0 == 0 {
            return Err(Error::invalid_argument("expected a stream that was made, found the device's own"));
        }
        self.streams().remove(&stream.0).ok_or_else(|| unknown("stream", stream.0))
    }

    pub(crate) fn add_point(&self, handle: u64) -> Result<Event> {
        let point = Point::new(&self.context)?;
        self.points().insert(handle, Arc::new(point));
        Ok(Event(handle))
    }

    pub(crate) fn remove_point(&self, event: Event) -> Result<()> {
        self.points().remove(&event.0).map(drop).ok_or_else(|| unknown("event", event.0))
    }

    pub(crate) fn point(&self, event: Event) -> Result<Arc<Point>> {
        self.points().get(&event.0).cloned().ok_or_else(|| unknown("event", event.0))
    }

    /// Waits until every stream is done.
    pub(crate) fn finish(&self) -> Result<()> {
        self.queues().iter().try_for_each(|queue| queue.finish())
    }

    /// The same before everything is given back, for which nothing is left to wait on a device that is lost.
    pub(crate) fn finish_to_free(&self) -> Result<()> {
        self.queues().iter().try_for_each(|queue| queue.finish_to_free())
    }

    fn queues(&self) -> Vec<Arc<Queue>> {
        self.streams().values().chain([&self.own]).cloned().collect()
    }

    pub(crate) fn allocate(&self, size: u64) -> Result<Memory> {
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        let entered = self.context.enter()?;
        // SAFETY: the memory is given back by `deallocate` or with the session only.
        let address = entered.check("cuMemAlloc", unsafe { malloc_sync(size as usize) })?;
        Ok(self.blocks.insert(address, size))
    }

    pub(crate) fn deallocate(&self, block: Memory, size: u64) -> Result<()> {
        self.blocks.remove(block, size)?;
        // SAFETY: the block was taken by `allocate`, and is not in the table any more.
        self.context.give_back("cuMemFree", || unsafe { free_sync(block.0) })
    }

    /// How many bytes the device has, and how many of them are free.
    pub(crate) fn memory(&self) -> Result<(u64, u64)> {
        let entered = self.context.enter()?;
        let (free, total) = entered.check("cuMemGetInfo", mem_get_info())?;
        Ok((total as u64, free as u64))
    }

    /// The device's cuBLASLt.
    pub(crate) fn blas(&self) -> Result<&Blas> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas);
        }
        let made = Blas::new(&self.context)?;
        // Where another thread was faster, its handle is used.
        Ok(self.blas.get_or_init(|| made))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.pinned.clear(&self.context);
        for address in self.blocks.take() {
            // SAFETY: as above. There is nobody to tell of a failure.
            let _ = self.context.give_back("cuMemFree", || unsafe { free_sync(address) });
        }
    }
}

fn unknown(what: &str, handle: u64) -> Error {
    Error::not_found(format!("expected a live {what} of this device, found the handle {handle}")).rule("A-3")
}
