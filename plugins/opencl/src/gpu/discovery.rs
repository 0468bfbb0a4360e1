//! Finds devices, and explains it if there are none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_portable::{DiscoveredGpus, MAX_LOCAL_MEMORY, MAX_WORK_GROUP_SIZE, is_setuid};
use oarlock_sdk::{HostServices, LogLevel, PluginError, Result, Version};
use opencl3::device::{
    CL_DEVICE_TYPE_ACCELERATOR, CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, Device,
};
use opencl3::error_codes::{ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::{Platform, get_platforms};

use super::OpenClGpu;
use super::detected::{parse_version_numbers, read_device};
use crate::error::driver_error;

/// Result of `clGetPlatformIDs` if the library is installed but no driver is.
const PLATFORM_NOT_FOUND: i32 = -1001;

/// Variables that make the OpenCL loader open code of the environment's choice, whatever privileges the program has.
const LOADER_VARIABLES: [&str; 5] =
    ["OPENCL_DYLIB_PATH", "OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES", "OPENCL_LAYERS"];

/// Held while drivers list devices or create contexts: they initialize themselves then, and not all of them are thread-safe at
/// that.
pub(crate) fn lock_driver_setup() -> MutexGuard<'static, ()> {
    static DRIVER_SETUP: Mutex<()> = Mutex::new(());
    DRIVER_SETUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All devices that can run the kernels of Oarlock: GPUs first, then accelerators, then processors.
pub(crate) fn find_devices(host: &HostServices) -> Result<DiscoveredGpus<OpenClGpu>> {
    let _turn = lock_driver_setup();
    check_environment(is_setuid(), |name| std::env::var_os(name).is_some())?;
    let mut found: Vec<(usize, Device)> = Vec::new();
    for platform in driver_platforms()? {
        // A platform without devices reports that as an error.
        for id in platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default() {
            let device = Device::new(id);
            match device_kind_rank(&device) {
                Ok(place) => found.push((place, device)),
                Err(reason) => {
                    let name = device.name().unwrap_or_else(|_| "a device".to_owned());
                    host.log(LogLevel::WARNING, &format!("`{}` is left out: {reason}", name.trim()));
                }
            }
        }
    }
    found.sort_by_key(|(place, _)| *place);
    let Some((_, first)) = found.first() else {
        return Err(PluginError::unavailable(
            "expected an OpenCL driver with a device, found drivers without one; `clinfo -l` lists what they offer",
        ));
    };
    let version =
        |text: Result<String, ClError>| text.map_or(Version::EMPTY, |text| parse_version_numbers(&text));
    Ok(DiscoveredGpus {
        runtime: version(first.version()),
        driver: version(first.driver_version()),
        devices: found
            .into_iter()
            .map(|(_, device)| read_device(device))
            .collect::<Result<_, _>>()
            .map_err(|error| driver_error("clGetDeviceInfo", error))?,
    })
}

/// Refuses to open the library where a less privileged user would choose the code.
fn check_environment(is_setuid: bool, is_set: impl Fn(&str) -> bool) -> Result<()> {
    match LOADER_VARIABLES.into_iter().find(|name| is_setuid && is_set(name)) {
        Some(name) => Err(PluginError::permission_denied(format!(
            "expected `{name}` to be unset in a program with raised rights, since it chooses code to run, found it set; \
             unset it"
        ))),
        None => Ok(()),
    }
}

fn driver_platforms() -> Result<Vec<Platform>> {
    const REMEDY: &str =
        "install the driver of the GPU, or PoCL for processors (on Debian `pocl-opencl-icd`)";
    match get_platforms() {
        Ok(platforms) if !platforms.is_empty() => Ok(platforms),
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED)) => Err(PluginError::unavailable(format!(
            "expected the OpenCL library `libOpenCL.so.1`, found none; {REMEDY}"
        ))),
        Ok(_) | Err(ClError(PLATFORM_NOT_FOUND)) => {
            Err(PluginError::unavailable(format!("expected an OpenCL driver, found none; {REMEDY}")))
        }
        Err(error) => Err(driver_error("clGetPlatformIDs", error)),
    }
}

/// Sort key of a device's kind, or the reason to leave the device out.
fn device_kind_rank(device: &Device) -> Result<usize, String> {
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
    } else if work_group < MAX_WORK_GROUP_SIZE as usize {
        Err(format!("expected work-groups of {MAX_WORK_GROUP_SIZE}, found at most {work_group}"))
    } else if local_memory < MAX_LOCAL_MEMORY {
        Err(format!("expected {MAX_LOCAL_MEMORY} bytes of local memory, found {local_memory}"))
    } else {
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_no_code_for_a_program_with_raised_rights() {
        let is_set = |name: &str| name == "OPENCL_DYLIB_PATH";
        assert!(check_environment(false, is_set).is_ok() && check_environment(true, |_| false).is_ok());
        let error = check_environment(true, is_set).unwrap_err();
        assert!(error.message().contains("`OPENCL_DYLIB_PATH`"), "{error}");
    }
}
