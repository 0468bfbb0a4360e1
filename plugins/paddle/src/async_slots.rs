//! The slots of the profile `async`. Where a custom device lacks a function, the adapter does what the contract says a host would.

#![expect(unsafe_code, reason = "functions of the custom device are called")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use oarlock_sdk::{
    Async, Event, HostPointer, Memory, MemoryRange, PluginError, Result, Stream, StreamReached, slots,
};

use crate::callbacks::{forward_reached, register_callback, withdraw_callback};
use crate::device_adapter::{
    AdaptedRuntime, DeviceAdapter, ForeignEvent, ForeignStream, byte_count, range_address,
};
use crate::status_report::{FAILED, StatusNumber};

impl AdaptedRuntime {
    fn synchronize_stream(&self, device: u32, stream: Option<&ForeignStream>) -> Result<()> {
        let Some(stream) = stream else { return self.synchronize_all(device) };
        let mut called = self.enter_device(device)?;
        called.turn.allow_others();
        // SAFETY: the stream is live and of this device.
        let status = unsafe { (self.functions.synchronize_stream)(called.address, stream.address()) };
        self.check(status, "synchronize_stream", Some(device))
    }

    fn synchronize_event(&self, device: u32, event: &ForeignEvent) -> Result<()> {
        if !event.is_recorded.load(Ordering::Acquire) {
            self.enter_device(device)?;
            return Ok(());
        }
        let mut called = self.enter_device(device)?;
        called.turn.allow_others();
        // SAFETY: the event is live and of this device.
        let status = unsafe { (self.functions.synchronize_event)(called.address, event.address()) };
        self.check(status, "synchronize_event", Some(device))
    }

    /// Whether work is done, by the status of a query: failing means that it is not.
    fn is_done(&self, status: StatusNumber, function: &'static str, device: u32) -> Result<u32> {
        if status == FAILED {
            return Ok(0);
        }
        self.check(status, function, Some(device)).map(|()| 1)
    }

    /// Runs synchronous work in the order of a stream.
    fn after_stream(
        &self,
        device: u32,
        stream: Option<&ForeignStream>,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if stream.is_some() {
            self.synchronize_stream(device, stream)?;
        }
        work()
    }

    /// Calls the host's function on a thread that waits for the stream.
    fn call_after_waiting(
        self: &Arc<Self>,
        device: u32,
        queue: Stream,
        stream: Option<Arc<ForeignStream>>,
        reached: StreamReached,
    ) -> Result<()> {
        let runtime = Arc::clone(self);
        let wait = move || match runtime.synchronize_stream(device, stream.as_deref()) {
            Ok(()) => reached.notify(device, queue),
            Err(error) => reached.notify_failure(runtime.host(), device, queue, &error),
        };
        let started = std::thread::Builder::new().name("paddle-waits".to_owned()).spawn(wait);
        started.map(drop).map_err(|error| {
            PluginError::resource_exhausted(format!(
                "expected a thread for a callback to start, found: {error}"
            ))
        })
    }
}

