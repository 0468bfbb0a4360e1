//! One simulated device: its memory, its clock, and whether it is lost.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::{CostLane, VirtualClock};
use crate::element::SimElement;
use crate::error::SimError;
use crate::memory::{DeviceAddress, DeviceMemory, MemoryStatistics};

/// A device as kernels see it: bytes behind addresses, and a clock.
///
/// Every method takes the device's lock for its own duration, so the closures given to [`SimDevice::with_bytes`] and
/// [`SimDevice::with_bytes_mut`] must not call any method of the same device.
#[derive(Debug)]
pub struct SimDevice {
    id: u32,
    state: Mutex<DeviceState>,
    lost: OnceLock<SimError>,
}

#[derive(Debug)]
struct DeviceState {
    memory: DeviceMemory,
    clock: VirtualClock,
}

impl SimDevice {
    pub(crate) fn new(id: u32, quota: u64, poison: bool) -> Result<Self, SimError> {
        let state = DeviceState { memory: DeviceMemory::new(quota, poison)?, clock: VirtualClock::default() };
        Ok(Self { id, state: Mutex::new(state), lost: OnceLock::new() })
    }

    /// The id by which programs select the device.
    pub fn device_id(&self) -> u32 {
        self.id
    }

    /// The device's virtual time in nanoseconds.
    pub fn now(&self) -> u64 {
        self.lock_state().clock.now()
    }

    /// Advances the clock by the cost of a kernel that touches `bytes` bytes.
    pub fn charge_bytes(&self, bytes: u64) {
        self.lock_state().clock.charge_bytes(CostLane::DeviceMemory, bytes);
    }

    /// Calls `look` with the bytes of an allocation.
    pub fn with_bytes<R>(
        &self,
        place: impl Into<DeviceAddress>,
        length: u64,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, SimError> {
        let state = self.lock_state();
        state.memory.access_bytes(place.into(), length).map(look)
    }

    /// Calls `change` with the bytes of an allocation, for writing.
    pub fn with_bytes_mut<R>(
        &self,
        place: impl Into<DeviceAddress>,
        length: u64,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, SimError> {
        let mut state = self.lock_state();
        state.memory.access_bytes_mut(place.into(), length).map(change)
    }

    /// Reads `count` values.
    pub fn read_elements<T: SimElement>(
        &self,
        place: impl Into<DeviceAddress>,
        count: usize,
    ) -> Result<Vec<T>, SimError> {
        let values = |bytes: &[u8]| bytes.chunks_exact(T::SIZE).map(T::from_bytes).collect();
        self.with_bytes(place, (count as u64).saturating_mul(T::SIZE as u64), values)
    }

    /// Writes all of `values`.
    pub fn write_elements<T: SimElement>(
        &self,
        place: impl Into<DeviceAddress>,
        values: &[T],
    ) -> Result<(), SimError> {
        self.with_bytes_mut(place, size_of_val(values) as u64, |bytes| {
            for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(T::SIZE)) {
                value.to_bytes(bytes);
            }
        })
    }

    pub(crate) fn allocate_memory(&self, size: u64) -> Result<u64, SimError> {
        let mut state = self.lock_state();
        state.clock.charge_bytes(CostLane::Command, 0);
        state.memory.allocate_block(size)
    }

    pub(crate) fn deallocate_memory(&self, address: u64, size: u64) -> Result<(), SimError> {
        let mut state = self.lock_state();
        state.clock.charge_bytes(CostLane::Command, 0);
        state.memory.deallocate_block(address, size)
    }

    pub(crate) fn copy_memory(
        &self,
        target: DeviceAddress,
        source: DeviceAddress,
        length: u64,
    ) -> Result<(), SimError> {
        let mut state = self.lock_state();
        state.clock.charge_bytes(CostLane::DeviceMemory, length.saturating_mul(2));
        state.memory.copy_ranges(target, source, length)
    }

    pub(crate) fn charge_lane(&self, lane: CostLane, bytes: u64) {
        self.lock_state().clock.charge_bytes(lane, bytes);
    }

    pub(crate) fn advance_clock(&self, time: Duration) {
        self.lock_state().clock.advance_by(time);
    }

    pub(crate) fn reserves_address(&self, address: u64, length: u64) -> bool {
        self.lock_state().memory.reserves_address(address, length)
    }

    pub(crate) fn memory_statistics(&self) -> MemoryStatistics {
        self.lock_state().memory.memory_statistics()
    }

    pub(crate) fn mark_lost(&self, error: SimError) {
        // Only the first loss counts.
        let _ = self.lost.set(error);
    }

    /// Returns an error once the device is lost.
    pub(crate) fn check_alive(&self) -> Result<(), SimError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn lock_state(&self) -> MutexGuard<'_, DeviceState> {
        // A kernel that panicked halfway may leave wrong bytes behind, but never a broken allocation table.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
