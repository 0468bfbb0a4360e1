//! Device memory, and copies to, from and within it.
//!
//! A [`DeviceBlock`] has one owner, so most of its methods are safe. A [`DeviceSpan`] is a range of a block that may be shared, for
//! a pool that splits chunks into pieces: its callers must rule out conflicting accesses.

#![expect(unsafe_code, reason = "blocks are passed to slots that trust them")]

use std::sync::Arc;

use oarlock_abi as abi;

use crate::live_handles::HandleKind;
use crate::services::errors::PluginFailure;
use crate::{PluginDevice, PluginStream};

/// The piece size of copies that go through the host.
const STAGING_BYTES: u64 = 4 << 20;

/// A block of device memory, freed when dropped.
#[derive(Debug)]
pub struct DeviceBlock {
    device: PluginDevice,
    memory: abi::Memory,
    size: u64,
}

impl DeviceBlock {
    /// The host never requests 0 bytes from a plugin (rule M-4), so a block of size 0 has no memory.
    pub(crate) fn allocate(device: &PluginDevice, size: u64) -> Result<Self, PluginFailure> {
        let memory = if size == 0 {
            abi::Memory(0)
        } else {
            device.core_calls().memory_allocate(device.id(), size)?
        };
        device.plugin().handle_counter().note_taken(HandleKind::Block);
        Ok(Self { device: device.clone(), memory, size })
    }

    /// The device that the memory belongs to.
    pub fn device(&self) -> &PluginDevice {
        &self.device
    }

    /// The plugin's handle, for calls of kernels.
    pub fn memory(&self) -> abi::Memory {
        self.memory
    }

    /// The usable size in bytes, as requested.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The whole block as a span, for callers that share it.
    pub fn span(&self) -> DeviceSpan<'_> {
        // SAFETY: the block is alive as long as it is borrowed.
        unsafe { DeviceSpan::new(&self.device, self.memory, 0, self.size) }
    }

    /// Copies from host memory. Returns when the copy is done.
    pub fn write_bytes(&mut self, offset: u64, source: &[u8]) -> Result<(), PluginFailure> {
        // SAFETY: the block is borrowed by nobody else.
        unsafe { self.span().write_bytes(offset, source) }
    }

    /// Copies to host memory. Returns when the copy is done.
    pub fn read_bytes(&self, offset: u64, target: &mut [u8]) -> Result<(), PluginFailure> {
        // SAFETY: whoever changes the block borrows it mutably.
        unsafe { self.span().read_bytes(offset, target) }
    }

    /// Fills a range with one byte. If the plugin leaves the slot empty, the host copies the bytes instead.
    pub fn fill_bytes(&mut self, offset: u64, byte: u8, size: u64) -> Result<(), PluginFailure> {
        // SAFETY: the block is borrowed by nobody else.
        unsafe { self.span().fill_bytes(offset, byte, size) }
    }

    /// Copies from another block: within the device, between two devices of one plugin, or through the host.
    pub fn copy_from(
        &mut self,
        offset: u64,
        source: &Self,
        source_offset: u64,
        size: u64,
    ) -> Result<(), PluginFailure> {
        // SAFETY: this block is borrowed mutably, so it is another one than the source, which nobody changes.
        unsafe { self.span().copy_from(offset, source.span(), source_offset, size) }
    }

    /// Copies from another block on a stream of the source's device. If that device cannot, the host synchronizes the stream
    /// and then copies.
    ///
    /// # Safety
    ///
    /// Both blocks stay alive and unchanged until the stream is past the copy.
    pub unsafe fn copy_from_on_stream(
        &mut self,
        stream: &PluginStream,
        offset: u64,
        source: &Self,
        source_offset: u64,
        size: u64,
    ) -> Result<(), PluginFailure> {
        // SAFETY: the caller keeps both, which are two blocks.
        unsafe { self.span().copy_from_on_stream(stream, offset, source.span(), source_offset, size) }
    }

    /// Copies from the host on a stream. If the device cannot, the host synchronizes the stream and then copies.
    ///
    /// # Safety
    ///
    /// The source does not change, and the block is not freed, until the stream is past the copy.
    pub unsafe fn write_on_stream(
        &mut self,
        stream: &PluginStream,
        offset: u64,
        source: &[u8],
    ) -> Result<(), PluginFailure> {
        // SAFETY: the caller keeps both.
        unsafe { self.span().write_on_stream(stream, offset, source) }
    }

    /// Copies to the host on a stream. If the device cannot, the host synchronizes the stream and then copies.
    ///
    /// # Safety
    ///
    /// Nobody accesses the target, and the block is not freed, until the stream is past the copy.
    pub unsafe fn read_on_stream(
        &self,
        stream: &PluginStream,
        offset: u64,
        target: &mut [u8],
    ) -> Result<(), PluginFailure> {
        // SAFETY: the caller keeps both.
        unsafe { self.span().read_on_stream(stream, offset, target) }
    }

    /// Fills a range on a stream. If the device cannot, the host synchronizes the stream and then fills.
    ///
    /// # Safety
    ///
    /// The block is not freed until the stream is past the fill.
    pub unsafe fn fill_on_stream(
        &mut self,
        stream: &PluginStream,
        offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<(), PluginFailure> {
        // SAFETY: the caller keeps the block.
        unsafe { self.span().fill_on_stream(stream, offset, byte, size) }
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        let plugin = self.device.plugin();
        if self.size > 0 {
            // SAFETY: the block is alive, was allocated on this device with this size, and is not used again.
            let given = unsafe {
                self.device.core_calls().memory_deallocate(self.device.id(), self.memory, self.size)
            };
            if let Err(failure) = given {
                plugin.log_warning(&format!("a block of {} bytes was not given back: {failure}", self.size));
            }
        }
        plugin.handle_counter().note_returned(HandleKind::Block);
    }
}

