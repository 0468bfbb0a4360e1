//! Devices as programs hold them.

use std::ffi::CString;

use oarlock_core::Device;

use crate::pointer::to_c_string;

/// A device with its texts as C strings.
pub struct DeviceHandle {
    device: Device,
    pub(crate) name: CString,
    pub(crate) device_type: CString,
    pub(crate) description: CString,
    pub(crate) vendor: CString,
}

impl DeviceHandle {
    pub(crate) fn new(device: &Device) -> Self {
        let description = device.description();
        Self {
            name: to_c_string(device.name()),
            device_type: to_c_string(device.device_type()),
            description: to_c_string(&description.name),
            vendor: to_c_string(&description.vendor),
            device: device.clone(),
        }
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}
