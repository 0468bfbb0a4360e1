//! What compiles for an architecture: the compiler of this machine, or the one that `scripts/get-aarch64` lays out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_formats::error::Error;

use crate::build_tools::BuildTools;
use crate::crates::{self, CrateGraph};
use crate::vendored_tree;
use oarlock_formats::target_architecture::TargetArchitecture;

/// Lays out a compiler for 64-bit ARM, an emulator of it, and the libraries of a system with it.
const FOREIGN_TOOLS_SCRIPT: &str = "scripts/get-aarch64";

/// The compiler for an architecture with its settings.
pub(super) struct TargetToolchain {
    pub(super) architecture: TargetArchitecture,
    pub(super) crates: CrateGraph,
    /// Flags for every part. They remove local paths and give debug information a stable name.
    pub(super) flags: Vec<String>,
    /// The directory of the tools for another architecture; `None` for that of this machine.
    foreign: Option<PathBuf>,
}

impl TargetToolchain {
    /// Finds the compiler for an architecture, and installs it if it is not the one of this machine.
    pub(super) fn new(
        root: &Path,
        target: &Path,
        tools: &BuildTools<'_>,
        architecture: TargetArchitecture,
    ) -> Result<Self, Error> {
        let mut foreign = None;
        if TargetArchitecture::of_host() != Ok(architecture) {
            if architecture != TargetArchitecture::Aarch64 {
                let (wanted, found) = (architecture.name(), std::env::consts::ARCH);
                return Err(Error::new(format!(
                    "expected a machine with {wanted} to build for it, found {found}"
                )));
            }
            tools.run_tool(&mut Command::new(FOREIGN_TOOLS_SCRIPT), "get-aarch64")?;
            foreign = Some(foreign_tools(target));
        }
        let compiler = match &foreign {
            Some(place) => place.join("bin/rustc"),
            None => crates::default_compiler(),
        };
        let unwinder = match &foreign {
            Some(place) => place.join("sysroot/lib/aarch64-linux-gnu/libgcc_s.so.1"),
            None => system_unwinder(root)?,
        };
        let mut flags = remap_path_flags(root, target, &compiler)?;
        flags.extend(unwinder_flags(&unwinder)?);
        Ok(Self {
            architecture,
            crates: CrateGraph::of_compiler(root, architecture, &compiler)?,
            flags,
            foreign,
        })
    }

    /// True if it compiles for another architecture than that of this machine.
    pub(super) fn is_foreign(&self) -> bool {
        self.foreign.is_some()
    }

    /// Makes a command of cargo use this compiler.
    pub(super) fn set_compiler(&self, command: &mut Command) {
        if let Some(place) = &self.foreign {
            command.env("RUSTC", place.join("bin/rustc"));
        }
    }

    /// Makes a command of cargo use this compiler, its linker, and the emulator for programs.
    pub(super) fn set_runner(&self, command: &mut Command) {
        self.set_compiler(command);
        if let Some(place) = &self.foreign {
            let variable = |what| {
                let target = self.architecture.rust_target().replace('-', "_").to_uppercase();
                format!("CARGO_TARGET_{target}_{what}")
            };
            command.env(variable("LINKER"), place.join("bin/cc"));
            command.env(variable("RUNNER"), place.join("bin/run"));
        }
    }

    /// A program of binutils, such as `strip`.
    pub(super) fn binutil(&self, name: &str) -> Command {
        match &self.foreign {
            Some(place) => {
                Command::new(place.join(format!("bin/{}-linux-gnu-{name}", self.architecture.name())))
            }
            None => Command::new(name),
        }
    }
}

/// A command that runs a program for an architecture, in the emulator if this machine has another.
pub(super) fn run_program(target: &Path, architecture: TargetArchitecture, program: &Path) -> Command {
    if TargetArchitecture::of_host() == Ok(architecture) {
        return Command::new(program);
    }
    let mut command = Command::new(foreign_tools(target).join("bin/run"));
    command.arg(program);
    command
}

/// The directory of the tools for another architecture.
fn foreign_tools(target: &Path) -> PathBuf {
    target.parent().unwrap_or(target).join("tools/aarch64")
}

/// Flags that remap local paths, so that the same sources compile to the same bytes in any directory.
fn remap_path_flags(root: &Path, target: &Path, compiler: &Path) -> Result<Vec<String>, Error> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let sysroot = Command::new(compiler).args(["--print", "sysroot"]).current_dir(root).output()?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim());
    let mut renamed = vec![
        (home, "/cargo".to_owned()),
        (sysroot.join("lib/rustlib/src/rust"), "/rust".to_owned()),
        (root.to_owned(), "/oarlock".to_owned()),
        (target.to_owned(), "/target".to_owned()),
    ];
    // Cargo names registry directories after their hosts. The last matching flag wins.
    let registries = fs::read_dir(renamed[0].0.join("registry/src")).into_iter().flatten().flatten();
    renamed.extend(registries.map(|registry| (registry.path(), "/crates".to_owned())));
    renamed.extend(vendored_tree::crates_directory(root).map(|crates| (crates, "/crates".to_owned())));
    let mut flags: Vec<String> = renamed
        .into_iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    flags.extend(["-C", "link-arg=-Wl,--build-id=sha1"].map(str::to_owned));
    Ok(flags)
}

/// The unwinder of this machine.
fn system_unwinder(root: &Path) -> Result<PathBuf, Error> {
    let mut gcc = Command::new("gcc");
    gcc.arg("-print-file-name=libgcc_s.so.1").current_dir(root);
    let output =
        gcc.output().map_err(|error| Error::new(format!("expected to start `gcc`: {error}; install it")))?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Flags that leave unwinding to the system's library. zig would link its own unwinder, and two unwinders in one process are
/// incompatible: a forced unwind, as when a Python thread exits inside a call, would abort the process.
fn unwinder_flags(file: &Path) -> Result<Vec<String>, Error> {
    let file = file.canonicalize().map_err(Error::from).map_err(|error| error.in_file(file.display()))?;
    Ok(vec!["-C".to_owned(), format!("link-arg={}", file.display())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_each_place_that_paths_may_begin_with() {
        let flags = remap_path_flags(Path::new("/"), Path::new("/elsewhere"), &crates::default_compiler())
            .expect("flags");
        for flag in ["--remap-path-prefix=/=/oarlock", "--remap-path-prefix=/elsewhere=/target"] {
            assert!(flags.iter().any(|it| it == flag), "{flag} in {flags:?}");
        }
    }
}
