//! One simulated device: its memory, its clock, and whether it is still there.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::clock::{Lane, VirtualClock};
use crate::element::Element;
use crate::error::SimError;
use crate::memory::{DeviceMemory, MemoryStatistics, Place};

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

    /// The id that programs name the device by.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The present moment on the device, in virtual nanoseconds.
    pub fn now(&self) -> u64 {
        self.lock().clock.now()
    }

    /// Moves the clock by the cost of a kernel that touches `bytes` bytes.
    pub fn charge(&self, bytes: u64) {
        self.lock().clock.charge(Lane::DeviceMemory, bytes);
    }

    /// Lets `look` see the bytes of an allocation.
    pub fn with_bytes<R>(
        &self,
        place: impl Into<Place>,
        length: u64,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, SimError> {
        let state = self.lock();
        state.memory.bytes(place.into(), length).map(look)
    }

    /// Lets `change` see and change the bytes of an allocation.
    pub fn with_bytes_mut<R>(
        &self,
        place: impl Into<Place>,
        length: u64,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, SimError> {
        let mut state = self.lock();
        state.memory.bytes_mut(place.into(), length).map(change)
    }

    /// Reads `count` values.
    pub fn read<T: Element>(&self, place: impl Into<Place>, count: usize) -> Result<Vec<T>, SimError> {
        let values = |bytes: &[u8]| bytes.chunks_exact(T::SIZE).map(T::from_bytes).collect();
        self.with_bytes(place, (count as u64).saturating_mul(T::SIZE as u64), values)
    }

    /// Writes all of `values`.
    pub fn write<T: Element>(&self, place: impl Into<Place>, values: &[T]) -> Result<(), SimError> {
        self.with_bytes_mut(place, size_of_val(values) as u64, |bytes| {
            for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(T::SIZE)) {
                value.to_bytes(bytes);
            }
        })
    }

    pub(crate) fn allocate(&self, size: u64) -> Result<u64, SimError> {
        let mut state = self.lock();
        state.clock.charge(Lane::Command, 0);
        state.memory.allocate(size)
    }

    pub(crate) fn deallocate(&self, address: u64, size: u64) -> Result<(), SimError> {
        let mut state = self.lock();
        state.clock.charge(Lane::Command, 0);
        state.memory.deallocate(address, size)
    }

    pub(crate) fn copy(&self, target: Place, source: Place, length: u64) -> Result<(), SimError> {
        let mut state = self.lock();
        state.clock.charge(Lane::DeviceMemory, length.saturating_mul(2));
        state.memory.copy(target, source, length)
    }

    pub(crate) fn charge_lane(&self, lane: Lane, bytes: u64) {
        self.lock().clock.charge(lane, bytes);
    }

    pub(crate) fn delay(&self, time: Duration) {
        self.lock().clock.delay(time);
    }

    pub(crate) fn reserves(&self, address: u64, length: u64) -> bool {
        self.lock().memory.reserves(address, length)
    }

    pub(crate) fn statistics(&self) -> MemoryStatistics {
        self.lock().memory.statistics()
    }

    pub(crate) fn lose(&self, error: SimError) {
        // Only the first loss counts; the device cannot be lost again.
        let _ = self.lost.set(error);
    }

    /// An error once the device is lost.
    pub(crate) fn alive(&self) -> Result<(), SimError> {
        self.lost.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, DeviceState> {
        // A kernel that panicked in the middle of its work left bytes behind, never a broken book of allocations.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
