//! The compiler, its libraries and binutils for an architecture. For another architecture than that of this machine they come from
//! a script, which also runs programs for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_formats::error::Error;
use oarlock_matrix::CpuArchitecture;

use crate::build_tools::BuildTools;
use crate::crates::CrateGraph;
use crate::vendored_tree;

/// The script that lays out a toolchain for 64-bit ARM on x86-64.
const CROSS_SCRIPT: &str = "scripts/get-aarch64";

pub(super) struct TargetToolchain {
    architecture: CpuArchitecture,
    /// The directory of the script; `None` for the tools of this machine.
    cross: Option<PathBuf>,
    pub(super) crates: CrateGraph,
    /// Flags for every part. They remove local paths and give debug information a stable name.
    pub(super) flags: Vec<String>,
}

impl TargetToolchain {
    /// Installs what is missing.
    pub(super) fn new(
        root: &Path,
        target: &Path,
        tools: &BuildTools<'_>,
        architecture: CpuArchitecture,
    ) -> Result<Self, Error> {
        let cross = Self::lay_out(root, target, tools, architecture)?;
        let rustc = cross.as_ref().map(|place| place.join("bin/rustc"));
        let flags = [
            remap_path_flags(root, target, rustc.as_deref().unwrap_or("rustc".as_ref()))?,
            unwinder_flags(root, cross.as_deref())?,
        ];
        let crates = CrateGraph::of_workspace(root, architecture, rustc.as_deref())?;
        Ok(Self { architecture, cross, crates, flags: flags.concat() })
    }

    /// Runs the script, unless this machine has the architecture, and returns where it laid out the toolchain.
    pub(super) fn lay_out(
        root: &Path,
        target: &Path,
        tools: &BuildTools<'_>,
        architecture: CpuArchitecture,
    ) -> Result<Option<PathBuf>, Error> {
        let cross = Self::cross_directory(target, architecture);
        match architecture {
            _ if cross.is_none() => {}
            CpuArchitecture::Aarch64 => {
                tools.run_tool(&mut Command::new(root.join(CROSS_SCRIPT)), "get-aarch64")?;
            }
            CpuArchitecture::X86_64 => {
                return Err(Error::new("expected an x86-64 machine to build for x86-64"));
            }
        }
        Ok(cross)
    }

    /// The program of a toolchain that runs programs for its architecture.
    pub(super) fn runner(place: &Path) -> PathBuf {
        place.join("bin/run")
    }

    /// Where the script lays out a toolchain; `None` for the architecture of this machine.
    pub(super) fn cross_directory(target: &Path, architecture: CpuArchitecture) -> Option<PathBuf> {
        let is_cross = architecture.name() != std::env::consts::ARCH;
        is_cross.then(|| target.with_file_name("tools").join(architecture.name()))
    }

    /// The target triple, if it is not that of this machine.
    pub(super) fn cross_target(&self) -> Option<&'static str> {
        self.cross.is_some().then(|| self.architecture.target_triple())
    }

    /// A program of binutils, such as `strip`.
    pub(super) fn binutils(&self, name: &str) -> Command {
        match &self.cross {
            Some(place) => {
                Command::new(place.join(format!("bin/{}-linux-gnu-{name}", self.architecture.name())))
            }
            None => Command::new(name),
        }
    }

    /// The words that run a program.
    pub(super) fn program_words(&self, program: PathBuf) -> Vec<PathBuf> {
        self.cross.iter().map(|place| Self::runner(place)).chain([program]).collect()
    }

    /// Makes cargo or maturin use the compiler and the linker.
    pub(super) fn set_environment(&self, command: &mut Command) {
        let Some(place) = &self.cross else { return };
        let name = self.architecture.target_triple().replace('-', "_");
        command.env("RUSTC", place.join("bin/rustc"));
        command.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), place.join("bin/cc"));
    }
}

/// Flags that remap local paths, so that the same sources compile to the same bytes in any directory.
fn remap_path_flags(root: &Path, target: &Path, rustc: &Path) -> Result<Vec<String>, Error> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo"))).unwrap_or_default();
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output()?;
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

/// Flags that leave unwinding to the system's library. zig would link its own unwinder, and two unwinders in one process are
/// incompatible: a forced unwind, as when a Python thread exits inside a call, would abort the process.
fn unwinder_flags(root: &Path, cross: Option<&Path>) -> Result<Vec<String>, Error> {
    let file = if let Some(place) = cross {
        place.join("sysroot/lib/aarch64-linux-gnu/libgcc_s.so.1")
    } else {
        let mut gcc = Command::new("gcc");
        gcc.arg("-print-file-name=libgcc_s.so.1").current_dir(root);
        let output = gcc
            .output()
            .map_err(|error| Error::new(format!("expected to start `gcc`: {error}; install it")))?;
        PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
    };
    let file = file.canonicalize().map_err(Error::from).map_err(|error| error.in_file(file.display()))?;
    Ok(vec!["-C".to_owned(), format!("link-arg={}", file.display())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_names_each_place_that_paths_may_begin_with() {
        let flags = remap_path_flags(Path::new("/somewhere"), Path::new("/elsewhere"), Path::new("rustc"))
            .expect("flags");
        for flag in ["--remap-path-prefix=/somewhere=/oarlock", "--remap-path-prefix=/elsewhere=/target"] {
            assert!(flags.iter().any(|it| it == flag), "{flag} in {flags:?}");
        }
    }
}
