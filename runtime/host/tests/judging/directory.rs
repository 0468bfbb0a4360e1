//! A directory with plugins to judge, and the judge.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_host::{
    HostConfig, HostEnvironment, JudgeContext, JudgedPlugin, PluginCandidate, PluginOrigin, ProcessIdentity,
    Refusal, RefusalReason, judge_candidate,
};

pub(crate) struct JudgingDirectory(tempfile::TempDir);

impl JudgingDirectory {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write_file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o644)).unwrap();
        self.path(name)
    }

    /// Compiles a plugin with the entry and `more` source text.
    pub(crate) fn compile_plugin(&self, name: &str, more: &str, arguments: &[&str]) -> PathBuf {
        let source =
            self.write_file("source.c", format!("int oarlock_plugin_query(void) {{ return 0; }}\n{more}"));
        let output = self.path(name);
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&output)
            .arg(source)
            .args(arguments)
            .status();
        assert!(status.unwrap().success());
        fs::set_permissions(&output, fs::Permissions::from_mode(0o644)).unwrap();
        output
    }

    /// Compiles a library with its file name as its name.
    pub(crate) fn compile_library(&self, name: &str, arguments: &[&str]) -> PathBuf {
        let soname = format!("-Wl,-soname,{name}");
        self.compile_plugin(name, "", &[&[soname.as_str()], arguments].concat())
    }

    /// Writes the manifest of `library`, such as `libnpu.so`, with `more` lines.
    pub(crate) fn write_manifest(&self, library: &str, name: &str, more: &str) {
        let architecture = format!("{}-linux", std::env::consts::ARCH);
        let architecture = if more.contains("architecture") {
            String::new()
        } else {
            format!("architecture = '{architecture}'")
        };
        let contract = if more.contains("contract") { "" } else { "contract = '1.0..1.2'" };
        let text = format!(
            "name = '{name}'\nversion = '1.0'\nkind = 'kernels'\n{architecture}\n{contract}\n{more}\n"
        );
        self.write_file(&library.replace(".so", ".oarlock.toml"), text);
    }
}

pub(crate) fn judge_context(config: &str) -> JudgeContext {
    let config = HostConfig::parse_file(Path::new("/test.toml"), config.as_bytes()).unwrap();
    let environment = HostEnvironment::new(|_| None, false, ProcessIdentity::of_process());
    JudgeContext::new(&config, &environment, "1.1..1.3".parse().unwrap()).unwrap()
}

pub(crate) fn make_candidate(path: PathBuf, origin: PluginOrigin) -> PluginCandidate {
    PluginCandidate { path, origin }
}

pub(crate) fn judge_path(path: PathBuf, config: &str) -> Result<JudgedPlugin, Refusal> {
    judge_candidate(make_candidate(path, PluginOrigin::Explicit), &judge_context(config))
}

pub(crate) fn refusal_reason(path: PathBuf, config: &str) -> RefusalReason {
    judge_path(path, config).unwrap_err().reason
}
