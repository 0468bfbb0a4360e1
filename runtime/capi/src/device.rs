//! Devices, as C queries them.

#![expect(unsafe_code, reason = "handles come from C as pointers")]

use core::ffi::c_char;
use std::ffi::CString;
use std::ptr;

use oarlock_core::{Error, Result};
use oarlock_host::DeviceFlags;

use crate::c_types::{MemoryStatistics, SUPPORT_LEVELS, SupportLevel};
use crate::device_handle::DeviceHandle;
use crate::pointer::{deref_nullable, deref_required, fill_struct};

unsafe fn device_text(
    device: *const DeviceHandle,
    text: impl Fn(&DeviceHandle) -> &CString,
) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_nullable(device) }.map_or(ptr::null(), |device| text(device).as_ptr())
}

pub(crate) unsafe fn device_name(device: *const DeviceHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { device_text(device, |device| &device.name) }
}

pub(crate) unsafe fn device_type(device: *const DeviceHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { device_text(device, |device| &device.device_type) }
}

pub(crate) unsafe fn device_description(device: *const DeviceHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { device_text(device, |device| &device.description) }
}

pub(crate) unsafe fn device_vendor(device: *const DeviceHandle) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { device_text(device, |device| &device.vendor) }
}

pub(crate) unsafe fn support_level(device: *const DeviceHandle) -> SupportLevel {
    // SAFETY: guaranteed by the caller.
    let level = unsafe { deref_nullable(device) }
        .map(|handle| handle.device().host_device().plugin().info().support_level);
    let position = SUPPORT_LEVELS.iter().zip(0..).find(|((_, known), _)| Some(*known) == level);
    SupportLevel(position.map_or(0, |(_, number)| number))
}

pub(crate) unsafe fn shares_host_memory(device: *const DeviceHandle) -> u32 {
    let both = DeviceFlags::HOST_ADDRESSABLE | DeviceFlags::SHARES_HOST_MEMORY;
    // SAFETY: guaranteed by the caller.
    let device = unsafe { deref_nullable(device) };
    device.is_some_and(|handle| handle.device().description().flags.contains(both)).into()
}

pub(crate) unsafe fn device_memory(
    device: *const DeviceHandle,
    statistics: *mut MemoryStatistics,
) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    let device = unsafe { deref_required(device, "device")? }.device();
    let whole =
        device.host_device().memory_stats().map_err(|failure| Error::from(failure).with_device(device))?;
    let pool = device.memory_pool()?.statistics();
    let filled = MemoryStatistics {
        size: 0,
        total: whole.total,
        free: whole.free,
        allocated: pool.allocated,
        reserved: pool.reserved,
        peak_allocated: pool.peak_allocated,
        peak_reserved: pool.peak_reserved,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { fill_struct(statistics, &filled, "statistics") }
}

pub(crate) unsafe fn synchronize_device(device: *const DeviceHandle) -> Result<()> {
    // SAFETY: guaranteed by the caller.
    unsafe { deref_required(device, "device")? }.device().synchronize()
}
