//! The slots of the profile `core`.

#![expect(unsafe_code, reason = "buffers are made by a C function")]

use std::sync::Arc;

use oarlock_sdk::{
    Core, DeviceInfo, Error, HostPointer, Memory, Result, Str, Stream, Version, ensure, slots,
};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

use crate::copies;
use crate::error::failed;
use crate::memory::Block;
use crate::state::OpenCl;

/// The device's own queue.
const OWN: Stream = Stream(0);

#[slots]
impl Core for OpenCl {
    fn initialize(&self) -> Result<()> {
        self.open()
    }

    fn device_deinit(&self, device: u32) -> Result<()> {
        let found = self.device(device)?;
        let finished = found.finish();
        found.clear();
        self.programs.forget(device);
        finished
    }

    fn device_synchronize(&self, device: u32) -> Result<()> {
        self.device(device)?.finish()
    }

    fn device_count(&self) -> Result<u32> {
        Ok(self.devices()?.len() as u32)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok((0..self.device_count()?).collect())
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        let facts = &self.device(device)?.facts;
        Ok(DeviceInfo {
            // The facts live as long as the plugin.
            name: Str::borrowed(&facts.name),
            vendor: Str::borrowed(&facts.vendor),
            compute_units: facts.compute_units,
            memory_alignment: facts.alignment as u32,
            ..DeviceInfo::EMPTY
        })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        Ok(self.device(device)?.facts.opencl)
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(self.devices()?.first().map_or(Version::EMPTY, |device| device.facts.opencl))
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(self.devices()?.first().map_or(Version::EMPTY, |device| device.facts.driver))
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        let device = self.device(device)?;
        let free = device.facts.memory.saturating_sub(device.blocks.taken());
        let most = device.facts.largest_block.min(free);
        if size > most {
            return Err(Error::resource_exhausted(format!(
                "expected a block of at most {most} bytes on `{}`, found a request for {size}",
                device.facts.name
            ))
            .rule("M-3"));
        }
        ensure!(size > 0, invalid_argument, "expected a request for 1 byte or more, found 0");
        // SAFETY: the context is alive, and no host memory is handed over.
        let buffer = unsafe {
            Buffer::create(&device.context, CL_MEM_READ_WRITE, size as usize, std::ptr::null_mut())
        };
        let buffer = buffer.map_err(|error| failed("clCreateBuffer", error))?;
        Ok(device.blocks.insert(self.new_handle(), Block { buffer: Arc::new(buffer), size }))
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        self.device(device)?.blocks.remove(block, size)
    }

    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let (device, queue) = self.queue(device, OWN)?;
        device.pinned.allocate(device, &queue, size)
    }

    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let (device, queue) = self.queue(device, OWN)?;
        device.pinned.deallocate(&queue, address, size)
    }

    fn memory_copy_h2d(&self, device: u32, target: Memory, target_offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: in the device's own queue the copy is done when this returns.
        unsafe {
            copies::write(self, (device, OWN), (target, target_offset), source.as_ptr(), source.len() as u64)
        }
    }

    fn memory_copy_d2h(
        &self,
        device: u32,
        target: &mut [u8],
        source: Memory,
        source_offset: u64,
    ) -> Result<()> {
        let size = target.len() as u64;
        // SAFETY: as above.
        unsafe { copies::read(self, (device, OWN), target.as_mut_ptr(), (source, source_offset), size) }
    }

    fn memory_copy_d2d(
        &self,
        device: u32,
        target: Memory,
        target_offset: u64,
        source: Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        copies::copy(self, (device, OWN), (target, target_offset), (source, source_offset), size)
    }

    fn memory_set(&self, device: u32, target: Memory, target_offset: u64, byte: u8, size: u64) -> Result<()> {
        copies::fill(self, (device, OWN), (target, target_offset), byte, size)
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        // OpenCL does not say what others use: free is what this process has not taken.
        let device = self.device(device)?;
        Ok((device.facts.memory, device.facts.memory.saturating_sub(device.blocks.taken())))
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        Ok(self.device(device)?.facts.alignment)
    }

    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        Ok(self.device(device)?.facts.largest_block)
    }
}