/// A range of a live block of device memory, which may be shared.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSpan<'a> {
    device: &'a PluginDevice,
    memory: abi::Memory,
    start: u64,
    size: u64,
}

impl<'a> DeviceSpan<'a> {
    /// A span of `size` bytes from offset `start` of the block with this handle. A span of size 0 has no memory.
    ///
    /// # Safety
    ///
    /// The range lies inside a block of the device that is not freed while the span lives.
    pub unsafe fn new(device: &'a PluginDevice, memory: abi::Memory, start: u64, size: u64) -> Self {
        Self { device, memory, start, size }
    }

    /// The length of the span in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Copies from host memory. Returns when the copy is done.
    ///
    /// # Safety
    ///
    /// Nobody else accesses the range meanwhile.
    pub unsafe fn write_bytes(self, offset: u64, source: &[u8]) -> Result<(), PluginFailure> {
        let at = self.checked_offset(offset, source.len() as u64)?;
        if source.is_empty() {
            return Ok(());
        }
        // SAFETY: the block is alive and the range lies inside it; the caller keeps others away.
        unsafe { self.device.core_calls().memory_copy_h2d(self.device.id(), self.memory, at, source) }
    }

    /// Copies to host memory. Returns when the copy is done.
    ///
    /// # Safety
    ///
    /// Nobody writes to the range meanwhile.
    pub unsafe fn read_bytes(self, offset: u64, target: &mut [u8]) -> Result<(), PluginFailure> {
        let at = self.checked_offset(offset, target.len() as u64)?;
        if target.is_empty() {
            return Ok(());
        }
        // SAFETY: the block is alive and the range lies inside it; the caller keeps others away.
        unsafe { self.device.core_calls().memory_copy_d2h(self.device.id(), target, self.memory, at) }
    }