#[slots]
impl Async for DeviceAdapter {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        let called = self.0.enter_device(device)?;
        let mut address = core::ptr::null_mut();
        // SAFETY: the device is initialized, and the function may write the address.
        let status = unsafe { (self.0.functions.create_stream)(called.address, &raw mut address) };
        self.0.check(status, "create_stream", Some(device))?;
        Ok(self.0.add_stream(ForeignStream::new(device, address)))
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        let stream = self.0.take_stream(device, queue)?;
        // The interface does not say what becomes of work in a stream that is destroyed.
        let finished = self.0.synchronize_stream(device, Some(&stream));
        let called = self.0.enter_device(device)?;
        // SAFETY: the stream is of this device, and no number stands for it any more.
        let status = unsafe { (self.0.functions.destroy_stream)(called.address, stream.address()) };
        self.0.check(status, "destroy_stream", Some(device))?;
        finished
    }

    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        let stream = self.0.stream(device, queue)?;
        if let (Some(query), Some(stream)) = (self.0.functions.query_stream, &stream) {
            let called = self.0.enter_device(device)?;
            // SAFETY: the stream is live and of this device.
            let status = unsafe { query(called.address, stream.address()) };
            return self.0.is_done(status, "query_stream", device);
        }
        self.0.synchronize_stream(device, stream.as_deref()).map(|()| 1)
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        let stream = self.0.stream(device, queue)?;
        self.0.synchronize_stream(device, stream.as_deref())
    }

    fn stream_add_callback(&self, device: u32, queue: Stream, reached: StreamReached) -> Result<()> {
        let stream = self.0.stream(device, queue)?;
        let (Some(add), Some(stream)) = (self.0.functions.stream_add_callback, &stream) else {
            return self.0.call_after_waiting(device, queue, stream, reached);
        };
        let called = self.0.enter_device(device)?;
        let number = register_callback(device, queue, reached)?;
        let user = core::ptr::without_provenance_mut(number);
        // SAFETY: the stream is live and of this device; the function takes any number.
        let status = unsafe { add(called.address, stream.address(), forward_reached, user) };
        let added = self.0.check(status, "stream_add_callback", Some(device));
        // One that failed, but called back, is done.
        if added.is_err() && withdraw_callback(number) { added } else { Ok(()) }
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let (stream, event) = (self.0.stream(device, queue)?, self.0.event(device, point.0)?);
        let Some(stream) = stream else { return self.0.synchronize_event(device, &event) };
        let called = self.0.enter_device(device)?;
        if !event.is_recorded.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: both are live and of this device.
        let status = unsafe {
            (self.0.functions.stream_wait_event)(called.address, stream.address(), event.address())
        };
        self.0.check(status, "stream_wait_event", Some(device))
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        let called = self.0.enter_device(device)?;
        let mut address = core::ptr::null_mut();
        // SAFETY: the device is initialized, and the function may write the address.
        let status = unsafe { (self.0.functions.create_event)(called.address, &raw mut address) };
        self.0.check(status, "create_event", Some(device))?;
        Ok(Event(self.0.add_event(ForeignEvent::new(device, address))))
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        let event = self.0.take_event(device, point.0)?;
        let called = self.0.enter_device(device)?;
        // SAFETY: the event is of this device, and no number stands for it any more.
        let status = unsafe { (self.0.functions.destroy_event)(called.address, event.address()) };
        self.0.check(status, "destroy_event", Some(device))
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let (stream, event) = (self.0.stream(device, queue)?, self.0.event(device, point.0)?);
        let Some(stream) = stream else {
            // All work of the synchronous queue is done, and an event that is not recorded counts as happened.
            self.0.synchronize_all(device)?;
            event.is_recorded.store(false, Ordering::Release);
            return Ok(());
        };
        let called = self.0.enter_device(device)?;
        // SAFETY: both are live and of this device.
        let status =
            unsafe { (self.0.functions.record_event)(called.address, stream.address(), event.address()) };
        self.0.check(status, "record_event", Some(device))?;
        event.is_recorded.store(true, Ordering::Release);
        Ok(())
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        let event = self.0.event(device, point.0)?;
        let is_recorded = event.is_recorded.load(Ordering::Acquire);
        if let (Some(query), true) = (self.0.functions.query_event, is_recorded) {
            let called = self.0.enter_device(device)?;
            // SAFETY: the event is live and of this device.
            let status = unsafe { query(called.address, event.address()) };
            return self.0.is_done(status, "query_event", device);
        }
        self.0.synchronize_event(device, &event).map(|()| 1)
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        let event = self.0.event(device, point.0)?;
        self.0.synchronize_event(device, &event)
    }

    fn memory_copy_h2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: HostPointer,
    ) -> Result<()> {
        let (stream, source) = (self.0.stream(device, queue)?, source.as_ptr().cast_const());
        let (Some(copy), Some(stream)) = (self.0.functions.async_memory_copy_h2d, &stream) else {
            return self
                .0
                .after_stream(device, stream.as_deref(), || self.0.copy_to_device(device, target, source));
        };
        let size = byte_count(target.size)?;
        let called = self.0.enter_device(device)?;
        // SAFETY: the stream is live; the host keeps the source and vouches for the range until the stream is past the copy.
        let status = unsafe { copy(called.address, stream.address(), range_address(target), source, size) };
        self.0.check(status, "async_memory_copy_h2d", Some(device))
    }

    fn memory_copy_d2h_async(
        &self,
        device: u32,
        queue: Stream,
        target: HostPointer,
        source: MemoryRange,
    ) -> Result<()> {
        let (stream, target) = (self.0.stream(device, queue)?, target.as_ptr());
        let (Some(copy), Some(stream)) = (self.0.functions.async_memory_copy_d2h, &stream) else {
            return self
                .0
                .after_stream(device, stream.as_deref(), || self.0.copy_to_host(device, target, source));
        };
        let size = byte_count(source.size)?;
        let called = self.0.enter_device(device)?;
        // SAFETY: the stream is live; the host keeps the target and vouches for the range until the stream is past the copy.
        let status = unsafe { copy(called.address, stream.address(), target, range_address(source), size) };
        self.0.check(status, "async_memory_copy_d2h", Some(device))
    }

    fn memory_copy_d2d_async(
        &self,
        device: u32,
        queue: Stream,
        target: MemoryRange,
        source: MemoryRange,
    ) -> Result<()> {
        let stream = self.0.stream(device, queue)?;
        let (Some(copy), Some(stream)) = (self.0.functions.async_memory_copy_d2d, &stream) else {
            return self
                .0
                .after_stream(device, stream.as_deref(), || self.0.copy_within(device, target, source));
        };
        let size = byte_count(source.size)?;
        let called = self.0.enter_device(device)?;
        // SAFETY: the stream is live, and the host vouches for both ranges until the stream is past the copy.
        let status = unsafe {
            copy(called.address, stream.address(), range_address(target), range_address(source), size)
        };
        self.0.check(status, "async_memory_copy_d2d", Some(device))
    }

    fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        queue: Stream,
        source: MemoryRange,
    ) -> Result<()> {
        let stream = self.0.stream(source_device, queue)?;
        if target_device == source_device {
            return self.memory_copy_d2d_async(source_device, queue, target, source);
        }
        let (Some(copy), Some(stream)) = (self.0.functions.async_memory_copy_p2p, &stream) else {
            return self.0.after_stream(source_device, stream.as_deref(), || {
                self.0.copy_between(target_device, target, source_device, source)
            });
        };
        let size = byte_count(source.size)?;
        let target_address = self.0.enter_device(target_device)?.address;
        let called = self.0.enter_device(source_device)?;
        // SAFETY: the stream is live, and the host vouches for both ranges until the stream is past the copy.
        let status = unsafe {
            let (to, from) = (range_address(target), range_address(source));
            copy(target_address, called.address, stream.address(), to, from, size)
        };
        self.0.check(status, "async_memory_copy_p2p", Some(source_device))
    }

    fn memory_set_async(&self, device: u32, queue: Stream, target: MemoryRange, byte: u8) -> Result<()> {
        let stream = self.0.stream(device, queue)?;
        self.0.after_stream(device, stream.as_deref(), || self.0.fill_range(device, target, byte))
    }

    fn memory_deallocate_async(&self, device: u32, queue: Stream, block: Memory, size: u64) -> Result<()> {
        use oarlock_sdk::Core as _;
        let stream = self.0.stream(device, queue)?;
        self.0.after_stream(device, stream.as_deref(), || self.memory_deallocate(device, block, size))
    }

    fn memory_allocate_async(&self, device: u32, queue: Stream, size: u64) -> Result<Memory> {
        use oarlock_sdk::Core as _;
        self.0.stream(device, queue)?;
        self.memory_allocate(device, size)
    }
}
