//! pip, uv, and environments to install into.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What installs.
#[derive(Clone, Debug)]
pub(crate) enum PythonInstaller {
    /// pip, from this directory.
    Pip(PathBuf),
    Uv,
}

/// Where `scripts/get-installers` puts them.
pub(crate) fn installer_directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("installers")
}

/// Each version of pip, the oldest first.
pub(crate) fn pip_versions() -> Vec<PythonInstaller> {
    let entries = std::fs::read_dir(installer_directory()).expect("the directory of the tools");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a directory").path()).collect();
    found.retain(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"pip-")));
    found.sort();
    assert!(found.len() > 1, "expected an older and a newer pip, found {found:?}");
    found.into_iter().map(PythonInstaller::Pip).collect()
}

/// The newest pip.
pub(crate) fn newest_pip() -> PythonInstaller {
    pip_versions().pop().expect("a pip")
}

/// A Python with nothing installed.
pub(crate) struct PythonEnvironment {
    directory: TempDir,
    /// What lies in it from the start.
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

    /// Runs an installer in the directory of the environment, for its Python. It knows nothing of the settings of whoever
    /// runs the tests, and keeps nothing for later.
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

    /// What an installer that succeeds says.
    pub(crate) fn run_successfully(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let output = self.run_installer(installer, arguments);
        let said = output_text(&output);
        assert!(output.status.success(), "{installer:?} {arguments:?}: {said}");
        said
    }

    /// What an installer that fails says.
    pub(crate) fn run_to_failure(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let output = self.run_installer(installer, arguments);
        let said = output_text(&output);
        assert!(!output.status.success(), "{installer:?} {arguments:?}: {said}");
        said
    }

    /// Installs, with pip or with uv.
    pub(crate) fn install_requirements(&self, installer: &PythonInstaller, arguments: &[&str]) -> String {
        let first: &[&str] = match installer {
            PythonInstaller::Pip(_) => &["install"],
            PythonInstaller::Uv => &["pip", "install"],
        };
        self.run_successfully(installer, &[first, arguments].concat())
    }

    /// Takes away what is installed, with pip or with uv.
    pub(crate) fn uninstall_packages(&self, installer: &PythonInstaller, names: &[&str]) {
        let first: &[&str] = match installer {
            PythonInstaller::Pip(_) => &["uninstall", "--yes"],
            PythonInstaller::Uv => &["pip", "uninstall"],
        };
        self.run_successfully(installer, &[first, names].concat());
    }

    /// The files that installers put there of wheels, without what they write themselves.
    pub(crate) fn installed_files(&self) -> BTreeSet<String> {
        let is_of_installer = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            matches!(name, "INSTALLER" | "REQUESTED" | "RECORD" | "uv_cache.json")
                || path.contains("/__pycache__/")
        };
        self.list_files().difference(&self.before).filter(|path| !is_of_installer(path)).cloned().collect()
    }

    /// All that was added since the environment was new.
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
                // Below `python3.11/site-packages`, or whatever that is called here.
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

/// The files of a wheel, but for the list of them.
pub(crate) fn wheel_file_names(wheel: &Path) -> BTreeSet<String> {
    let file = std::fs::File::open(wheel).unwrap_or_else(|error| panic!("{}: {error}", wheel.display()));
    let archive = zip::ZipArchive::new(file).expect("a wheel");
    let names = archive.file_names().map(|name| name.expect("a name").into_owned());
    names.filter(|name| !name.ends_with(".dist-info/RECORD")).collect()
}
