//! The slots of the profile `async`.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use oarlock_sdk::{
    Async, Core, Error, Event, HostPointer, Memory, Result, Stream, StreamReached, ensure, slots,
};

use crate::copies;
use crate::queue::{is_done, wait};
use crate::state::OpenCl;

#[slots]
impl Async for OpenCl {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        self.device(device)?.add_stream(self.new_handle())
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.device(device)?.remove_stream(queue)?.finish()
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        Ok(self.queue(device, queue)?.1.is_empty().into())
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        let (_, queue) = self.queue(device, queue)?;
        queue.finish()?;
        queue.take_failure()
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let mark = self.queue(device, queue)?.1.mark()?;
        self.callbacks.add(self.host, device, queue, &mark, reached)
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let (device, queue) = self.queue(device, queue)?;
        match device.event(point)? {
            Some((_, happening)) => queue.wait_for(&happening),
            None => Ok(()),
        }
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        Ok(self.device(device)?.add_event(self.new_handle()))
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.device(device)?.remove_event(point)
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let (device, queue) = self.queue(device, queue)?;
        device.record(point, queue)
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        let point = self.device(device)?.event(point)?;
        Ok(point.is_none_or(|(_, happening)| is_done(&happening)).into())
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        match self.device(device)?.event(point)? {
            Some((queue, happening)) => {
                wait(&happening)?;
                queue.failure()
            }
            None => Ok(()),
        }
    }

    fn event_elapsed(&self, device: u32, start: Event, end: Event) -> Result<u64> {
        let device = self.device(device)?;
        let time = |event| {
            let (_, happening) = device.event(event)?.ok_or_else(|| {
                Error::precondition_not_met("expected two events that were recorded, found one that was not")
            })?;
            ensure!(
                is_done(&happening),
                precondition_not_met,
                "expected two events that have happened, found one that has not"
            );
            happening
                .profiling_command_end()
                .map_err(|error| crate::error::failed("clGetEventProfilingInfo", error))
        };
        Ok(time(end)?.saturating_sub(time(start)?))
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

    fn memory_allocate_async(&self, device: u32, queue: Stream, size: u64) -> Result<Memory> {
        self.queue(device, queue)?;
        self.memory_allocate(device, size)
    }

    fn memory_deallocate_async(&self, device: u32, queue: Stream, block: Memory, size: u64) -> Result<()> {
        // The driver keeps the memory for the commands that are in the queue.
        self.queue(device, queue)?.0.blocks.remove(block, size)
    }
}
