//! A device that was found, with its properties.

#![expect(unsafe_code, reason = "devices are asked by C functions")]

use std::ffi::c_char;

use cudarc::driver::result::device as driver;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute, cuDeviceGetPCIBusId};
use oarlock_portable::{DetectedGpu, DeviceProperties};
use oarlock_sdk::{Result, Version};

use super::CudaGpu;
use crate::error::driver_error;

/// Alignment of every block from the driver, in bytes.
const BLOCK_ALIGNMENT: u32 = 256;

/// A device that is not open yet.
pub(crate) struct DetectedCudaDevice {
    pub(crate) raw: CUdevice,
    /// Target architecture for NVRTC, such as `sm_90`.
    pub(crate) architecture: String,
}

/// Queries the properties of a device.
pub(crate) fn read_device(raw: CUdevice) -> Result<DetectedGpu<CudaGpu>> {
    let attribute = |attribute| {
        // SAFETY: the driver listed the device.
        let value = unsafe { driver::get_attribute(raw, attribute) };
        let value = value.map_err(|error| driver_error("cuDeviceGetAttribute", error))?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // SAFETY: the driver listed the device.
    let memory = unsafe { driver::total_mem(raw) };
    let memory = memory.map_err(|error| driver_error("cuDeviceTotalMem", error))? as u64;
    let facts = DeviceProperties {
        name: driver::get_name(raw).map_err(|error| driver_error("cuDeviceGetName", error))?,
        vendor: "NVIDIA".to_owned(),
        bus_id: bus_id(raw)?,
        compute_units: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        alignment: BLOCK_ALIGNMENT,
        memory,
        largest_block: memory,
        capability: Version { major, minor, ..Version::EMPTY },
        has_f64: true,
    };
    Ok(DetectedGpu::new(facts, DetectedCudaDevice { raw, architecture: format!("sm_{major}{minor}") }))
}

fn bus_id(device: CUdevice) -> Result<String> {
    let mut text = [0 as c_char; 32];
    // SAFETY: the buffer has the length passed with it, and the driver zero-terminates the text.
    let code = unsafe { cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, device) };
    code.result().map_err(|error| driver_error("cuDeviceGetPCIBusId", error))?;
    // Characters of C have a sign on x86-64 and none on ARM.
    let letters = text.iter().take_while(|letter| **letter != 0).flat_map(|letter| letter.to_ne_bytes());
    Ok(letters.map(char::from).collect())
}
