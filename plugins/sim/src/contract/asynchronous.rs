//! The slots of the profile `async`.

#![expect(unsafe_code, reason = "the engine takes the host's ends of copies as raw spans")]

use oarlock_sdk::{
    Async, Event, HostPointer, Memory, MemoryRange, PluginError, Result, Stream, StreamReached, slots,
};

use super::{SimPlugin, contract_result, device_address};
use crate::mapping::HostSpan;
use crate::stream::EventId;

/// Host memory for a copy that runs later.
fn host_span(address: HostPointer, size: u64) -> Result<HostSpan> {
    let length = usize::try_from(size)
        .map_err(|_| PluginError::out_of_range(format!("expected a size that fits, found {size}")))?;
    // SAFETY: by the contract the host keeps the memory of an asynchronous call alive until the stream has passed it.
    Ok(unsafe { HostSpan::new(address.as_ptr().cast(), length) })
}

#[slots]
impl Async for SimPlugin {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        contract_result(self.started_engine()?.stream_create(device)).map(|stream| Stream(stream.0))
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        match self.resolve_stream(device, queue)? {
            (stream, false) => contract_result(self.started_engine()?.stream_destroy(device, stream)),
            (_, true) => {
                Err(PluginError::invalid_argument("expected a stream that was made, found the device's own"))
            }
        }
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        let (stream, _) = self.resolve_stream(device, queue)?;
        contract_result(self.started_engine()?.stream_query(device, stream)).map(u32::from)
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        let (stream, _) = self.resolve_stream(device, queue)?;
        contract_result(self.started_engine()?.stream_synchronize(device, stream))
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let host = self.host;
        let tell = move |answer| match contract_result(answer) {
            Ok(()) => reached.notify(device, queue),
            Err(error) => reached.notify_failure(&host, device, queue, &error),
        };
        self.submit_work(device, queue, |engine, stream| engine.stream_add_callback(device, stream, tell))
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.submit_work(device, queue, |engine, stream| {
            engine.stream_wait_event(device, stream, EventId(point.0))
        })
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        contract_result(self.started_engine()?.event_create(device)).map(|event| Event(event.0))
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        contract_result(self.started_engine()?.event_destroy(device, EventId(point.0)))
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.submit_work(device, queue, |engine, stream| {
            engine.event_record(device, stream, EventId(point.0))
        })
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        contract_result(self.started_engine()?.event_query(device, EventId(point.0))).map(u32::from)
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        contract_result(self.started_engine()?.event_synchronize(device, EventId(point.0)))
    }

    fn event_elapsed(&self, device: u32, start: Event, end: Event) -> Result<u64> {
        contract_result(self.started_engine()?.event_elapsed(device, EventId(start.0), EventId(end.0)))
    }

    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: HostPointer,
    ) -> Result<()> {
        let (target, source) = (device_address(target), host_span(source, target.size)?);
        self.submit_work(device, queue, |engine, stream| {
            engine.memory_copy_h2d_async(device, stream, target, source)
        })
    }

    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: Stream,
        target: HostPointer,
        source: MemoryRange,
    ) -> Result<()> {
        let (target, source) = (host_span(target, source.size)?, device_address(source));
        self.submit_work(device, queue, |engine, stream| {
            engine.memory_copy_d2h_async(device, stream, target, source)
        })
    }

    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: MemoryRange,
    ) -> Result<()> {
        let (target, size) = (device_address(target), source.size);
        let source = device_address(source);
        self.submit_work(device, queue, |engine, stream| {
            engine.memory_copy_d2d_async(device, stream, target, source, size)
        })
    }

    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        queue: Stream,
        source: MemoryRange,
    ) -> Result<()> {
        let (target, size) = (device_address(target), source.size);
        let source = device_address(source);
        self.submit_work(source_device, queue, |engine, stream| {
            engine.memory_copy_p2p_async(target_device, target, source_device, stream, source, size)
        })
    }

    fn memory_set_async(&self, device: u32, queue: Stream, target: MemoryRange, byte: u8) -> Result<()> {
        let (size, target) = (target.size, device_address(target));
        self.submit_work(device, queue, |engine, stream| {
            engine.memory_set_async(device, stream, target, byte, size)
        })
    }

    /// Allocates at once. The memory is usable before the stream gets here, which a correct program cannot observe.
    fn memory_allocate_async(&self, device: u32, queue: Stream, size: u64) -> Result<Memory> {
        self.resolve_stream(device, queue)?;
        contract_result(self.started_engine()?.count_call("memory_allocate_async", Some(device)))?;
        contract_result(self.started_engine()?.memory_allocate(device, size)).map(Memory)
    }

    fn memory_deallocate_async(&self, device: u32, queue: Stream, block: Memory, size: u64) -> Result<()> {
        self.submit_work(device, queue, |engine, stream| {
            engine.memory_deallocate_async(device, stream, block.0, size)
        })
    }
}
