//! A stream under test, the host memory that copies in it use, and events.
//!
//! If the plugin leaves an asynchronous slot empty, this module applies the contract's documented default, so that the other
//! slots can still be checked.

#![expect(unsafe_code, reason = "slots of a plugin are called through raw pointers")]

use std::cell::{Cell, RefCell};

use oarlock_abi as abi;

use crate::bench::{BoundTable, CheckAbort, Verdict, ensure, slot};
use crate::device::{DeviceUnderTest, TestBlock};

/// A stream. Create the blocks that it works on before it, so that they outlive it.
pub(crate) struct TestStream<'a> {
    device: DeviceUnderTest<'a>,
    pub(crate) handle: abi::Stream,
    /// Host memory that copies in the stream may still read or write.
    in_flight: RefCell<Vec<Vec<u8>>>,
    is_destroyed: Cell<bool>,
}

/// Bytes that a copy delivers to the host once the stream is past it.
pub(crate) struct PendingDownload(usize);

impl<'a> TestStream<'a> {
    pub(crate) fn create_stream(device: DeviceUnderTest<'a>) -> Verdict<Self> {
        let mut handle = abi::Stream(0);
        slot!(device.bench, device.bench.async_table()?, stream_create(device.id, 0, &raw mut handle))?;
        ensure!(
            handle.0 != 0,
            "`stream_create` succeeded; expected a stream that is not 0 in `queue`, found 0 or nothing written"
        );
        Ok(Self { device, handle, in_flight: RefCell::default(), is_destroyed: Cell::new(false) })
    }

    pub(crate) fn device(&self) -> DeviceUnderTest<'a> {
        self.device
    }

    /// Ends the check as unsupported unless the device has asynchronous copies in both directions.
    pub(crate) fn require_async_copies(device: DeviceUnderTest<'_>) -> Verdict {
        let table = device.bench.async_table()?;
        match (table.memory_copy_h2d_async, table.memory_copy_d2h_async) {
            (None, _) => Err(CheckAbort::empty_slot("memory_copy_h2d_async")),
            (_, None) => Err(CheckAbort::empty_slot("memory_copy_d2h_async")),
            _ => Ok(()),
        }
    }

    pub(crate) fn upload(&self, target: &TestBlock<'_>, offset: u64, data: Vec<u8>) -> Verdict {
        let table = self.async_table()?;
        let (source, size) = (data.as_ptr().cast_mut().cast(), data.len() as u64);
        if table.memory_copy_h2d_async.is_none() {
            self.synchronize()?;
            return target.write_bytes(offset, &data);
        }
        self.in_flight.borrow_mut().push(data);
        let (bench, id, queue, block) = (self.device.bench, self.device.id, self.handle, target.handle);
        Ok(slot!(bench, table, memory_copy_h2d_async(id, queue, block, offset, source, size))?)
    }

    pub(crate) fn download(
        &self,
        source: &TestBlock<'_>,
        offset: u64,
        size: usize,
    ) -> Verdict<PendingDownload> {
        let table = self.async_table()?;
        let mut data = vec![0xA5; size];
        let arriving = PendingDownload(self.in_flight.borrow().len());
        if table.memory_copy_d2h_async.is_none() {
            self.synchronize()?;
            self.in_flight.borrow_mut().push(source.read_bytes(offset, size)?);
            return Ok(arriving);
        }
        let target = data.as_mut_ptr().cast();
        self.in_flight.borrow_mut().push(data);
        let (bench, id, queue, block) = (self.device.bench, self.device.id, self.handle, source.handle);
        slot!(bench, table, memory_copy_d2h_async(id, queue, target, block, offset, size as u64))?;
        Ok(arriving)
    }

    pub(crate) fn copy_within(
        &self,
        target: &TestBlock<'_>,
        to: u64,
        source: &TestBlock<'_>,
        from: u64,
        size: u64,
    ) -> Verdict {
        let table = self.async_table()?;
        if table.memory_copy_d2d_async.is_none() {
            self.synchronize()?;
            return target.copy_from(to, source, from, size);
        }
        let (bench, id, queue) = (self.device.bench, self.device.id, self.handle);
        let (target, source) = (target.handle, source.handle);
        Ok(slot!(bench, table, memory_copy_d2d_async(id, queue, target, to, source, from, size))?)
    }

    /// Fills memory in the stream; unsupported if the device cannot.
    pub(crate) fn fill(&self, target: &TestBlock<'_>, offset: u64, byte: u8, size: u64) -> Verdict {
        let (bench, id, queue, block) = (self.device.bench, self.device.id, self.handle, target.handle);
        Ok(slot!(bench, self.async_table()?, memory_set_async(id, queue, block, offset, byte, size))?)
    }

    /// Copies from the start of a block to the start of a block on another device.
    pub(crate) fn copy_to_peer(&self, target: &TestBlock<'_>, source: &TestBlock<'_>, size: u64) -> Verdict {
        let (bench, id, queue) = (self.device.bench, self.device.id, self.handle);
        let (peer, target, source) = (target.device.id, target.handle, source.handle);
        Ok(slot!(
            bench,
            self.async_table()?,
            memory_copy_p2p_async(peer, target, 0, id, queue, source, 0, size)
        )?)
    }

    /// Allocates memory in the stream; unsupported if the device cannot.
    pub(crate) fn allocate(&self, size: usize) -> Verdict<TestBlock<'a>> {
        let mut handle = abi::Memory(0);
        let (bench, id, queue, size) = (self.device.bench, self.device.id, self.handle, size as u64);
        slot!(bench, self.async_table()?, memory_allocate_async(id, queue, size, &raw mut handle))?;
        TestBlock::from_allocation(self.device, handle, size)
    }

    /// Frees a block in the stream; unsupported if the device cannot.
    pub(crate) fn deallocate(&self, block: TestBlock<'_>) -> Verdict {
        let (bench, id, queue) = (self.device.bench, self.device.id, self.handle);
        slot!(bench, self.async_table()?, memory_deallocate_async(id, queue, block.handle, block.size))?;
        block.forget_deallocated();
        Ok(())
    }

    pub(crate) fn record_event(&self, point: &TestEvent<'_>) -> Verdict {
        let (bench, id) = (self.device.bench, self.device.id);
        Ok(slot!(bench, self.async_table()?, event_record(id, self.handle, point.handle))?)
    }

    pub(crate) fn wait_for_event(&self, point: &TestEvent<'_>) -> Verdict {
        let (bench, id) = (self.device.bench, self.device.id);
        Ok(slot!(bench, self.async_table()?, stream_wait_event(id, self.handle, point.handle))?)
    }

    pub(crate) fn add_callback(&self, reached: abi::StreamReached, user: usize) -> Verdict {
        let (bench, id, user) = (self.device.bench, self.device.id, std::ptr::without_provenance_mut(user));
        Ok(slot!(bench, self.async_table()?, stream_add_callback(id, self.handle, Some(reached), user))?)
    }

    pub(crate) fn is_done(&self) -> Verdict<bool> {
        let mut done = u32::MAX;
        let (bench, id) = (self.device.bench, self.device.id);
        slot!(bench, self.async_table()?, stream_query(id, self.handle, &raw mut done))?;
        read_boolean("stream_query", done)
    }

    pub(crate) fn synchronize(&self) -> Verdict {
        Ok(slot!(self.device.bench, self.async_table()?, stream_synchronize(self.device.id, self.handle))?)
    }

    /// The bytes that a copy delivered. The stream must be past it.
    pub(crate) fn take_download(&self, bytes: &PendingDownload) -> Vec<u8> {
        self.in_flight.borrow()[bytes.0].clone()
    }

    /// Destroys the stream. Pending work must complete.
    pub(crate) fn destroy(&self) -> Verdict {
        self.is_destroyed.set(true);
        Ok(slot!(self.device.bench, self.async_table()?, stream_destroy(self.device.id, self.handle))?)
    }

    fn async_table(&self) -> Verdict<BoundTable<'a, abi::AsyncTable>> {
        self.device.bench.async_table()
    }
}

