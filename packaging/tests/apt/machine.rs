//! A machine with apt, simulated by a directory that contains all of apt's configuration and state.

use std::path::Path;
use std::process::{Command, Output};

use oarlock_formats::deb::control::ControlParagraph;

use crate::served_repository::ServedRepository;
use tempfile::TempDir;

pub(crate) struct AptMachine {
    root: TempDir,
}

impl AptMachine {
    /// A machine that uses a repository through its own `.sources` file and keyring.
    pub(crate) fn of_repository(served: &ServedRepository) -> Self {
        let keys =
            std::fs::read(served.file_path("oarlock-archive-keyring.gpg")).expect("what checks signatures");
        Self::with_keys(served, &keys)
    }

    /// A machine with other keys in its keyring.
    pub(crate) fn with_keys(served: &ServedRepository, keys: &[u8]) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let put = |path: &str, bytes: &[u8]| {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            std::fs::write(&file, bytes).expect("a file");
            file
        };
        for directory in [
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "var/cache/apt/archives/partial",
            "var/lib/apt/lists/partial",
        ] {
            std::fs::create_dir_all(root.path().join(directory)).expect("a directory");
        }
        put("var/lib/dpkg/status", b"");
        let keyring = put("usr/share/keyrings/oarlock-archive-keyring.gpg", keys);
        let sources = std::fs::read_to_string(served.file_path("oarlock.sources")).expect("a file");
        let mut sources = ControlParagraph::parse_single(&sources).expect("a paragraph");
        sources.set("URIs", &served.server.address);
        sources.set("Signed-By", &keyring.display().to_string());
        put("etc/apt/sources.list.d/oarlock.sources", sources.to_string().as_bytes());
        // apt looks for the system's settings below this directory, so it finds none of them.
        let settings = format!(
            "Dir \"{root}\";\nDir::State::status \"{root}/var/lib/dpkg/status\";\n\
             APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; }};\n\
             APT::Sandbox::User \"root\";\nAcquire::Retries \"0\";\nAcquire::http::Proxy \"DIRECT\";\n",
            root = root.path().display()
        );
        put("apt.conf", settings.as_bytes());
        Self { root }
    }

    /// Runs apt with these arguments.
    pub(crate) fn run_apt(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("apt-get");
        command.args(["-q", "-y"]).args(arguments).current_dir(self.root.path()).env("LC_ALL", "C");
        for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(variable);
        }
        command.env("APT_CONFIG", self.root.path().join("apt.conf")).output().expect("apt-get")
    }

    /// Runs apt, which must succeed without a warning, and returns its stdout.
    pub(crate) fn run_apt_cleanly(&self, arguments: &[&str]) -> String {
        let output = self.run_apt(arguments);
        let (printed, warned) = (utf8_text(&output.stdout), utf8_text(&output.stderr));
        assert!(output.status.success() && warned.is_empty(), "{printed}{warned}");
        printed
    }

    /// Runs an update that must fail, and returns its messages; apt then knows no package of the repository.
    pub(crate) fn refusal_of_update(&self) -> String {
        // By default a failed download is only a warning.
        let output = self.run_apt(&["update", "--error-on=any"]);
        let message = utf8_text(&output.stdout) + &utf8_text(&output.stderr);
        assert!(!output.status.success(), "{message}");
        let install = self.run_apt(&["--simulate", "install", "oarlock"]);
        assert!(
            utf8_text(&install.stderr).contains("Unable to locate package oarlock"),
            "{}",
            utf8_text(&install.stderr)
        );
        message
    }

    /// A file that apt downloaded.
    pub(crate) fn downloaded_file(&self, name: &str) -> Vec<u8> {
        std::fs::read(Path::new(self.root.path()).join(name)).expect("what apt downloaded")
    }
}

pub(crate) fn utf8_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