    /// Fills a range with one byte. If the plugin leaves the slot empty, the host copies the bytes instead.
    ///
    /// # Safety
    ///
    /// Nobody else accesses the filled range meanwhile.
    pub unsafe fn fill_bytes(self, offset: u64, byte: u8, size: u64) -> Result<(), PluginFailure> {
        let at = self.checked_offset(offset, size)?;
        if size == 0 {
            return Ok(());
        }
        let device = self.device;
        // SAFETY: the block is alive and the range lies inside it; the caller keeps others away.
        let filled = unsafe { device.core_calls().memory_set(device.id(), self.memory, at, byte, size) };
        if let Some(result) = filled {
            return result;
        }
        let pattern = vec![byte; size.min(STAGING_BYTES) as usize];
        staging_chunks(size).try_for_each(|(at, length)| {
            // SAFETY: the caller keeps others away.
            unsafe { self.write_bytes(offset + at, &pattern[..length]) }
        })
    }

    /// Copies from another span: within the device, between two devices of one plugin, or through the host.
    ///
    /// # Safety
    ///
    /// Meanwhile, nobody else accesses the target range or writes to the source range. The two do not overlap.
    pub unsafe fn copy_from(
        self,
        offset: u64,
        source: DeviceSpan<'_>,
        source_offset: u64,
        size: u64,
    ) -> Result<(), PluginFailure> {
        let (to, from) = (self.checked_offset(offset, size)?, source.checked_offset(source_offset, size)?);
        if size == 0 {
            return Ok(());
        }
        let (core, id) = (self.device.core_calls(), self.device.id());
        if self.device.is_same_device(source.device) {
            // SAFETY: both blocks are alive and the ranges, which do not overlap, lie inside them.
            return unsafe { core.memory_copy_d2d(id, self.memory, to, source.memory, from, size) };
        }
        if Arc::ptr_eq(self.device.plugin(), source.device.plugin()) {
            let other = source.device.id();
            // SAFETY: both blocks are alive and of one plugin, and the ranges lie inside them.
            let copied =
                unsafe { core.memory_copy_p2p(id, self.memory, to, other, source.memory, from, size) };
            if let Some(result) = copied {
                return result;
            }
        }
        let mut staged = vec![0; size.min(STAGING_BYTES) as usize];
        staging_chunks(size).try_for_each(|(at, length)| {
            // SAFETY: the caller keeps others away from both.
            unsafe {
                source.read_bytes(source_offset + at, &mut staged[..length])?;
                self.write_bytes(offset + at, &staged[..length])
            }
        })
    }

    /// Copies from another span on a stream of the source's device. If that device cannot, the host synchronizes the stream and
    /// then copies.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, nobody else accesses the target range or writes to the source range, and neither block
    /// is freed. The two do not overlap.
    pub unsafe fn copy_from_on_stream(
        self,
        stream: &PluginStream,
        offset: u64,
        source: DeviceSpan<'_>,
        source_offset: u64,
        size: u64,
    ) -> Result<(), PluginFailure> {
        let (to, from) = (self.checked_offset(offset, size)?, source.checked_offset(source_offset, size)?);
        let (device, other) = (self.device, source.device);
        if let Some((calls, queue)) =
            stream.async_queue().filter(|_| size > 0 && other.is_same_device(stream.device()))
        {
            let (id, other_id) = (device.id(), other.id());
            let (target, origin) = (self.memory, source.memory);
            let copied = if device.is_same_device(other) {
                // SAFETY: all three are alive and of one device, the ranges lie inside; the caller keeps the blocks.
                unsafe { calls.memory_copy_d2d_async(id, queue, target, to, origin, from, size) }
            } else if Arc::ptr_eq(device.plugin(), other.plugin()) {
                // SAFETY: as above, except that there are two devices, both of one plugin.
                unsafe { calls.memory_copy_p2p_async(id, target, to, other_id, queue, origin, from, size) }
            } else {
                None
            };
            if let Some(result) = copied {
                return result;
            }
        }
        stream.synchronize()?;
        // SAFETY: what the caller promises holds for longer than this copy.
        unsafe { self.copy_from(offset, source, source_offset, size) }
    }

