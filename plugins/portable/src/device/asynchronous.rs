//! The slots of the profile `async`.
//!
//! Asynchronous allocation allocates at once: the host already pools memory above this.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use oarlock_sdk::{
    Async, Core, Event, HostPointer, Memory, MemoryRange, Result, Stream, StreamReached, slots,
};

use super::GpuDevices;
use crate::gpu::{Gpu, GpuEvent as _, GpuQueue as _};

#[slots]
impl<G: Gpu> Async for GpuDevices<G> {
    fn stream_create(&self, device: u32, priority: i32) -> Result<Stream> {
        self.device_session(device)?.add_stream(self.new_handle(), priority)
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.device_session(device)?.destroy_stream(queue)
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        Ok(self.device_session(device)?.is_stream_done(queue)?.into())
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.device_session(device)?.synchronize_stream(queue)
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let stream = self.device_session(device)?.stream_queue(queue)?;
        stream.enqueue_callback(self.callbacks.create_callback(self.host, device, queue, reached)?)
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.device_session(device)?;
        let (queue, point) = (session.stream_queue(queue)?, session.points.get(point.0)?);
        point.recorded_event().map_or(Ok(()), |event| queue.wait_for_event(event))
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        self.device_session(device)?.add_event(self.new_handle())
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.device_session(device)?.points.remove_entry(point.0).map(drop)
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.device_session(device)?;
        session.record_event(queue, &*session.points.get(point.0)?)
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        let session = self.device_session(device)?;
        let point = session.points.get(point.0)?;
        let has_happened = point.recorded_event().map_or(Ok(true), |event| event.has_happened())?;
        if has_happened {
            session.report_faults(point.fault_checkpoint().as_ref())?;
        }
        Ok(has_happened.into())
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        let session = self.device_session(device)?;
        let point = session.points.get(point.0)?;
        point.recorded_event().map_or(Ok(()), |event| event.wait_until_happened())?;
        session.report_faults(point.fault_checkpoint().as_ref())
    }

    fn event_elapsed(&self, device: u32, start: Event, end: Event) -> Result<u64> {
        let session = self.device_session(device)?;
        session.points.get(end.0)?.elapsed_since(&*session.points.get(start.0)?)
    }

    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: HostPointer,
    ) -> Result<()> {
        let source = source.as_ptr().cast_const().cast();
        // SAFETY: the host keeps the source readable until the stream has passed this copy.
        unsafe { self.write_memory((device, queue), target, source) }
    }

    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: Stream,
        target: HostPointer,
        source: MemoryRange,
    ) -> Result<()> {
        // SAFETY: the host keeps the target writable and untouched until the stream has passed this copy.
        unsafe { self.read_memory((device, queue), target.as_ptr().cast(), source) }
    }

    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: MemoryRange,
    ) -> Result<()> {
        self.copy_memory((device, queue), target, source)
    }

    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        queue: Stream,
        source: MemoryRange,
    ) -> Result<()> {
        self.copy_to_device((source_device, queue), (target_device, target), source)
    }

    fn memory_set_async(&self, device: u32, queue: Stream, target: MemoryRange, byte: u8) -> Result<()> {
        self.fill_memory((device, queue), target, byte)
    }
    fn memory_allocate_async(&self, device: u32, queue: Stream, size: u64) -> Result<Memory> {
        self.device_session(device)?.stream_queue(queue)?;
        self.memory_allocate(device, size)
    }

    fn memory_deallocate_async(&self, device: u32, queue: Stream, block: Memory, size: u64) -> Result<()> {
        let session = self.device_session(device)?;
        session
            .stream_queue(queue)?
            .free_after_work(session.driver_gpu(), session.blocks.remove_block(block, size)?)
    }
}
