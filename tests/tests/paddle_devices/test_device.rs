//! Compiles custom devices and starts hosts for them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;
use oarlock_host::{
    Host, HostConfig, HostEnvironment, HostOptions, PluginAdapter, PluginDevice, ProbeCommand,
    ProcessIdentity,
};
use oarlock_tests::bare_host::CPU_PLUGIN;
use tempfile::TempDir;

pub(crate) const PROBE_COMMAND: &str = "__probe";

/// The adapter that the commands and libraries of Oarlock link in.
pub(crate) const ADAPTERS: &[PluginAdapter] =
    &[PluginAdapter { entry: oarlock_plugin_paddle::ENTRY, query: oarlock_plugin_paddle::query }];

/// The name by which users call the device in `custom_device.c`.
pub(crate) const DEVICE_TYPE: &str = "test_npu";

/// A directory with custom devices.
pub(crate) struct DeviceDirectory(TempDir);

impl DeviceDirectory {
    /// A directory that nobody else can write to, with one device compiled with these macros.
    pub(crate) fn with_device(macros: &[&str]) -> Result<Self, Failed> {
        let place = Self(tempfile::tempdir()?);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700))?;
        place.compile_device("device.so", macros)?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn compile_device(&self, name: &str, macros: &[&str]) -> Result<PathBuf, Failed> {
        let file = self.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("paddle_devices/custom_device.c");
        let cross = std::env::var_os(format!("CC_{}_unknown_linux_gnu", std::env::consts::ARCH));
        let built = Command::new(cross.unwrap_or_else(|| "cc".into()))
            .args([
                "-std=c11",
                "-D_GNU_SOURCE",
                "-O1",
                "-fPIC",
                "-shared",
                "-pthread",
                "-Wall",
                "-Werror",
                "-Wno-unused-function",
            ])
            .args(macros.iter().map(|text| format!("-D{text}")))
            .arg("-o")
            .arg(&file)
            .arg(source)
            .output()?;
        if !built.status.success() {
            return Err(String::from_utf8_lossy(&built.stderr).into_owned().into());
        }
        Ok(file)
    }

    /// Options for a host with the CPU and this directory.
    pub(crate) fn host_options(&self) -> Result<HostOptions, Failed> {
        let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
        let mut options = bare_options(environment)?;
        options.paths = vec![self.path().to_path_buf()];
        options.cache_home = Some(self.path().join("cache"));
        Ok(options)
    }

    pub(crate) fn start_host(&self) -> Result<Host, Failed> {
        Ok(Host::start(&self.host_options()?)?)
    }
}

/// Options for a host with the CPU and the adapter.
pub(crate) fn bare_options(environment: HostEnvironment) -> Result<HostOptions, Failed> {
    let mut options = HostOptions::new("tests 1.0", HostConfig::default(), environment);
    options.built_in = vec![CPU_PLUGIN];
    options.adapters = ADAPTERS.to_vec();
    options.probe =
        Some(ProbeCommand { program: std::env::current_exe()?, arguments: vec![PROBE_COMMAND.into()] });
    Ok(options)
}

/// A device of the host, which must be there.
pub(crate) fn open_device(host: &Host, id: u32) -> Result<PluginDevice, Failed> {
    let name = format!("{DEVICE_TYPE}:{id}");
    host.device(&name).ok_or_else(|| format!("no `{name}`: {:#?}", host.report()).into())
}

/// Writes bytes to a new block of the device and reads them back.
pub(crate) fn round_trip(device: &PluginDevice, byte: u8) -> Result<(), Failed> {
    let mut block = device.allocate(1000)?;
    block.write_bytes(0, &[byte; 1000])?;
    block.fill_bytes(100, 9, 100)?;
    let mut found = [0; 1000];
    block.read_bytes(0, &mut found)?;
    let mut expected = [byte; 1000];
    expected[100..200].fill(9);
    if found == expected { Ok(()) } else { Err("other bytes come back".into()) }
}
