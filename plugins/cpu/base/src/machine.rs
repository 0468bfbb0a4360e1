//! Reads what the operating system reports about the processor and its memory.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::__cpuid;
use std::fs;
#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use oarlock_sdk::{PluginError, Result, Version};

pub fn processor_name() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = find_field(&text, "model name");
    name.map_or_else(|| format!("{} processor", std::env::consts::ARCH), str::to_owned)
}

/// The processor's vendor string, such as `GenuineIntel`; empty if there is none.
pub fn processor_vendor() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let vendor = __cpuid(0);
        // CPUID spells the name in this order of registers.
        let text = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        String::from_utf8_lossy(text.as_flattened()).into_owned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        String::new()
    }
}

/// The size of a core's L2 cache, as the processor reports it; 0 if it does not.
#[cfg(target_arch = "x86_64")]
pub fn l2_bytes() -> usize {
    const L2_LEAF: u32 = 0x8000_0006;
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        let has_leaf = __cpuid(0x8000_0000).eax >= L2_LEAF;
        // The upper half of the register is the size in KiB.
        if has_leaf { (__cpuid(L2_LEAF).ecx >> 16) as usize * 1024 } else { 0 }
    })
}

/// A processor family, as its vendor numbers it. Zen 3 and Zen 4 are both family 25.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorFamily<'a> {
    pub maker: &'a str,
    pub number: u32,
}

impl<'a> ProcessorFamily<'a> {
    /// The family of this machine's processor, given its vendor; 0 if Linux does not report it.
    pub fn detect_family(maker: &'a str) -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let number = find_field(&text, "cpu family").and_then(|number| number.parse().ok()).unwrap_or(0);
        Self { maker, number }
    }
}

/// Total and available memory in bytes.
pub fn memory_sizes() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/meminfo").map_err(|error| {
        PluginError::external(format!("expected to read `/proc/meminfo`, found: {error}"))
    })?;
    let bytes = |name| {
        let kibibytes: Option<u64> = find_field(&text, name)?.strip_suffix(" kB")?.trim().parse().ok();
        // Linux prints kB but means KiB.
        kibibytes?.checked_mul(1024)
    };
    bytes("MemTotal").zip(bytes("MemAvailable")).ok_or_else(|| {
        PluginError::external("expected `MemTotal` and `MemAvailable` in `/proc/meminfo`, found neither")
    })
}

/// The version of the operating system's kernel, which a CPU device reports as its driver.
pub fn kernel_version() -> Version {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    parse_version(&text)
}

/// The leading numbers of a text such as `6.1.0-18-amd64`.
pub fn parse_version(text: &str) -> Version {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    let mut next = || numbers.next().unwrap_or(0);
    Version { major: next(), minor: next(), patch: next(), build: next() }
}

/// The x86-64 level of this machine, such as 4 for x86-64-v4; 0 on architectures without levels.
pub fn instruction_set_level() -> u32 {
    #[cfg(x86_vectors)]
    {
        let v2 = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("popcnt");
        let v3 = v2
            && is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2");
        let v4 = v3
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        1 + u32::from(v2) + u32::from(v3) + u32::from(v4)
    }
    #[cfg(not(x86_vectors))]
    {
        0
    }
}

/// The number of threads that this process can run in parallel.
pub fn available_threads() -> u32 {
    // An affinity mask or a cgroup may allow fewer than the machine has.
    std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX))
}

fn find_field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_release_becomes_a_version() {
        let found = parse_version("6.1.0-18-amd64\n");
        assert_eq!((found.major, found.minor, found.patch, found.build), (6, 1, 0, 18));
    }

    #[test]
    fn text_without_numbers_is_version_zero() {
        assert_eq!(parse_version("custom"), Version::EMPTY);
    }

    #[test]
    fn the_available_memory_is_part_of_the_total() {
        let (total, free) = memory_sizes().unwrap();
        assert!(0 < free && free <= total, "{free} of {total}");
    }
}
