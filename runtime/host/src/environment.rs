//! The host's view of its process: read once and passed on as data, except for variables that plugins name.
//!
//! A setuid program must not trust the environment of its caller. In such a program, all variables count as unset, `HOME`
//! included, so only the system's directories and configuration remain.

#![expect(unsafe_code, reason = "only the C library knows what the kernel told this process at its start")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::ProcessIdentity;

/// The variables that the host reads, and the user that the process runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEnvironment {
    /// `OARLOCK_PLUGIN_PATH`: additional places to search for plugins, separated by colons.
    pub plugin_path: Option<OsString>,
    /// `CUSTOM_DEVICE_ROOT`: a directory with custom devices of PaddlePaddle, as its own users set it.
    pub custom_device_root: Option<PathBuf>,
    /// `OARLOCK_CONFIG`: a configuration file that replaces the user's.
    pub config: Option<PathBuf>,
    /// `OARLOCK_ISA_MASK`: a list of processor features; all others count as absent.
    pub isa_mask: Option<String>,
    /// `OARLOCK_LAYERS`: layers to put in front of every plugin, separated by commas, the outermost first.
    pub layers: Vec<String>,
    /// `OARLOCK_ISOLATE`: names of plugins to run in processes of their own, separated by commas; `*` matches any characters.
    pub isolate: Vec<String>,
    /// `LD_LIBRARY_PATH`: the directories that the dynamic linker searches first.
    pub library_path: Vec<PathBuf>,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    pub config_home: Option<PathBuf>,
    /// `$XDG_DATA_HOME`, or `~/.local/share`.
    pub data_home: Option<PathBuf>,
    /// True if the program has more rights than its caller, such as a setuid program.
    pub elevated: bool,
    /// The effective user and group of the process.
    pub identity: ProcessIdentity,
}

impl HostEnvironment {
    /// Captures the environment of this process.
    pub fn from_process() -> Self {
        Self::new(|name| std::env::var_os(name), is_setuid(), ProcessIdentity::of_process())
    }

    /// Builds an environment from a function that looks up variables; tests pass their own.
    pub fn new(lookup: impl Fn(&str) -> Option<OsString>, elevated: bool, identity: ProcessIdentity) -> Self {
        let get = |name: &str| if elevated { None } else { lookup(name).filter(|value| !value.is_empty()) };
        // The XDG specification says to ignore relative paths.
        let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let in_home = |path: &str| absolute("HOME").map(|home| home.join(path));
        let library_path = get("LD_LIBRARY_PATH").unwrap_or_default();
        Self {
            plugin_path: get("OARLOCK_PLUGIN_PATH"),
            custom_device_root: get("CUSTOM_DEVICE_ROOT").map(PathBuf::from),
            config: get("OARLOCK_CONFIG").map(PathBuf::from),
            isa_mask: get("OARLOCK_ISA_MASK").map(|mask| mask.to_string_lossy().into_owned()),
            layers: get("OARLOCK_LAYERS").map(|layers| split_layers(&layers)).unwrap_or_default(),
            isolate: get("OARLOCK_ISOLATE").map_or_else(Vec::new, |names| {
                let names = names.to_string_lossy();
                names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
            }),
            library_path: std::env::split_paths(&library_path).filter(|path| path != Path::new("")).collect(),
            config_home: absolute("XDG_CONFIG_HOME").or_else(|| in_home(".config")),
            data_home: absolute("XDG_DATA_HOME").or_else(|| in_home(".local/share")),
            elevated,
            identity,
        }
    }

    /// Reads a variable that is not captured above: the variable of a flag, or one that lists visible devices, whose name is known
    /// only once the plugin is loaded. An empty value is not treated as unset: it hides all devices.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        if self.elevated { None } else { std::env::var_os(name) }
    }
}

/// The names in a list with commas.
fn split_layers(layers: &std::ffi::OsStr) -> Vec<String> {
    let names = layers.to_string_lossy();
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// True if the program has more rights than its caller, according to `AT_SECURE` or its current ids.
fn is_setuid() -> bool {
    let by_ids = rustix::process::getuid() != rustix::process::geteuid()
        || rustix::process::getgid() != rustix::process::getegid();
    // SAFETY: the function takes a number, reads what the kernel passed to the process at its start, and touches nothing else.
    let by_kernel = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    by_ids || by_kernel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup_variable(name: &str) -> Option<OsString> {
        match name {
            "XDG_DATA_HOME" => Some("relative".into()),
            "XDG_CONFIG_HOME" => Some("/xdg".into()),
            "HOME" => Some("/home/u".into()),
            "LD_LIBRARY_PATH" => Some("/a::/b".into()),
            "OARLOCK_PLUGIN_PATH" => Some("/p".into()),
            "OARLOCK_LAYERS" => Some("outer, inner,".into()),
            "OARLOCK_ISOLATE" => Some("acme, other*,".into()),
            _ => Some("".into()),
        }
    }

    #[test]
    fn variables_are_read_and_empty_ones_count_as_unset() {
        let environment = HostEnvironment::new(lookup_variable, false, ProcessIdentity::of_process());
        assert_eq!(environment.config_home, Some("/xdg".into()));
        assert_eq!(environment.data_home, Some("/home/u/.local/share".into()));
        assert_eq!(environment.library_path, [Path::new("/a"), Path::new("/b")]);
        assert_eq!(environment.config, None);
        assert_eq!(environment.layers, ["outer", "inner"]);
        assert_eq!(environment.isolate, ["acme", "other*"]);
    }

    #[test]
    fn an_elevated_program_sees_no_variable() {
        let environment = HostEnvironment::new(lookup_variable, true, ProcessIdentity::of_process());
        let empty = HostEnvironment::new(|_| None, true, ProcessIdentity::of_process());
        assert_eq!(environment, empty);
        assert_eq!(environment.data_home, None);
        assert_eq!(environment.variable("PATH"), None);
    }

    #[test]
    fn a_test_program_is_not_elevated() {
        assert!(!HostEnvironment::from_process().elevated);
    }
}
