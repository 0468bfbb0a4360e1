//! pip, uv, and environments to install into.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// An installer.
#[derive(Clone, Debug)]
pub(crate) enum PythonInstaller {
    /// A version of pip, installed in this directory.
    Pip(PathBuf),
    Uv,
}

/// The directory that `scripts/get-installers` fills.
pub(crate) fn installer_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("installers")
}

/// All versions of pip, the oldest first.
pub(crate) fn pip_versions() -> Vec<PythonInstaller> {
    let entries = std::fs::read_dir(installer_directory()).expect("the directory of the tools");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a directory").path()).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"pip-")));
    found.sort();
    assert!(found.len() > 1, "expected an older and a newer pip, found {found:?}");
    found.into_iter().map(PythonInstaller::Pip).collect()
}

pub(crate) fn newest_pip() -> PythonInstaller {
    pip_versions().pop().expect("a pip")
}

/// A Python environment without packages.
pub(crate) struct PythonEnvironment {
    directory: TempDir,
    /// The files that a new environment contains.
    before: BTreeSet<String>,
}

impl PythonEnvironment {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut environment = Self { directory, before: BTreeSet::new() };
        environment
            .run_successfully(&PythonInstaller::Uv, &["venv", "--quiet", "--python", "python3", "venv"]);
        environment.before = environment.list_files();
        environment
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs an installer for the environment, in its directory. It ignores the user's settings and caches nothing.
    pub(crate) fn run_installer(&self, installer: &PythonInstaller, arguments: &[&str]) -> Output {
        let mut command = match installer {
            PythonInstaller::Pip(_) => Command::new(self.path().join("venv/bin/python")),
            PythonInstaller::Uv => Command::new(installer_directory().join("uv")),
        };
        let kept = ["PATH", "TMPDIR", "LD_LIBRARY_PATH"];
        command.env_clear().envs(kept.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        if let PythonInstaller::Pip(directory) = installer {
            command.args(["-m", "pip"]).env("PYTHONPATH", directory);
        }
        command
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("NO_PROXY", "127.0.0.1")
            .envs([
                ("PIP_CONFIG_FILE", "/dev/null"),
                ("PIP_NO_CACHE_DIR", "1"),
                ("PIP_ROOT_USER_ACTION", "ignore"),
            ])
            .envs([
                ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
                ("PIP_NO_INPUT", "1"),
                ("PYTHONDONTWRITEBYTECODE", "1"),
            ])
            .envs([("UV_NO_CONFIG", "1"), ("UV_NO_CACHE", "1"), ("UV_PYTHON_DOWNLOADS", "never")])
            .env("VIRTUAL_ENV", self.path().join("venv"))
            .output()
            .unwrap_or_else(|error| panic!("{installer:?}: {error}"))
    }

    /// Runs an installer that must succeed, and returns its output.
    pub(crate) fn run_successfully(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let output = self.run_installer(installer, arguments);
        let message = output_text(&output);
        assert!(output.status.success(), "{installer:?} {arguments:?}: {message}");
        message
    }

    /// Runs an installer that must fail, and returns its output.
    pub(crate) fn run_to_failure(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let output = self.run_installer(installer, arguments);
        let message = output_text(&output);
        assert!(!output.status.success(), "{installer:?} {arguments:?}: {message}");
        message
    }

    /// Installs with pip or uv.
    pub(crate) fn install_requirements(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let first: &[&str] = match installer {
            PythonInstaller::Pip(_) => &["install"],
            PythonInstaller::Uv => &["pip", "install"],
        };
        self.run_successfully(installer, &[first, arguments].concat())
    }

    /// Uninstalls with pip or uv.
    pub(crate) fn uninstall_packages(&self, installer: &PythonInstaller, names: &[&str]) {
        let first: &[&str] = match installer {
            PythonInstaller::Pip(_) => &["uninstall", "--yes"],
            PythonInstaller::Uv => &["pip", "uninstall"],
        };
        self.run_successfully(installer, &[first, names].concat());
    }

    /// The files that wheels installed, without those that installers write themselves.
    pub(crate) fn installed_files(&self) -> BTreeSet<String> {
        let is_of_installer = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            matches!(name, "INSTALLER" | "REQUESTED" | "RECORD" | "uv_cache.json")
                || path.contains("/__pycache__/")
        };
        self.list_files().difference(&self.before).filter(|path| !is_of_installer(path)).cloned().collect()
    }

    /// All files added since the environment was created.
    pub(crate) fn added_files(&self) -> Vec<String> {
        self.list_files().difference(&self.before).cloned().collect()
    }

    fn list_files(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let libraries = self.path().join("venv/lib");
        let mut left = vec![libraries.clone()];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("a file").path();
                if path.is_dir() {
                    left.push(path);
                    continue;
                }
                // Below `python3.11/site-packages` or its equivalent.
                let name =
                    path.strip_prefix(&libraries).expect("a file of it").to_string_lossy().into_owned();
                found.insert(name.splitn(3, '/').nth(2).unwrap_or(&name).to_owned());
            }
        }
        found
    }
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The files of a wheel without `RECORD`.
pub(crate) fn wheel_file_names(wheel: &Path) -> BTreeSet<String> {
    let file = std::fs::File::open(wheel).unwrap_or_else(|error| panic!("{}: {error}", wheel.display()));
    let archive = zip::ZipArchive::new(file).expect("a wheel");
    let names = archive.file_names().map(|name| name.expect("a name").into_owned());
    names.filter(|name| !name.ends_with(".dist-info/RECORD")).collect()
}