impl Drop for TestStream<'_> {
    fn drop(&mut self) {
        if self.is_destroyed.get() {
            return;
        }
        let is_at_rest = self.synchronize().is_ok();
        if (self.destroy().is_err() || !is_at_rest) && !self.in_flight.borrow().is_empty() {
            // The device may still use this memory, so leak it instead of reusing it.
            std::mem::forget(self.in_flight.take());
        }
    }
}

/// An event, destroyed when dropped.
pub(crate) struct TestEvent<'a> {
    device: DeviceUnderTest<'a>,
    pub(crate) handle: abi::Event,
    is_destroyed: Cell<bool>,
}

impl<'a> TestEvent<'a> {
    pub(crate) fn create_event(device: DeviceUnderTest<'a>) -> Verdict<Self> {
        let mut handle = abi::Event(0);
        slot!(device.bench, device.bench.async_table()?, event_create(device.id, &raw mut handle))?;
        ensure!(
            handle.0 != 0,
            "`event_create` succeeded; expected an event that is not 0 in `point`, found 0 or nothing written"
        );
        Ok(Self { device, handle, is_destroyed: Cell::new(false) })
    }

    pub(crate) fn has_happened(&self) -> Verdict<bool> {
        let mut done = u32::MAX;
        let DeviceUnderTest { bench, id } = self.device;
        slot!(bench, bench.async_table()?, event_query(id, self.handle, &raw mut done))?;
        read_boolean("event_query", done)
    }

    pub(crate) fn synchronize(&self) -> Verdict {
        let DeviceUnderTest { bench, id } = self.device;
        Ok(slot!(bench, bench.async_table()?, event_synchronize(id, self.handle))?)
    }

    pub(crate) fn nanoseconds_since(&self, start: &Self) -> Verdict<u64> {
        let mut nanoseconds = u64::MAX;
        let DeviceUnderTest { bench, id } = self.device;
        let table = bench.async_table()?;
        slot!(bench, table, event_elapsed(id, start.handle, self.handle, &raw mut nanoseconds))?;
        Ok(nanoseconds)
    }

    pub(crate) fn destroy(&self) -> Verdict {
        self.is_destroyed.set(true);
        let DeviceUnderTest { bench, id } = self.device;
        Ok(slot!(bench, bench.async_table()?, event_destroy(id, self.handle))?)
    }
}

impl Drop for TestEvent<'_> {
    fn drop(&mut self) {
        if !self.is_destroyed.get() {
            // The check has already failed for another reason, which matters more than this.
            let _ = self.destroy();
        }
    }
}

fn read_boolean(slot: &str, answer: u32) -> Verdict<bool> {
    match answer {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(CheckAbort::failed(format!("expected 1 or 0 from `{slot}`, found {other}"))),
    }
}