    /// Copies from the host on a stream. If the device cannot, the host synchronizes the stream and then copies.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, the source does not change, nobody else accesses the target range, and the block is not
    /// freed.
    pub unsafe fn write_on_stream(
        self,
        stream: &PluginStream,
        offset: u64,
        source: &[u8],
    ) -> Result<(), PluginFailure> {
        let size = source.len() as u64;
        let at = self.checked_offset(offset, size)?;
        if let Some((calls, queue)) =
            stream.async_queue().filter(|_| size > 0 && self.device.is_same_device(stream.device()))
        {
            let (id, address) = (self.device.id(), source.as_ptr().cast());
            // SAFETY: block and stream are alive and of one device, the range lies inside; the caller keeps the source.
            let copied = unsafe { calls.memory_copy_h2d_async(id, queue, self.memory, at, address, size) };
            if let Some(result) = copied {
                return result;
            }
        }
        stream.synchronize()?;
        // SAFETY: what the caller promises holds for longer than this copy.
        unsafe { self.write_bytes(offset, source) }
    }

    /// Copies to the host on a stream. If the device cannot, the host synchronizes the stream and then copies.
    ///
    /// # Safety
    ///
    /// Until the stream is past the copy, nobody accesses the target or writes to the source range, and the block is not freed.
    pub unsafe fn read_on_stream(
        self,
        stream: &PluginStream,
        offset: u64,
        target: &mut [u8],
    ) -> Result<(), PluginFailure> {
        let size = target.len() as u64;
        let at = self.checked_offset(offset, size)?;
        if let Some((calls, queue)) =
            stream.async_queue().filter(|_| size > 0 && self.device.is_same_device(stream.device()))
        {
            let (id, address) = (self.device.id(), target.as_mut_ptr().cast());
            // SAFETY: block and stream are alive and of one device, the range lies inside; the caller keeps the target.
            let copied = unsafe { calls.memory_copy_d2h_async(id, queue, address, self.memory, at, size) };
            if let Some(result) = copied {
                return result;
            }
        }
        stream.synchronize()?;
        // SAFETY: what the caller promises holds for longer than this copy.
        unsafe { self.read_bytes(offset, target) }
    }

    /// Fills a range on a stream. If the device cannot, the host synchronizes the stream and then fills.
    ///
    /// # Safety
    ///
    /// Until the stream is past the fill, nobody else accesses the filled range, and the block is not freed.
    pub unsafe fn fill_on_stream(
        self,
        stream: &PluginStream,
        offset: u64,
        byte: u8,
        size: u64,
    ) -> Result<(), PluginFailure> {
        let at = self.checked_offset(offset, size)?;
        if let Some((calls, queue)) =
            stream.async_queue().filter(|_| size > 0 && self.device.is_same_device(stream.device()))
        {
            // SAFETY: block and stream are alive and of one device, and the range lies inside.
            let filled =
                unsafe { calls.memory_set_async(self.device.id(), queue, self.memory, at, byte, size) };
            if let Some(result) = filled {
                return result;
            }
        }
        stream.synchronize()?;
        // SAFETY: what the caller promises holds for longer than this.
        unsafe { self.fill_bytes(offset, byte, size) }
    }

    /// The offset in the block of a range of the span; refuses a range that is not inside the span (rule M-2).
    fn checked_offset(&self, offset: u64, size: u64) -> Result<u64, PluginFailure> {
        if offset.checked_add(size).is_some_and(|end| end <= self.size) {
            return Ok(self.start + offset);
        }
        let found = format!("{size} bytes from {offset}");
        Err(self.device.caller_failure(
            format_args!("a range inside {} bytes of memory", self.size),
            found,
            "M-2",
        ))
    }
}

/// Offset and length of each piece of a copy through the host.
fn staging_chunks(size: u64) -> impl Iterator<Item = (u64, usize)> {
    (0..size.div_ceil(STAGING_BYTES)).map(move |number| {
        let at = number * STAGING_BYTES;
        (at, (size - at).min(STAGING_BYTES) as usize)
    })
}
