//! Calls that move bytes, synchronously or on a stream.
//!
//! A call on a stream checks its ranges twice: when it is made, where a mistake is easiest to find, and again when it runs,
//! because the memory may be freed by then.

use std::sync::Arc;

use super::{AdmittedCall, SimEngine};
use crate::device::SimDevice;
use crate::error::SimError;
use crate::machine::{CopyFault, SimMachine};
use crate::mapping::HostSpan;
use crate::memory::DeviceAddress;
use crate::stream::{StreamId, StreamWork};

impl SimEngine {
    /// Copies from the host to a device, synchronously.
    pub fn memory_copy_h2d(
        &self,
        device: u32,
        target: impl Into<DeviceAddress>,
        source: HostSpan,
    ) -> Result<(), SimError> {
        let (device, fault) = self.admit_call("memory_copy_h2d", device)?.into_immediate()?;
        self.machine.copy_host_to_device(&device, target.into(), source, fault)
    }

    /// Copies from a device to the host, synchronously.
    pub fn memory_copy_d2h(
        &self,
        device: u32,
        target: HostSpan,
        source: impl Into<DeviceAddress>,
    ) -> Result<(), SimError> {
        let (device, fault) = self.admit_call("memory_copy_d2h", device)?.into_immediate()?;
        self.machine.copy_device_to_host(&device, target, source.into(), fault)
    }

    /// Copies within a device, synchronously. The ranges must not overlap.
    pub fn memory_copy_d2d(
        &self,
        device: u32,
        target: impl Into<DeviceAddress>,
        source: impl Into<DeviceAddress>,
        length: u64,
    ) -> Result<(), SimError> {
        let (device, fault) = self.admit_call("memory_copy_d2d", device)?.into_immediate()?;
        self.machine.copy_within_device(&device, target.into(), source.into(), length, fault)
    }

    /// Copies from one device to another, synchronously. Counts as a call on the source device.
    pub fn memory_copy_p2p(
        &self,
        target_device: u32,
        target: impl Into<DeviceAddress>,
        source_device: u32,
        source: impl Into<DeviceAddress>,
        length: u64,
    ) -> Result<(), SimError> {
        let (source_device, fault) = self.admit_call("memory_copy_p2p", source_device)?.into_immediate()?;
        let target_device = self.find_device(target_device)?;
        target_device.check_alive()?;
        let (target, source) = ((&*target_device, target.into()), (&*source_device, source.into()));
        self.machine.copy_between_devices(target, source, length, fault)
    }

    /// Fills device memory with one byte, synchronously.
    pub fn memory_set(
        &self,
        device: u32,
        target: impl Into<DeviceAddress>,
        byte: u8,
        length: u64,
    ) -> Result<(), SimError> {
        let (device, _) = self.admit_call("memory_set", device)?.into_immediate()?;
        self.machine.set_memory(&device, target.into(), byte, length)
    }

    /// Copies from the host to a device, on a stream.
    pub fn memory_copy_h2d_async(
        &self,
        device: u32,
        stream: StreamId,
        target: impl Into<DeviceAddress>,
        source: HostSpan,
    ) -> Result<(), SimError> {
        let target = target.into();
        let admitted = self.admit_call("memory_copy_h2d_async", device)?;
        drop(self.machine.check_host(&source)?);
        self.machine.check_device(&admitted.device, target, source.byte_length() as u64)?;
        self.enqueue_copy("memory_copy_h2d_async", admitted, stream, move |machine, device, fault| {
            machine.copy_host_to_device(device, target, source, fault)
        })
    }

    /// Copies from a device to the host, on a stream.
    pub fn memory_copy_d2h_async(
        &self,
        device: u32,
        stream: StreamId,
        target: HostSpan,
        source: impl Into<DeviceAddress>,
    ) -> Result<(), SimError> {
        let source = source.into();
        let admitted = self.admit_call("memory_copy_d2h_async", device)?;
        drop(self.machine.check_host(&target)?);
        self.machine.check_device(&admitted.device, source, target.byte_length() as u64)?;
        self.enqueue_copy("memory_copy_d2h_async", admitted, stream, move |machine, device, fault| {
            machine.copy_device_to_host(device, target, source, fault)
        })
    }

    /// Copies within a device, on a stream. The ranges must not overlap.
    pub fn memory_copy_d2d_async(
        &self,
        device: u32,
        stream: StreamId,
        target: impl Into<DeviceAddress>,
        source: impl Into<DeviceAddress>,
        length: u64,
    ) -> Result<(), SimError> {
        let (target, source) = (target.into(), source.into());
        let admitted = self.admit_call("memory_copy_d2d_async", device)?;
        self.machine.check_device(&admitted.device, target, length)?;
        self.machine.check_device(&admitted.device, source, length)?;
        self.enqueue_copy("memory_copy_d2d_async", admitted, stream, move |machine, device, fault| {
            machine.copy_within_device(device, target, source, length, fault)
        })
    }

    /// Copies from one device to another, on a stream of the source device.
    pub fn memory_copy_p2p_async(
        &self,
        target_device: u32,
        target: impl Into<DeviceAddress>,
        source_device: u32,
        stream: StreamId,
        source: impl Into<DeviceAddress>,
        length: u64,
    ) -> Result<(), SimError> {
        let (target, source) = (target.into(), source.into());
        let admitted = self.admit_call("memory_copy_p2p_async", source_device)?;
        let target_device = self.find_device(target_device)?;
        target_device.check_alive()?;
        self.machine.check_device(&target_device, target, length)?;
        self.machine.check_device(&admitted.device, source, length)?;
        self.enqueue_copy("memory_copy_p2p_async", admitted, stream, move |machine, device, fault| {
            machine.copy_between_devices((&target_device, target), (device, source), length, fault)
        })
    }

    /// Fills device memory with one byte, on a stream.
    pub fn memory_set_async(
        &self,
        device: u32,
        stream: StreamId,
        target: impl Into<DeviceAddress>,
        byte: u8,
        length: u64,
    ) -> Result<(), SimError> {
        let target = target.into();
        let admitted = self.admit_call("memory_set_async", device)?;
        self.machine.check_device(&admitted.device, target, length)?;
        self.enqueue_copy("memory_set_async", admitted, stream, move |machine, device, _| {
            machine.set_memory(device, target, byte, length)
        })
    }

    /// Frees device memory when the stream gets there.
    pub fn memory_deallocate_async(
        &self,
        device: u32,
        stream: StreamId,
        address: u64,
        size: u64,
    ) -> Result<(), SimError> {
        let admitted = self.admit_call("memory_deallocate_async", device)?;
        self.machine.check_device(&admitted.device, DeviceAddress::from(address), size)?;
        self.enqueue_copy("memory_deallocate_async", admitted, stream, move |_, device, _| {
            device.deallocate_memory(address, size)
        })
    }

    fn enqueue_copy(
        &self,
        call: &'static str,
        admitted: AdmittedCall,
        stream: StreamId,
        copy: impl FnOnce(&SimMachine, &SimDevice, CopyFault) -> Result<(), SimError> + Send + 'static,
    ) -> Result<(), SimError> {
        let AdmittedCall { device, fault, later } = admitted;
        let machine = Arc::clone(&self.machine);
        let task = move |device: &SimDevice| later.map_or_else(|| copy(&machine, device, fault), Err);
        self.scheduler.enqueue_work(device.device_id(), stream, call, StreamWork::Task(Box::new(task)))
    }
}
