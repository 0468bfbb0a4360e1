//! The slots of the profile `core`.

#![expect(unsafe_code, reason = "copies name host memory by its address")]

use oarlock_sdk::{Core, DeviceInfo, HostPointer, Memory, MemoryRange, Result, Str, Stream, Version, slots};

use super::GpuDevices;
use crate::gpu::Gpu;

/// The device's default stream, on which calls finish before they return.
const DEFAULT_STREAM: Stream = Stream(0);

#[slots]
impl<G: Gpu> Core for GpuDevices<G> {
    fn initialize(&self) -> Result<()> {
        self.discover_devices()
    }

    fn device_init(&self, device: u32) -> Result<()> {
        self.device_session(device).map(drop)
    }

    fn device_deinit(&self, device: u32) -> Result<()> {
        self.find_device(device)?.close_session()
    }

    fn device_synchronize(&self, device: u32) -> Result<()> {
        self.device_session(device)?.finish_queues()
    }

    fn device_count(&self) -> Result<u32> {
        Ok(self.discovered_devices()?.devices.len() as u32)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok((0..self.device_count()?).collect())
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        let facts = self.device_properties(device)?;
        Ok(DeviceInfo {
            // The properties live as long as the plugin.
            name: Str::borrowed(&facts.name),
            vendor: Str::borrowed(&facts.vendor),
            bus_id: Str::borrowed(&facts.bus_id),
            compute_units: facts.compute_units,
            memory_alignment: facts.alignment,
            ..DeviceInfo::EMPTY
        })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        Ok(self.device_properties(device)?.capability)
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(self.discovered_devices()?.runtime)
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(self.discovered_devices()?.driver)
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        self.device_session(device)?.allocate_memory(self.device_properties(device)?, self.new_handle(), size)
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        let session = self.device_session(device)?;
        session.driver_gpu().free_block(session.blocks.remove_block(block, size)?)
    }

    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        self.device_session(device)?.allocate_pinned(size)
    }

    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        self.device_session(device)?.free_pinned(address, size)
    }

    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        // SAFETY: on the default stream the copy is done when this returns, while the source is still borrowed.
        unsafe { self.write_memory((device, DEFAULT_STREAM), target, source.as_ptr()) }
    }

    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        // SAFETY: on the default stream the copy is done when this returns, while the target is still borrowed.
        unsafe { self.read_memory((device, DEFAULT_STREAM), target.as_mut_ptr(), source) }
    }

    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        self.copy_memory((device, DEFAULT_STREAM), target, source)
    }

    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        self.copy_to_device((source_device, DEFAULT_STREAM), (target_device, target), source)
    }

    fn memory_set(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        self.fill_memory((device, DEFAULT_STREAM), target, byte)
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        self.device_session(device)?.memory_usage(self.device_properties(device)?)
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        Ok(self.device_properties(device)?.alignment.into())
    }

    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        Ok(self.device_properties(device)?.largest_block)
    }
}
