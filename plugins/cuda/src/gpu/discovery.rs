//! Finds devices, and explains it if there are none.

#![expect(unsafe_code, reason = "the driver is a C library")]

use cudarc::driver::DriverError;
use cudarc::driver::result::{device, init};
use cudarc::driver::sys::{CUresult, cuDriverGetVersion, is_culib_present};
use oarlock_portable::DiscoveredGpus;
use oarlock_sdk::{PluginError, Result, Version};

use super::CudaGpu;
use super::detected::read_device;
use crate::error::driver_error;

/// All devices in the driver's order, which `CUDA_VISIBLE_DEVICES` changes.
pub(crate) fn find_devices() -> Result<DiscoveredGpus<CudaGpu>> {
    // SAFETY: opening the driver runs nothing but its own initialization.
    if !unsafe { is_culib_present() } {
        return Err(PluginError::unavailable(
            "expected the CUDA driver `libcuda.so.1`, found none; install the driver of the NVIDIA GPU, or disable this \
             plugin in the configuration of a machine without one",
        ));
    }
    match init() {
        Ok(()) => {}
        Err(error @ DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => return Err(no_device(error)),
        Err(error) => {
            let code = error.0;
            return Err(PluginError::unavailable(format!(
                "expected a CUDA driver that starts, found one that says `{code:?}`; see what `nvidia-smi` says, and start \
                 the machine again after an update of the driver"
            ))
            .with_native_code(code as i64));
        }
    }
    let count = device::get_count().map_err(|error| driver_error("cuDeviceGetCount", error))?;
    if count == 0 {
        return Err(no_device(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)));
    }
    let read = |index| read_device(device::get(index).map_err(|error| driver_error("cuDeviceGet", error))?);
    let devices = (0..count).map(read).collect::<Result<_>>()?;
    let mut number = 0;
    // SAFETY: the number is a local that the call may write.
    let code = unsafe { cuDriverGetVersion(&raw mut number) };
    code.result().map_err(|error| driver_error("cuDriverGetVersion", error))?;
    let cuda = cuda_version(number.cast_unsigned());
    let kernel_module = std::fs::read_to_string("/proc/driver/nvidia/version");
    let driver = kernel_module.ok().and_then(|text| module_version(&text)).unwrap_or(cuda);
    Ok(DiscoveredGpus { devices, runtime: cuda, driver })
}

fn no_device(DriverError(code): DriverError) -> PluginError {
    PluginError::unavailable(
        "expected a CUDA device, found a driver without one; see whether `nvidia-smi` lists it, whether \
         `CUDA_VISIBLE_DEVICES` hides it, and whether a container was started without it",
    )
    .with_native_code(code as i64)
}

/// Decodes CUDA's version number, such as 12080 for 12.8.
fn cuda_version(number: u32) -> Version {
    Version { major: number / 1000, minor: number % 1000 / 10, ..Version::EMPTY }
}

/// Parses the version of the driver's kernel module, the one that users know: the first word that looks like a version.
fn module_version(text: &str) -> Option<Version> {
    let is_version = |word: &&str| {
        word.contains('.')
            && word
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|letter| letter.is_ascii_digit()))
    };
    let mut parts =
        text.split_whitespace().find(is_version)?.split('.').map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    Some(Version { major: next(), minor: next(), patch: next(), ..Version::EMPTY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_out_of_what_drivers_say() {
        let version = |major, minor, patch| Version { major, minor, patch, build: 0 };
        assert_eq!(cuda_version(12_080), version(12, 8, 0));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.90.07  Release Build";
        assert_eq!(module_version(open), Some(version(550, 90, 7)));
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6\nGCC version: gcc 12.2.0";
        assert_eq!(module_version(closed), Some(version(535, 54, 3)));
        assert_eq!(module_version("none"), None);
    }
}
