//! Third-party build tools: installs missing ones, and runs them with logs that can be followed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use oarlock_formats::error::Error;

use crate::vendored_tree;

/// The build tools beside cargo: the pip requirement and the name of the program.
const PYTHON_TOOLS: [(&str, &str); 5] = [
    ("maturin==1.16.0", "maturin"),
    ("ziglang==0.17.1", "python-zig"),
    ("cargo-zigbuild==0.24.0", "cargo-zigbuild"),
    ("auditwheel==6.8.2", "auditwheel"),
    ("abi3audit==0.0.26", "abi3audit"),
];

/// The tool that builds the book, and the script that installs it.
pub(crate) const BOOK_TOOL: &str = "mdbook";
pub(crate) const TOOL_SCRIPT: &str = "scripts/tools";

/// Lines of a tool's log to show when it fails.
const MAX_LOG_LINES: usize = 20;

/// The caller's settings that would change what cargo builds from the same sources.
const CARGO_SETTING_PREFIXES: [&str; 3] = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_"];

/// The build tools as pip requirements.
pub(crate) fn tool_requirements() -> Vec<String> {
    PYTHON_TOOLS.map(|(package, _)| package.to_owned()).to_vec()
}

/// Build tools in a directory.
pub(crate) struct BuildTools<'w> {
    root: &'w Path,
    target: &'w Path,
}

impl<'w> BuildTools<'w> {
    /// Installs the tools that are missing; build output goes to `target`.
    pub(crate) fn new(root: &'w Path, target: &'w Path) -> Result<Self, Error> {
        let tools = Self::in_directory(root, target);
        let list = tools.tools_directory().join("installed");
        // Scripts of a virtual environment contain its path, so a moved environment does not work.
        let place = tools.tools_directory();
        let place = place.canonicalize().unwrap_or(place);
        let wanted = format!("{}\n{}", PYTHON_TOOLS.map(|(package, _)| package).join("\n"), place.display());
        let is_there = |(_, name): &(&str, &str)| tools.bin_directory().join(name).exists();
        if fs::read_to_string(&list).is_ok_and(|installed| installed == wanted)
            && PYTHON_TOOLS.iter().all(is_there)
        {
            return Ok(tools);
        }
        // Recreates it, because pip considers a package with missing files installed. Resolves links first: several builds may
        // share the directory through a link, and Python does not create an environment at a link.
        tools.create_environment(&place, "tools")?;
        let mut pip = tools.pip_command(&place);
        tools.run_tool(pip.args(PYTHON_TOOLS.map(|(package, _)| package)), "tools")?;
        fs::write(list, wanted)?;
        Ok(tools)
    }

    /// Opens the directory without installing any tool.
    pub(crate) fn in_directory(root: &'w Path, target: &'w Path) -> Self {
        Self { root, target }
    }

    /// A pip command for an environment; it installs from the vendored wheels if there are any, and otherwise from PyPI.
    pub(crate) fn pip_command(&self, environment: &Path) -> Command {
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--only-binary", ":all:"]);
        if let Some(wheels) = vendored_tree::python_directory(self.root) {
            pip.args(["--no-index", "--find-links"]).arg(wheels);
        }
        pip
    }

    fn tools_directory(&self) -> PathBuf {
        self.target.join("tools")
    }

    fn bin_directory(&self) -> PathBuf {
        self.tools_directory().join("bin")
    }

    /// Creates a virtual environment, replacing whatever is there.
    pub(crate) fn create_environment(&self, place: &Path, log: &str) -> Result<(), Error> {
        self.run_tool(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place), log).map(drop)
    }

    /// A tool that finds the other tools and ignores the caller's cargo settings.
    pub(crate) fn tool_command(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin_directory().join(name));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(self.bin_directory()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(paths).unwrap_or(path));
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_cargo_setting(name)) {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn log_path(&self, name: &str) -> PathBuf {
        self.target.join("log").join(format!("{name}.txt"))
    }

    /// Runs a tool. Its output goes to a log file from the start; on failure, the error shows the last lines.
    pub(crate) fn run_tool(&self, command: &mut Command, log: &str) -> Result<String, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        let program = program.rsplit('/').next().unwrap_or_default().to_owned();
        let log = self.log_path(log);
        let at = |error: std::io::Error| Error::from(error).in_file(log.display());
        fs::create_dir_all(log.parent().unwrap_or(self.target)).map_err(at)?;
        let file = File::create(&log).map_err(at)?;
        command.current_dir(self.root).stdin(Stdio::null());
        command.stdout(file.try_clone().map_err(at)?).stderr(file);
        let status = command
            .status()
            .map_err(|error| Error::new(format!("expected to start `{program}`: {error}; install it")))?;
        let output = fs::read(&log).map_err(at)?;
        let output = String::from_utf8_lossy(&output).into_owned();
        if status.success() {
            return Ok(output);
        }
        let lines: Vec<&str> = output.lines().collect();
        let last = lines[lines.len().saturating_sub(MAX_LOG_LINES)..].join("\n");
        Err(Error::new(format!(
            "`{program}` failed: {status}; all it said is in `{}`\n{last}",
            log.display()
        )))
    }
}

/// True if a variable is a cargo setting that changes the output. The degree of parallelism does not.
fn is_cargo_setting(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    CARGO_SETTING_PREFIXES.iter().any(|begin| name.starts_with(begin)) && name != "CARGO_BUILD_JOBS"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_sets_for_cargo_does_not_reach_a_build() {
        for name in [
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        ] {
            assert!(is_cargo_setting(&name.into()), "{name}");
        }
        for name in ["CARGO_HOME", "CARGO_BUILD_JOBS", "PATH"] {
            assert!(!is_cargo_setting(&name.into()), "{name}");
        }
    }

    #[test]
    fn what_a_tool_says_is_in_its_file_while_it_runs_and_its_end_in_the_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let tools = BuildTools { root: directory.path(), target: directory.path() };
        let shell = |line: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", line]);
            tools.run_tool(&mut shell, "told")
        };
        assert_eq!(
            shell("echo one; read said < log/told.txt; echo $said >&2").expect("a shell"),
            "one\none\n"
        );
        let error = shell("seq 30 >&2; exit 3").expect_err("a failure").to_string();
        let log = tools.log_path("told");
        assert!(error.starts_with("`sh` failed: exit status: 3; all it said is in `"), "{error}");
        assert!(error.ends_with("\n29\n30") && !error.contains("\n10\n"), "{error}");
        assert_eq!(fs::read_to_string(log).expect("a log").lines().count(), 30);
    }
}
