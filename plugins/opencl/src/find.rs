//! Which devices there are, and what to say when there are none.

use std::sync::{Mutex, PoisonError};

use oarlock_portable::{LOCAL_MEMORY, WORK_GROUP};
use oarlock_sdk::{Error, Host, LogLevel, Result};
use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device as Found,
};
use opencl3::error_codes::{ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::{Platform, get_platforms};

use crate::device::Device;
use crate::error::failed;

/// What `clGetPlatformIDs` returns when the library is there and no driver is.
const PLATFORM_NOT_FOUND: i32 = -1001;

/// All devices that can run the kernels of Oarlock: GPUs first, then accelerators, then processors.
pub(crate) fn devices(host: &Host) -> Result<Vec<Device>> {
    // Drivers set themselves up when they are first asked, and not all bear to be asked by two threads then: two hosts of a
    // process take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found: Vec<(usize, Found)> = Vec::new();
    for platform in platforms()? {
        // A platform without devices says so by failing.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Found::new(id);
            match place(&device) {
                Ok(place) => found.push((place, device)),
                Err(reason) => {
                    let name = device.name().unwrap_or_else(|_| "a device".to_owned());
                    host.log(LogLevel::WARNING, &format!("`{}` is left out: {reason}", name.trim()));
                }
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let opened: Vec<Device> =
        found.into_iter().map(|(_, device)| Device::open(device)).collect::<Result<_>>()?;
    if opened.is_empty() {
        return Err(Error::unavailable(
            "expected an OpenCL driver with a device, found drivers without one; `clinfo -l` lists what they offer",
        ));
    }
    Ok(opened)
}

fn platforms() -> Result<Vec<Platform>> {
    const REMEDY: &str =
        "install the driver of the GPU, or PoCL for processors (on Debian `pocl-opencl-icd`)";
    match get_platforms() {
        Ok(platforms) if !platforms.is_empty() => Ok(platforms),
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED)) => Err(Error::unavailable(format!(
            "expected the OpenCL library `libOpenCL.so.1`, found none; {REMEDY}"
        ))),
        Ok(_) | Err(ClError(PLATFORM_NOT_FOUND)) => {
            Err(Error::unavailable(format!("expected an OpenCL driver, found none; {REMEDY}")))
        }
        Err(error) => Err(failed("clGetPlatformIDs", error)),
    }
}

/// The place of a device's kind in the list, or why the device is left out.
fn place(device: &Found) -> Result<usize, String> {
    let unknown = |error: ClError| format!("it does not say what it can do: {error}");
    let kinds = [CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_CPU];
    let kind = device.dev_type().map_err(unknown)?;
    let place = kinds.iter().position(|known| kind & known != 0);
    let place = place.ok_or("expected a GPU, an accelerator or a processor, found none of them")?;
    let work_group = device.max_work_group_size().map_err(unknown)?;
    let local_memory = device.local_mem_size().map_err(unknown)?;
    let version = device.version().map_err(unknown)?;
    if !device.available().map_err(unknown)? {
        Err("expected a device that is available, found one that is not".to_owned())
    } else if !device.compiler_available().map_err(unknown)? {
        Err("expected a driver with a compiler, found one without".to_owned())
    } else if !device.endian_little().map_err(unknown)? {
        Err("expected a little-endian device, found a big-endian one".to_owned())
    } else if version.starts_with("OpenCL 1.0") || version.starts_with("OpenCL 1.1") {
        Err(format!("expected OpenCL 1.2 or later, found `{version}`"))
    } else if work_group < WORK_GROUP as usize {
        Err(format!("expected work-groups of {WORK_GROUP}, found at most {work_group}"))
    } else if local_memory < LOCAL_MEMORY {
        Err(format!("expected {LOCAL_MEMORY} bytes of local memory, found {local_memory}"))
    } else {
        Ok(place)
    }
}
