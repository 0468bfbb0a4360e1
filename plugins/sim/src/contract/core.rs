//! The slots of the profile `core`.

#![expect(unsafe_code, reason = "the engine takes the host's ends of copies as raw spans")]

use std::sync::PoisonError;

use oarlock_sdk::{
    Core, DeviceFlags, DeviceInfo, HostPointer, LogLevel, Memory, MemoryRange, PluginError, Result, Str,
    Version, slots,
};

use super::{SimPlugin, contract_result, device_address};
use crate::engine::SimEngine;
use crate::mapping::HostSpan;
use crate::memory::ALIGNMENT;

/// Version of driver, runtime and hardware alike: there is nothing below a simulated device.
const SIM_VERSION: Version = Version { major: 1, ..Version::EMPTY };

#[slots]
impl Core for SimPlugin {
    fn initialize(&self) -> Result<()> {
        let engine = contract_result(SimEngine::new(self.script.clone()))?;
        contract_result(engine.count_call("initialize", None))?;
        self.engine
            .set(engine)
            .map_err(|_| PluginError::precondition_not_met("expected one `initialize`, found a second"))
    }

    fn finalize(&self) -> Result<()> {
        let engine = self.started_engine()?;
        let answer = contract_result(engine.count_call("finalize", None));
        if self.script.trace {
            let calls: Vec<String> =
                engine.call_counts().iter().map(|(call, count)| format!("{call} {count}")).collect();
            self.host.log(LogLevel::INFO, &format!("calls: {}", calls.join(", ")));
        }
        engine.shut_down();
        answer
    }

    fn device_init(&self, device: u32) -> Result<()> {
        let engine = self.started_engine()?;
        contract_result(engine.count_call("device_init", Some(device)))?;
        let stream = contract_result(engine.stream_create(device))?;
        self.own_streams.write().unwrap_or_else(PoisonError::into_inner).push((device, stream));
        Ok(())
    }

    fn device_deinit(&self, device: u32) -> Result<()> {
        contract_result(self.started_engine()?.count_call("device_deinit", Some(device)))
    }

    fn device_synchronize(&self, device: u32) -> Result<()> {
        contract_result(self.started_engine()?.device_synchronize(device))
    }

    fn device_count(&self) -> Result<u32> {
        contract_result(self.started_engine()?.device_count())
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        contract_result(self.started_engine()?.device_list())
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        contract_result(self.started_engine()?.count_call("device_info", Some(device)))?;
        Ok(DeviceInfo {
            name: Str::new("Oarlock simulated device"),
            vendor: Str::new("Oarlock"),
            bits: DeviceFlags::SIMULATED,
            compute_units: 1,
            memory_alignment: ALIGNMENT as u32,
            ..DeviceInfo::EMPTY
        })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        contract_result(self.started_engine()?.count_call("compute_capability", Some(device)))?;
        Ok(SIM_VERSION)
    }

    fn runtime_version(&self) -> Result<Version> {
        contract_result(self.started_engine()?.count_call("runtime_version", None))?;
        Ok(SIM_VERSION)
    }

    fn driver_version(&self) -> Result<Version> {
        contract_result(self.started_engine()?.count_call("driver_version", None))?;
        Ok(SIM_VERSION)
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        contract_result(self.started_engine()?.memory_allocate(device, size)).map(Memory)
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        contract_result(self.started_engine()?.memory_deallocate(device, block.0, size))
    }

    fn host_memory_allocate(&self, device: u32, size: u64) -> Result<HostPointer> {
        let address = contract_result(self.started_engine()?.host_memory_allocate(device, size))?;
        HostPointer::new(address.cast(), "address")
    }

    fn host_memory_deallocate(&self, device: u32, address: HostPointer, size: u64) -> Result<()> {
        contract_result(self.started_engine()?.host_memory_deallocate(device, address.as_ptr().cast(), size))
    }

    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        // SAFETY: the slice is borrowed until the call returns, and the copy is done by then.
        let source = unsafe { HostSpan::new(source.as_ptr().cast_mut(), source.len()) };
        contract_result(self.started_engine()?.memory_copy_h2d(device, device_address(target), source))
    }

    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        // SAFETY: the slice is borrowed exclusively until the call returns, and the copy is done by then.
        let target = unsafe { HostSpan::new(target.as_mut_ptr(), target.len()) };
        contract_result(self.started_engine()?.memory_copy_d2h(device, target, device_address(source)))
    }

    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        contract_result(self.started_engine()?.memory_copy_d2d(
            device,
            device_address(target),
            device_address(source),
            source.size,
        ))
    }

    fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: MemoryRange,
        source_device: u32,
        source: MemoryRange,
    ) -> Result<()> {
        contract_result(self.started_engine()?.memory_copy_p2p(
            target_device,
            device_address(target),
            source_device,
            device_address(source),
            source.size,
        ))
    }

    fn memory_set(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        contract_result(self.started_engine()?.memory_set(device, device_address(target), byte, target.size))
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        let statistics = contract_result(self.started_engine()?.memory_stats(device))?;
        Ok((statistics.total, statistics.free))
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        contract_result(self.started_engine()?.count_call("min_chunk_size", Some(device)))?;
        Ok(ALIGNMENT)
    }
}
