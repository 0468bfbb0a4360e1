//! Probes the local machine. Properties that cannot be determined count as absent.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use oarlock_formats::error::Error;

use super::machine::{
    CUDA_DRIVERS, GpuVendor, MachineGpu, OperatingSystem, PythonInterpreter, TargetMachine,
};
use crate::major_minor::MajorMinor;
use rustix::process::{Pid, Signal, kill_process};

/// Makes a Python interpreter describe itself: it prints one word for each field of [`PythonInterpreter`].
const PYTHON_PROBE_SCRIPT: &str = "import struct, sys, sysconfig; \
    print(*sys.version_info[:2], sys.implementation.name == 'cpython', struct.calcsize('P') == 4, \
    bool(sysconfig.get_config_var('Py_GIL_DISABLED')))";

impl TargetMachine {
    /// Probes this machine, with the Python that `python` names as a file or a command.
    ///
    /// # Errors
    ///
    /// When it is not a Python.
    pub fn probe_local(python: &str) -> Result<Self, Error> {
        let (system, libc) = probe_libc();
        let cuda_driver = probe_cuda_driver();
        Ok(Self {
            system,
            architecture: std::env::consts::ARCH.to_owned(),
            libc,
            python: Some(probe_python(python)?),
            avx: has_avx(),
            gpus: probe_gpus(cuda_driver.is_some()),
            cuda_driver,
            cuda: cuda_in_directory(Path::new("/usr/local/cuda")),
        })
    }
}

/// Timeout for external programs: `nvidia-smi` hangs forever if the driver has crashed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);

