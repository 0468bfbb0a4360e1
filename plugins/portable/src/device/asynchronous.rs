//! The slots of the profile `async`.
//!
//! Memory is taken at once: the host has an allocator of its own above this.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use oarlock_sdk::{Async, Core, Event, HostPointer, Memory, Result, Stream, StreamReached, slots};

use super::Gpus;
use crate::gpu::{Event as _, Gpu, Queue as _};

#[slots]
impl<G: Gpu> Async for Gpus<G> {
    fn stream_create(&self, device: u32, priority: i32) -> Result<Stream> {
        self.session(device)?.add_stream(self.new_handle(), priority)
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.session(device)?.end_stream(queue)
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        Ok(self.session(device)?.is_done(queue)?.into())
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.session(device)?.synchronize(queue)
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let stream = self.session(device)?.queue(queue)?;
        stream.call_back(self.callbacks.reached(self.host, device, queue, reached)?)
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.session(device)?;
        let (queue, point) = (session.queue(queue)?, session.points.get(point.0)?);
        point.recorded().map_or(Ok(()), |event| queue.wait_for(event))
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        self.session(device)?.add_event(self.new_handle())
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.session(device)?.points.remove(point.0).map(drop)
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.session(device)?;
        session.record(queue, &*session.points.get(point.0)?)
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        let session = self.session(device)?;
        let point = session.points.get(point.0)?;
        let has_happened = point.recorded().map_or(Ok(true), |event| event.has_happened())?;
        if has_happened {
            session.tell(point.seen().as_ref())?;
        }
        Ok(has_happened.into())
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        let session = self.session(device)?;
        let point = session.points.get(point.0)?;
        point.recorded().map_or(Ok(()), |event| event.wait())?;
        session.tell(point.seen().as_ref())
    }

    fn event_elapsed(&self, device: u32, start: Event, end: Event) -> Result<u64> {
        let session = self.session(device)?;
        session.points.get(end.0)?.since(&*session.points.get(start.0)?)
    }

    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: Memory,
        target_offset: u64,
        source: HostPointer,
        size: u64,
    ) -> Result<()> {
        let source = source.address().cast_const().cast();
        // SAFETY: the host keeps what it names until the stream is past it.
        unsafe { self.write((device, queue), (target, target_offset), source, size) }
    }

    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: Stream,
        target: HostPointer,
        source: Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        // SAFETY: as above.
        unsafe { self.read((device, queue), target.address().cast(), (source, source_offset), size) }
    }

    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: Memory,
        target_offset: u64,
        source: Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        self.copy((device, queue), (target, target_offset), (source, source_offset), size)
    }

    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: Memory,
        target_offset: u64,
        source_device: u32,
        queue: Stream,
        source: Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let target = (target_device, target, target_offset);
        self.copy_across((source_device, queue), target, (source, source_offset), size)
    }

    fn memory_set_async(
        &self,
        device: u32,
        queue: Stream,
        target: Memory,
        target_offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<()> {
        self.fill((device, queue), (target, target_offset), byte, size)
    }
    fn memory_allocate_async(&self, device: u32, queue: Stream, size: u64) -> Result<Memory> {
        self.session(device)?.queue(queue)?;
        self.memory_allocate(device, size)
    }

    fn memory_deallocate_async(&self, device: u32, queue: Stream, block: Memory, size: u64) -> Result<()> {
        let session = self.session(device)?;
        session.queue(queue)?.free(session.gpu(), session.blocks.remove(block, size)?)
    }
}
