//! The properties of a machine that decide what to install.

use std::fmt;

use crate::major_minor::MajorMinor;
use serde::Deserialize;

/// NVIDIA drivers, newest first: the minimum driver version for a CUDA version and its minor releases.
pub const CUDA_DRIVERS: [(u32, MajorMinor); 3] = [
    (580, MajorMinor { major: 13, minor: 0 }),
    (525, MajorMinor { major: 12, minor: 0 }),
    (450, MajorMinor { major: 11, minor: 0 }),
];

/// A machine. Unknown properties count as absent.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TargetMachine {
    /// The operating system.
    pub system: OperatingSystem,
    /// The architecture in the kernel's spelling, such as `x86_64`.
    pub architecture: String,
    /// The version of glibc, musl or macOS.
    pub libc: Option<MajorMinor>,
    /// The Python to install for.
    pub python: Option<PythonInterpreter>,
    /// True if the processor has AVX.
    #[serde(default)]
    pub avx: bool,
    /// The GPUs.
    #[serde(default)]
    pub gpus: Vec<MachineGpu>,
    /// The newest CUDA version that the driver supports.
    pub cuda_driver: Option<MajorMinor>,
    /// The installed CUDA version.
    pub cuda: Option<MajorMinor>,
}

/// An operating system; on Linux, the C library makes a difference.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum OperatingSystem {
    /// Linux with glibc.
    Linux,
    /// Linux with musl.
    Musl,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

/// A Python interpreter.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PythonInterpreter {
    /// The Python version.
    pub version: MajorMinor,
    /// True for a free-threaded build.
    #[serde(default)]
    pub free_threaded: bool,
    /// True for CPython.
    #[serde(default = "default_true")]
    pub cpython: bool,
    /// True for a 32-bit build.
    #[serde(default)]
    pub bits_32: bool,
}

fn default_true() -> bool {
    true
}

/// A GPU.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MachineGpu {
    /// The vendor.
    pub vendor: GpuVendor,
    /// The NVIDIA compute capability.
    pub capability: Option<MajorMinor>,
}

/// A GPU vendor.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum GpuVendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
}

impl TargetMachine {
    /// True if the system is of 32 bits, by the name of its architecture, such as `armv7l`.
    #[must_use]
    pub fn is_32_bit_system(&self) -> bool {
        self.architecture.starts_with("armv")
            || matches!(&*self.architecture, "i386" | "i486" | "i586" | "i686")
    }

    /// True if programs with a platform tag run here.
    #[must_use]
    pub fn runs_platform(&self, tag: &str) -> bool {
        let is_64_bits = self.python.is_none_or(|python| !python.bits_32);
        let of_release = |family: &str, system: OperatingSystem| {
            let rest = tag.strip_prefix(family).filter(|_| self.system == system)?;
            let mut parts = rest.splitn(3, '_');
            let release =
                MajorMinor { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? };
            let machine = parts.next()?;
            let fits = match (machine, &*self.architecture) {
                ("intel", "x86_64") | ("universal2", "x86_64" | "arm64") => true,
                (machine, own) => machine == own,
            };
            Some(fits && self.libc.is_some_and(|own| own >= release))
        };
        let is_linux = matches!(self.system, OperatingSystem::Linux | OperatingSystem::Musl);
        let of_linux = tag.strip_prefix("linux_").map(|machine| is_linux && machine == self.architecture);
        let found = of_linux
            .or_else(|| of_release("manylinux_", OperatingSystem::Linux))
            .or_else(|| of_release("musllinux_", OperatingSystem::Musl))
            .or_else(|| of_release("macosx_", OperatingSystem::Macos));
        match tag {
            "any" => true,
            "win32" => self.system == OperatingSystem::Windows && !is_64_bits,
            "win_amd64" => {
                self.system == OperatingSystem::Windows && is_64_bits && self.architecture == "x86_64"
            }
            _ => is_64_bits && found.unwrap_or(false),
        }
    }
}

impl PythonInterpreter {
    /// True if the interpreter loads modules with this interpreter and ABI tag.
    #[must_use]
    pub fn loads_tag(&self, tag: &str) -> bool {
        let Some((interpreter, abi)) = tag.split_once('-') else { return false };
        let MajorMinor { major, minor } = self.version;
        let own = format!("cp{major}{minor}");
        match abi {
            "none" => interpreter == format!("py{major}") || self.cpython && interpreter == own,
            "abi3" => {
                let least = interpreter.strip_prefix("cp3").and_then(|minor| minor.parse().ok());
                self.cpython
                    && !self.free_threaded
                    && major == 3
                    && least.is_some_and(|least: u32| minor >= least)
            }
            _ => {
                let letters = abi.strip_prefix(&own).filter(|_| self.cpython && interpreter == own);
                // In old versions `m` marks the allocator and `u` wide Unicode strings; all builds on Linux had both.
                letters
                    .is_some_and(|letters| if self.free_threaded { letters == "t" } else { letters != "t" })
            }
        }
    }
}

impl fmt::Display for PythonInterpreter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.cpython { "CPython" } else { "a Python other than CPython, of version" };
        write!(f, "{name} {}", self.version)?;
        if self.free_threaded {
            f.write_str(" without a lock around the interpreter")?;
        }
        if self.bits_32 {
            f.write_str(" of 32 bits")?;
        }
        Ok(())
    }
}

/// A short description.
impl fmt::Display for TargetMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.system {
            OperatingSystem::Linux => "Linux with glibc",
            OperatingSystem::Musl => "Linux with musl",
            OperatingSystem::Macos => "macOS",
            OperatingSystem::Windows => "Windows",
        })?;
        if let Some(version) = self.libc {
            write!(f, " {version}")?;
        }
        write!(f, " on {}", self.architecture)
    }
}
