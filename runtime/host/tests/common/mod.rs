//! Builds plugins from `plugin.c` and starts hosts that find only these.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_host::{
    Host, HostConfig, HostEnvironment, HostOptions, ProbeCommand, ProcessIdentity, RefusalReason,
};

/// A compiler with the sanitizer of this program, since a host refuses plugins built with another.
pub(crate) fn compiler_command() -> Command {
    if oarlock_abi::SANITIZER == oarlock_abi::Sanitizer::ADDRESS {
        // Unlike gcc, clang leaves the sanitizer's runtime to the program.
        let mut clang = Command::new("clang");
        clang.arg("-fsanitize=address");
        return clang;
    }
    Command::new("cc")
}

/// A private directory for plugins and the cache.
pub(crate) struct PluginDirectory(tempfile::TempDir);

impl PluginDirectory {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory for temporary files"));
        std::fs::set_permissions(place.0.path(), std::fs::Permissions::from_mode(0o700))
            .expect("the directory is ours");
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Compiles the plugin `name` with some of the macros of `plugin.c` defined.
    pub(crate) fn compile_plugin(&self, name: &str, macros: &[&str]) -> PathBuf {
        self.compile_linked_plugin(name, macros, &[])
    }

    /// As [`Self::compile_plugin`], with further arguments for the linker.
    pub(crate) fn compile_linked_plugin(&self, name: &str, macros: &[&str], linker: &[&str]) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = self.path().join(format!("{name}.so"));
        let built = compiler_command()
            .args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"])
            .arg(format!("-DNAME=\"{name}\""))
            .args(macros.iter().map(|name| format!("-D{name}")))
            .arg("-I")
            .arg(root.join("../../device-sdk/include"))
            .arg("-o")
            .arg(&file)
            .arg(root.join("tests/common/plugin.c"))
            .args(linker)
            .status()
            .expect("a C compiler");
        assert!(built.success());
        file
    }

    /// Options for a host that searches only this directory.
    pub(crate) fn host_options(&self) -> HostOptions {
        let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
        let mut options = HostOptions::new("test 1.0", HostConfig::default(), environment);
        options.paths = vec![self.path().to_path_buf()];
        options.cache_home = Some(self.path().join("cache"));
        let target = std::env::current_exe().expect("the path of this program");
        let program = target.ancestors().nth(2).expect("the directory of the build").join("examples/probe");
        assert!(program.exists(), "build it first: `cargo build -p oarlock-host --example probe`");
        options.probe = Some(ProbeCommand { program, arguments: Vec::new() });
        options
    }

    pub(crate) fn start_host(&self) -> Host {
        Host::start(&self.host_options()).expect("a sound configuration")
    }
}

/// Reason and message of the refusal of the plugin with this name.
pub(crate) fn refusal_of(host: &Host, name: &str) -> (RefusalReason, String) {
    let file = format!("{name}.so");
    let refusal = host.report().refusals().find(|refusal| refusal.file.ends_with(&file));
    let refusal = refusal.unwrap_or_else(|| panic!("`{name}` is not refused: {:#?}", host.report()));
    (refusal.reason, refusal.to_string())
}
