//! Devices, pinned memory, and copies between them and the host.
//!
//! Everything here is synchronous; the streams decide when it is called. A copy checks both ends before it moves a byte, so a
//! failed copy has changed nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::CostLane;
use crate::device::SimDevice;
use crate::error::SimError;
use crate::mapping::HostSpan;
use crate::memory::DeviceAddress;
use crate::pinned::PinnedMemory;
use crate::script::FaultScript;

pub(crate) struct SimMachine {
    devices: BTreeMap<u32, Arc<SimDevice>>,
    pinned: Mutex<PinnedMemory>,
}

impl SimMachine {
    pub(crate) fn new(script: &FaultScript) -> Result<Self, SimError> {
        let mut devices = BTreeMap::new();
        for &id in &script.device_ids {
            devices.insert(id, Arc::new(SimDevice::new(id, script.quota, script.poison)?));
        }
        Ok(Self { devices, pinned: Mutex::default() })
    }

    pub(crate) fn find_device(&self, id: u32) -> Result<&Arc<SimDevice>, SimError> {
        self.devices.get(&id).ok_or_else(|| {
            let ids: Vec<u32> = self.devices.keys().copied().collect();
            SimError::not_found(format!("there is no device {id}, the devices are {ids:?}"))
        })
    }

    /// Locks the pinned memory. Lock order: pinned memory before a device.
    pub(crate) fn lock_pinned_memory(&self) -> MutexGuard<'_, PinnedMemory> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if the address belongs to a device other than the one that is to use it.
    pub(crate) fn check_owner(&self, device: &SimDevice, place: DeviceAddress) -> Result<(), SimError> {
        match self.devices.values().find(|other| other.reserves_address(place.address, 1)) {
            Some(owner) if owner.device_id() != device.device_id() => {
                Err(SimError::invalid_argument(format!(
                    "{place} is an address of device {}, but was given to device {}",
                    owner.device_id(),
                    device.device_id()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns an error if the host end of a copy is not host memory. Pinned memory cannot be freed while the guard is held.
    pub(crate) fn check_host(&self, span: &HostSpan) -> Result<MutexGuard<'_, PinnedMemory>, SimError> {
        let (address, length) = (span.base_address(), span.byte_length() as u64);
        if length > 0 && address == 0 {
            return Err(SimError::invalid_argument(format!(
                "a copy of {length} bytes was given a null host pointer"
            )));
        }
        if length > 0
            && let Some(owner) = self.devices.values().find(|device| device.reserves_address(address, length))
        {
            let owner = owner.device_id();
            return Err(SimError::invalid_argument(format!(
                "{address:#x} is an address of device {owner}, expected host memory"
            )));
        }
        let pinned = self.lock_pinned_memory();
        pinned.check_span(span)?;
        Ok(pinned)
    }

    /// Returns an error if the range is not usable on the device right now.
    pub(crate) fn check_device(
        &self,
        device: &SimDevice,
        place: DeviceAddress,
        length: u64,
    ) -> Result<(), SimError> {
        self.check_owner(device, place)?;
        device.with_bytes(place, length, |_| ())
    }

    pub(crate) fn copy_host_to_device(
        &self,
        device: &SimDevice,
        target: DeviceAddress,
        source: HostSpan,
        fault: CopyFault,
    ) -> Result<(), SimError> {
        self.check_owner(device, target)?;
        let _pinned = self.check_host(&source)?;
        device.with_bytes_mut(target, source.byte_length() as u64, |bytes| {
            fault.spoil_copy(bytes, |bytes| source.read_into(bytes));
        })?;
        device.charge_lane(CostLane::HostLink, source.byte_length() as u64);
        Ok(())
    }

    pub(crate) fn copy_device_to_host(
        &self,
        device: &SimDevice,
        target: HostSpan,
        source: DeviceAddress,
        fault: CopyFault,
    ) -> Result<(), SimError> {
        self.check_owner(device, source)?;
        let _pinned = self.check_host(&target)?;
        device.with_bytes(source, target.byte_length() as u64, |bytes| {
            if fault == CopyFault::None {
                return target.write_from(bytes);
            }
            let mut changed = vec![0; bytes.len()];
            target.read_into(&mut changed);
            fault.spoil_copy(&mut changed, |changed| changed.copy_from_slice(bytes));
            target.write_from(&changed);
        })?;
        device.charge_lane(CostLane::HostLink, target.byte_length() as u64);
        Ok(())
    }

    pub(crate) fn copy_within_device(
        &self,
        device: &SimDevice,
        target: DeviceAddress,
        source: DeviceAddress,
        length: u64,
        fault: CopyFault,
    ) -> Result<(), SimError> {
        self.check_owner(device, target)?;
        self.check_owner(device, source)?;
        if fault == CopyFault::None {
            return device.copy_memory(target, source, length);
        }
        let before = device.with_bytes(target, length, <[u8]>::to_vec)?;
        device.copy_memory(target, source, length)?;
        device.with_bytes_mut(target, length, |bytes| {
            let copied = bytes.to_vec();
            bytes.copy_from_slice(&before);
            fault.spoil_copy(bytes, |bytes| bytes.copy_from_slice(&copied));
        })
    }

    pub(crate) fn copy_between_devices(
        &self,
        (target_device, target): (&SimDevice, DeviceAddress),
        (source_device, source): (&SimDevice, DeviceAddress),
        length: u64,
        fault: CopyFault,
    ) -> Result<(), SimError> {
        if target_device.device_id() == source_device.device_id() {
            return self.copy_within_device(target_device, target, source, length, fault);
        }
        self.check_device(target_device, target, length)?;
        self.check_owner(source_device, source)?;
        // The copy goes through a buffer and never holds the locks of two devices, so their order does not matter.
        let moved = source_device.with_bytes(source, length, <[u8]>::to_vec)?;
        target_device.check_alive()?;
        target_device.with_bytes_mut(target, length, |bytes| {
            fault.spoil_copy(bytes, |bytes| bytes.copy_from_slice(&moved));
        })?;
        source_device.charge_lane(CostLane::PeerLink, length);
        target_device.charge_lane(CostLane::PeerLink, length);
        Ok(())
    }

    pub(crate) fn set_memory(
        &self,
        device: &SimDevice,
        target: DeviceAddress,
        byte: u8,
        length: u64,
    ) -> Result<(), SimError> {
        self.check_owner(device, target)?;
        device.with_bytes_mut(target, length, |bytes| bytes.fill(byte))?;
        device.charge_bytes(length);
        Ok(())
    }
}

/// What a script does to the bytes that a call copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyFault {
    None,
    /// One bit is flipped, the smallest corruption of a copy.
    Corrupt,
    /// Only the first half is copied.
    Shorten,
}

impl CopyFault {
    /// Lets `copy` write the target, and spoils it.
    fn spoil_copy(self, target: &mut [u8], copy: impl FnOnce(&mut [u8])) {
        let half = target.len() / 2;
        let rest = if self == Self::Shorten { target[half..].to_vec() } else { Vec::new() };
        copy(target);
        match self {
            Self::None => {}
            Self::Corrupt => target.iter_mut().take(1).for_each(|first| *first ^= 1),
            Self::Shorten => target[half..].copy_from_slice(&rest),
        }
    }
}
