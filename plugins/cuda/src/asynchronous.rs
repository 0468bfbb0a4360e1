//! The slots of the profile `async`.
//!
//! Memory is taken and given back at once: the host has an allocator of its own above this.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use oarlock_sdk::{Async, Event, HostPointer, Memory, Result, Stream, StreamReached, slots};

use crate::copies;
use crate::state::Cuda;

#[slots]
impl Async for Cuda {
    fn stream_create(&self, device: u32, priority: i32) -> Result<Stream> {
        self.session(device)?.add_stream(self.new_handle(), priority)
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        let session = self.session(device)?;
        let queue = session.remove_stream(queue)?;
        queue.finish_to_free()
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        Ok(self.session(device)?.queue(queue)?.is_empty()?.into())
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.session(device)?.queue(queue)?.finish()
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let stream = self.session(device)?.queue(queue)?;
        self.callbacks.add(self.host, device, queue, &stream, reached)
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.session(device)?;
        session.queue(queue)?.wait_for(&*session.point(point)?)
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        self.session(device)?.add_point(self.new_handle())
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.session(device)?.remove_point(point)
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let session = self.session(device)?;
        session.point(point)?.record(&*session.queue(queue)?)
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        Ok(self.session(device)?.point(point)?.has_happened()?.into())
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        self.session(device)?.point(point)?.wait()
    }

    fn event_elapsed(&self, device: u32, start: Event, end: Event) -> Result<u64> {
        let session = self.session(device)?;
        session.point(end)?.since(&*session.point(start)?)
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
        unsafe { copies::write(self, (device, queue), (target, target_offset), source, size) }
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
        unsafe { copies::read(self, (device, queue), target.address().cast(), (source, source_offset), size) }
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
        copies::copy(self, (device, queue), (target, target_offset), (source, source_offset), size)
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
        copies::fill(self, (device, queue), (target, target_offset), byte, size)
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
        copies::across(self, (source_device, queue), target, (source, source_offset), size)
    }
}
