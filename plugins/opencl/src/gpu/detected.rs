//! A device that was found: its properties and its compiler options.

use oarlock_portable::{DetectedGpu, DeviceProperties};
use oarlock_sdk::Version;
use opencl3::device::{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, Device};
use opencl3::error_codes::ClError;

use super::OpenClGpu;

/// A device that is not open yet.
#[derive(Clone)]
pub(crate) struct DetectedOpenClDevice {
    pub(crate) device: Device,
    pub(crate) name: String,
    pub(crate) largest_block: u64,
    /// Compiler options.
    pub(crate) options: String,
    /// Everything that a compiled program depends on besides its source.
    pub(crate) identity: String,
    /// True if the driver has a disk cache of compiled programs.
    pub(crate) keeps_programs: bool,
}

/// Queries the properties of a device.
pub(crate) fn read_device(device: Device) -> Result<DetectedGpu<OpenClGpu>, ClError> {
    let is_rounded = device.single_fp_config()? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0;
    let rounding = if is_rounded { " -cl-fp32-correctly-rounded-divide-sqrt" } else { "" };
    let text = |text: String| text.trim().replace('\0', "");
    let (name, version) = (text(device.name()?), text(device.version()?));
    let driver = text(device.driver_version()?);
    let optimization = if crashes_while_optimizing(&version, &driver) { " -cl-opt-disable" } else { "" };
    // Warnings only concern authors of kernels, and some drivers print them.
    let options = format!("-cl-std=CL1.2 -w{rounding}{optimization}");
    let facts = DeviceProperties {
        name: name.clone(),
        vendor: text(device.vendor()?),
        bus_id: String::new(),
        compute_units: device.max_compute_units()?,
        // The driver reports bits.
        alignment: (device.mem_base_addr_align()? / 8).max(1).next_power_of_two(),
        memory: device.global_mem_size()?,
        largest_block: device.max_mem_alloc_size()?,
        capability: parse_version_numbers(&version),
        has_f64: device.double_fp_config().is_ok_and(|config| config != 0),
    };
    let idle = DetectedOpenClDevice {
        device,
        // Asked for a binary, PoCL compiles the program once more, for work-groups of any size; its own cache is keyed by the
        // source.
        keeps_programs: is_pocl(&version),
        identity: [name.as_str(), &version, &driver, &options].join("\n"),
        name,
        largest_block: facts.largest_block,
        options,
    };
    Ok(DetectedGpu::new(facts, idle))
}

fn is_pocl(version: &str) -> bool {
    version.to_ascii_lowercase().contains("pocl")
}

/// True if the driver crashes the process while it optimizes some kernels, as the one in Debian 13 does:
/// <https://github.com/pocl/pocl/issues/1608>.
fn crashes_while_optimizing(version: &str, driver: &str) -> bool {
    let Version { major, minor, .. } = parse_version_numbers(driver);
    is_pocl(version) && (major, minor) == (6, 0)
}

/// Parses the first numbers of a text as a version.
pub(crate) fn parse_version_numbers(text: &str) -> Version {
    let start = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len());
    let end = text[start..].find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let mut parts = text[start..end.map_or(text.len(), |end| start + end)]
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    Version { major: next(), minor: next(), patch: next(), build: next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_ends_the_process_is_known() {
        assert!(crashes_while_optimizing(
            "OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-skylake",
            "6.0+debian"
        ));
        for (version, driver) in [("OpenCL 3.0 PoCL HSTR: cpu", "7.1"), ("OpenCL 3.0 CUDA", "6.0")] {
            assert!(!crashes_while_optimizing(version, driver), "{version} {driver}");
        }
    }

    #[test]
    fn versions_are_read_out_of_what_drivers_say() {
        let version = |major, minor, patch| Version { major, minor, patch, build: 0 };
        assert_eq!(parse_version_numbers("OpenCL 3.0 PoCL HSTR: pthread-x86_64"), version(3, 0, 0));
        assert_eq!(parse_version_numbers("3.1+debian"), version(3, 1, 0));
        assert_eq!(parse_version_numbers("550.54.14"), version(550, 54, 14));
        assert_eq!(parse_version_numbers("unknown"), Version::EMPTY);
    }
}
