//! Runs the command as a user would, in an environment without variables or installed plugins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A user with an empty home directory.
pub(crate) struct TestUser {
    pub(crate) home: TempDir,
}

/// Exit code and output of a command.
pub(crate) struct TestOutcome {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl TestUser {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().expect("a temporary directory") }
    }

    pub(crate) fn oarlock_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock"));
        command.args(arguments).env_clear().env("HOME", self.home.path()).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run_command(&self, arguments: &[&str]) -> TestOutcome {
        let output = self.oarlock_command(arguments).output().expect("the command starts");
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("the command writes UTF-8");
            text.replace(&self.home.path().display().to_string(), "[HOME]")
        };
        let status = output.status.code().expect("the command ends of itself");
        TestOutcome { status, out: text(output.stdout), err: text(output.stderr) }
    }

    /// Creates a file in the home directory that others cannot write to, as the host demands.
    pub(crate) fn write_file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.home.path().join(name);
        fs::write(&path, bytes).expect("a file in a temporary directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("the file is ours");
        path
    }

    /// Compiles the C template with the documented command.
    pub(crate) fn compile_template(&self, name: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let library = self.home.path().join(name);
        let script =
            "cc -std=c11 -O2 -fPIC -shared -Idevice-sdk/include -o \"$0\" device-sdk/templates/c/*.c";
        let compiled = Command::new("sh")
            .args(["-c", script])
            .arg(&library)
            .current_dir(root)
            .status()
            .expect("a shell");
        assert!(compiled.success());
        fs::set_permissions(&library, fs::Permissions::from_mode(0o755)).expect("the file is ours");
        library
    }

    /// Compiles a plugin from C source, which may include those under `tests/plugins`.
    pub(crate) fn compile_plugin(&self, name: &str, source: &str) -> PathBuf {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (library, text) = (self.home.path().join(name), self.home.path().join("plugin.c"));
        fs::write(&text, source).expect("a file in a temporary directory");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-fPIC", "-shared", "-include", "stdio.h", "-o"]).arg(&library).arg(&text);
        compiler.arg("-I").arg(root.join("device-sdk/include")).arg("-I").arg(root.join("tests/plugins"));
        assert!(compiler.status().expect("a C compiler").success());
        fs::set_permissions(&library, fs::Permissions::from_mode(0o755)).expect("the file is ours");
        library
    }
}

impl TestOutcome {
    /// Parses standard output as JSON.
    pub(crate) fn parse_json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).expect("the output is JSON")
    }

    /// Exit code and both streams as one text.
    pub(crate) fn to_snapshot(&self) -> String {
        format!("status: {}\n----- out -----\n{}----- err -----\n{}", self.status, self.out, self.err)
    }
}
