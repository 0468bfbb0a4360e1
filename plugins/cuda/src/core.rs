//! The slots of the profile `core`.

#![expect(unsafe_code, reason = "copies name host memory by its address")]

use oarlock_sdk::{Core, DeviceInfo, HostPointer, Memory, Result, Str, Stream, Version, slots};

use crate::copies;
use crate::device::ALIGNMENT;
use crate::state::Cuda;

/// The device's own stream.
const OWN: Stream = Stream(0);

#[slots]
impl Core for Cuda {
    fn initialize(&self) -> Result<()> {
        self.open()
    }

    fn device_init(&self, device: u32) -> Result<()> {
        self.session(device).map(drop)
    }

    fn device_deinit(&self, device: u32) -> Result<()> {
        let closed = self.device(device)?.close();
        self.programs.forget(device);
        closed
    }

    fn device_synchronize(&self, device: u32) -> Result<()> {
        self.session(device)?.finish()
    }

    fn device_count(&self) -> Result<u32> {
        Ok(self.found()?.devices.len() as u32)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok((0..self.device_count()?).collect())
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        let facts = &self.device(device)?.facts;
        Ok(DeviceInfo {
            // The facts live as long as the plugin.
            name: Str::borrowed(&facts.name),
            vendor: Str::borrowed("NVIDIA"),
            bus_id: Str::borrowed(&facts.bus_id),
            compute_units: facts.compute_units,
            memory_alignment: ALIGNMENT,
            ..DeviceInfo::EMPTY
        })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        Ok(self.device(device)?.facts.capability)
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(self.found()?.cuda)
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(self.found()?.driver)
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        self.session(device)?.allocate(size)
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        self.session(device)?.deallocate(block, size)
    }

    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let session = self.session(device)?;
        session.pinned.allocate(&session.context, size)
    }

    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        let session = self.session(device)?;
        session.pinned.deallocate(&session.context, address, size)
    }

    fn memory_copy_h2d(&self, device: u32, target: Memory, target_offset: u64, source: &[u8]) -> Result<()> {
        // SAFETY: in the device's own stream the copy is done when this returns.
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

    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: Memory,
        target_offset: u64,
        source_device: u32,
        source: Memory,
        source_offset: u64,
        size: u64,
    ) -> Result<()> {
        let target = (target_device, target, target_offset);
        copies::across(self, (source_device, OWN), target, (source, source_offset), size)
    }

    fn memory_set(&self, device: u32, target: Memory, target_offset: u64, byte: u8, size: u64) -> Result<()> {
        copies::fill(self, (device, OWN), (target, target_offset), byte, size)
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        self.session(device)?.memory()
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        self.device(device)?;
        Ok(ALIGNMENT.into())
    }

    fn max_alloc_size(&self, device: u32) -> Result<u64> {
        Ok(self.device(device)?.facts.memory)
    }
}
