//! One device: what it is, and what it has while it is in use.

#![expect(unsafe_code, reason = "devices are asked by C functions")]

use std::ffi::c_char;
use std::sync::{Arc, PoisonError, RwLock};

use cudarc::driver::result::device as driver;
use cudarc::driver::sys::{CUdevice, CUdevice_attribute, cuDeviceGetPCIBusId};
use oarlock_sdk::{Result, Version};

use crate::error::failed;
use crate::session::Session;

/// The alignment of every block the driver hands out, in bytes.
pub(crate) const ALIGNMENT: u32 = 256;

/// What is known of a device from the start.
pub(crate) struct Facts {
    pub(crate) name: String,
    /// Where it sits, as `0000:3B:00.0`.
    pub(crate) bus_id: String,
    pub(crate) compute_units: u32,
    pub(crate) memory: u64,
    pub(crate) capability: Version,
    /// What NVRTC is told to compile for, such as `sm_90`.
    pub(crate) architecture: String,
}

impl Facts {
    fn read(device: CUdevice) -> Result<Self> {
        let attribute = |attribute| {
            // SAFETY: the device is one the driver listed.
            let value = unsafe { driver::get_attribute(device, attribute) };
            let value = value.map_err(|error| failed("cuDeviceGetAttribute", error))?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        // SAFETY: as above.
        let memory = unsafe { driver::total_mem(device) };
        Ok(Self {
            name: driver::get_name(device).map_err(|error| failed("cuDeviceGetName", error))?,
            bus_id: bus_id(device)?,
            compute_units: attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            memory: memory.map_err(|error| failed("cuDeviceTotalMem", error))? as u64,
            capability: Version { major, minor, ..Version::EMPTY },
            architecture: format!("sm_{major}{minor}"),
        })
    }
}

fn bus_id(device: CUdevice) -> Result<String> {
    let mut text = [0 as c_char; 32];
    // SAFETY: there is room for as many letters as are said, the last of which is the end.
    let code = unsafe { cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as i32, device) };
    code.result().map_err(|error| failed("cuDeviceGetPCIBusId", error))?;
    let letters = text.iter().take_while(|letter| **letter != 0);
    Ok(letters.map(|letter| char::from(letter.cast_unsigned())).collect())
}

/// One device.
pub(crate) struct Device {
    raw: CUdevice,
    pub(crate) facts: Facts,
    session: RwLock<Option<Arc<Session>>>,
}

impl Device {
    pub(crate) fn new(raw: CUdevice) -> Result<Self> {
        Ok(Self { raw, facts: Facts::read(raw)?, session: RwLock::default() })
    }

    /// What the device has while it is in use. The first call readies it, which takes memory of the device.
    pub(crate) fn session(&self) -> Result<Arc<Session>> {
        if let Some(session) = &*self.session.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(Arc::clone(session));
        }
        let mut session = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &*session {
            return Ok(Arc::clone(session));
        }
        Ok(Arc::clone(session.insert(Arc::new(Session::open(self.raw)?))))
    }

    /// Ends the use of the device, after what is under way.
    pub(crate) fn close(&self) -> Result<()> {
        let session = self.session.write().unwrap_or_else(PoisonError::into_inner).take();
        session.map_or(Ok(()), |session| session.finish_to_free())
    }
}