/// The output of a program on stdout and stderr; `None` if it cannot be started or does not finish.
fn program_output(mut program: Command) -> Option<String> {
    let child = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let (sender, receiver) = mpsc::channel();
    let number = Pid::from_child(&child);
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = match receiver.recv_timeout(PROBE_TIMEOUT) {
        Ok(output) => output.ok()?,
        Err(_) => {
            // It either dies at once or is stuck in a crashed driver, where no signal ends it.
            _ = kill_process(number, Signal::KILL);
            return None;
        }
    };
    Some([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat())
}

fn probe_python(program: &str) -> Result<PythonInterpreter, Error> {
    let mut command = Command::new(program);
    command.args(["-I", "-c", PYTHON_PROBE_SCRIPT]);
    let text = program_output(command);
    let refuse = || {
        let found = text.as_deref().and_then(|text| text.lines().last()).unwrap_or("none");
        Error::new(format!("expected a Python as `{program}`, found {found}; name one with `--python FILE`"))
    };
    let words: Vec<&str> = text.as_deref().unwrap_or_default().split_whitespace().collect();
    let [major, minor, cpython, bits_32, free_threaded] = words[..] else { return Err(refuse()) };
    let number = |text: &str| text.parse().map_err(|_| refuse());
    Ok(PythonInterpreter {
        version: MajorMinor { major: number(major)?, minor: number(minor)? },
        free_threaded: free_threaded == "True",
        cpython: cpython == "True",
        bits_32: bits_32 == "True",
    })
}

/// The C library, from the output of `ldd`.
fn probe_libc() -> (OperatingSystem, Option<MajorMinor>) {
    let mut command = Command::new("ldd");
    command.arg("--version");
    let text = program_output(command).unwrap_or_default();
    if text.contains("musl") {
        return (OperatingSystem::Musl, number_after(&text, "Version "));
    }
    let version = text.lines().next().and_then(|line| line.split_whitespace().last());
    (OperatingSystem::Linux, version.and_then(|text| text.parse().ok()))
}

fn has_avx() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The newest CUDA version that the driver supports, from `nvidia-smi` or from the driver version.
fn probe_cuda_driver() -> Option<MajorMinor> {
    let text = program_output(Command::new("nvidia-smi")).unwrap_or_default();
    let by_tool =
        ["CUDA Version: ", "CUDA UMD Version: "].iter().find_map(|before| number_after(&text, before));
    by_tool.or_else(|| cuda_of_driver(&fs::read_to_string("/proc/driver/nvidia/version").ok()?))
}

/// The CUDA version for a driver, from the version text of its kernel module.
fn cuda_of_driver(text: &str) -> Option<MajorMinor> {
    let line = text.lines().find(|line| line.starts_with("NVRM version:"))?;
    let mut versions = line.split_whitespace().filter_map(|word| word.split_once('.')?.0.parse::<u32>().ok());
    let driver = versions.next()?;
    CUDA_DRIVERS.iter().find(|(least, _)| driver >= *least).map(|(_, cuda)| *cuda)
}

/// The GPUs on the PCI bus, with the compute capabilities of NVIDIA GPUs. A container or a virtual machine may hide the bus but
/// not the driver.
fn probe_gpus(has_driver: bool) -> Vec<MachineGpu> {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let devices = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten().map(|it| it.path());
    // PCI class 3 is for displays, and class 0x12 for accelerators without display.
    let computes =
        |device: &Path| ["0x03", "0x12"].iter().any(|class| read(&device.join("class")).starts_with(class));
    let vendor = |device: &Path| match read(&device.join("vendor")).trim() {
        "0x10de" => Some(GpuVendor::Nvidia),
        "0x1002" => Some(GpuVendor::Amd),
        "0x8086" => Some(GpuVendor::Intel),
        _ => None,
    };
    let mut capabilities = local_capabilities().into_iter();
    let found: Vec<GpuVendor> =
        devices.filter(|device| computes(device)).filter_map(|device| vendor(&device)).collect();
    let mut gpu = |vendor: GpuVendor| MachineGpu {
        vendor,
        capability: (vendor == GpuVendor::Nvidia).then(|| capabilities.next()).flatten(),
    };
    let mut gpus: Vec<MachineGpu> = found.into_iter().map(&mut gpu).collect();
    if has_driver && !gpus.iter().any(|gpu| gpu.vendor == GpuVendor::Nvidia) {
        gpus.push(gpu(GpuVendor::Nvidia));
    }
    gpus
}

/// The compute capabilities of the local NVIDIA GPUs, from `nvidia-smi`.
#[must_use]
pub fn local_capabilities() -> Vec<MajorMinor> {
    let mut command = Command::new("nvidia-smi");
    command.args(["--query-gpu=compute_cap", "--format=csv,noheader"]);
    let text = program_output(command).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// The CUDA version in a directory, from its version file.
fn cuda_in_directory(directory: &Path) -> Option<MajorMinor> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let of_json = |text: String| {
        let file: serde_json::Value = serde_json::from_str(&text).ok()?;
        number_after(file["cuda"]["version"].as_str()?, "")
    };
    read("version.json")
        .and_then(of_json)
        .or_else(|| read("version.txt").and_then(|text| number_after(&text, "CUDA Version ")))
}

/// The first two numbers after a text.
fn number_after(text: &str, before: &str) -> Option<MajorMinor> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let mut parts = rest[..end].split('.');
    Some(MajorMinor {
        major: parts.next()?.parse().ok()?,
        minor: parts.next().and_then(|it| it.parse().ok()).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_tools_say() {
        let output = "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |";
        assert_eq!(number_after(output, "CUDA Version: "), Some(MajorMinor { major: 12, minor: 4 }));
        assert_eq!(
            number_after("CUDA Version 10.2.89\n", "CUDA Version "),
            Some(MajorMinor { major: 10, minor: 2 })
        );
        assert_eq!(number_after("none", "CUDA Version "), None);
    }

    #[test]
    fn a_driver_runs_the_cuda_of_its_time() {
        let output =
            |text: &str| cuda_of_driver(&format!("NVRM version: NVIDIA UNIX {text}\nGCC version:  12.2.0\n"));
        let cuda = |major: u32| Some(MajorMinor { major, minor: 0 });
        assert_eq!(output("x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023"), cuda(12));
        assert_eq!(
            output("Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder)"),
            cuda(13)
        );
        assert_eq!(output("x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022"), None);
        assert_eq!(cuda_of_driver(""), None);
    }

    #[test]
    fn cuda_says_its_version_in_either_file() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(cuda_in_directory(directory.path()), None);
        fs::write(directory.path().join("version.txt"), "CUDA Version 10.2.89\n").expect("a file");
        assert_eq!(cuda_in_directory(directory.path()), Some(MajorMinor { major: 10, minor: 2 }));
        fs::write(directory.path().join("version.json"), r#"{"cuda": {"version": "12.4.1"}}"#)
            .expect("a file");
        assert_eq!(cuda_in_directory(directory.path()), Some(MajorMinor { major: 12, minor: 4 }));
    }

    #[test]
    fn what_is_no_python_is_refused_by_name() {
        let error = probe_python("/no/python").expect_err("no such file").to_string();
        assert!(error.starts_with("expected a Python as `/no/python`, found none"), "{error}");
        let error = probe_python("false").expect_err("another program").to_string();
        assert!(error.starts_with("expected a Python as `false`"), "{error}");
    }
}
