//! `scripts/install.sh` on fake machines, each a directory with some commands: what it detects, and what it installs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_pack::index::WheelIndex;

use super::install::{script_command, utf8_text};
use tempfile::TempDir;

/// A machine: files below a root, and commands with fixed output.
struct FakeMachine(TempDir);

impl FakeMachine {
    /// A machine of x86-64 with glibc, a processor with AVX and CPython 3.12, without a GPU.
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().expect("a directory"));
        machine.write_file("root/proc/cpuinfo", "flags\t\t: fpu sse2 avx avx2\n");
        machine.add_command("uname", "case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac");
        machine.add_command("getconf", "echo glibc 2.39");
        machine.add_command("python3", "echo python 3.12 yes 64 no no");
        for tool in ["sh", "sed", "grep", "head", "tr", "cat"] {
            let place =
                Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().expect("a shell");
            let place = utf8_text(&place.stdout);
            std::os::unix::fs::symlink(place.trim(), machine.0.path().join("bin").join(tool))
                .expect("a link");
        }
        machine
    }

    fn write_file(&self, path: &str, content: &str) {
        let file = self.0.path().join(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        fs::write(file, content).expect("a file");
    }

    fn add_command(&self, name: &str, does: &str) {
        let path = format!("bin/{name}");
        self.write_file(&path, &format!("#!/bin/sh\n{does}\n"));
        fs::set_permissions(self.0.path().join(path), fs::Permissions::from_mode(0o755)).expect("a file");
    }

    fn add_gpu(&self, vendor: &str) {
        let place = format!("root/sys/bus/pci/devices/0000:0{vendor}:00.0");
        self.write_file(&format!("{place}/class"), "0x030000\n");
        self.write_file(&format!("{place}/vendor"), &format!("{vendor}\n"));
    }

    fn script_command(&self, options: &[&str]) -> Command {
        let path = self.0.path();
        let mut command = script_command(&["sh"]);
        command.arg("--dry-run").args(options).env("PATH", path.join("bin")).env("HOME", path.join("home"));
        command.env("OARLOCK_INSTALL_ROOT", path.join("root")).env_remove("XDG_DATA_HOME");
        command
    }

    fn run_script(&self, options: &[&str]) -> Output {
        self.script_command(options).output().expect("a shell")
    }

    /// The first command that the script would run, without the path of the fake machine.
    fn first_command(&self, options: &[&str]) -> String {
        let output = self.run_script(options);
        assert!(output.status.success(), "{output:?}");
        let message = utf8_text(&output.stdout).replace(&format!("{}/", self.0.path().display()), "");
        message.lines().next().unwrap_or_default().to_owned()
    }
}

const INDEX_ARGUMENTS: &str = "--index-url https://oarlock.example/wheels/simple/";

#[test]
fn a_plain_machine_gets_the_core() {
    let machine = FakeMachine::new();
    assert_eq!(
        machine.first_command(&[]),
        format!("bin/python3 -m pip install oarlock==0.1.0 {INDEX_ARGUMENTS}")
    );
    let output = utf8_text(&machine.run_script(&[]).stdout);
    assert!(output.ends_with("bin/python3 -m oarlock doctor\n"), "{output}");
    let elsewhere = machine.first_command(&["--index", "http://localhost:8000/"]);
    assert!(elsewhere.ends_with(" --index-url http://localhost:8000/simple/"), "{elsewhere}");
}

#[test]
fn the_driver_is_known_by_its_tool_or_by_its_version() {
    let machine = FakeMachine::new();
    machine.add_gpu("0x10de");
    assert!(!machine.first_command(&[]).contains("cuda"), "no driver");
    let version =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n";
    machine.write_file("root/proc/driver/nvidia/version", version);
    assert!(machine.first_command(&[]).contains(" 'oarlock[cuda12]==0.1.0' "), "by the version");
    machine.write_file("root/proc/driver/nvidia/version", &version.replace("535.104", "470.57"));
    assert!(!machine.first_command(&[]).contains("cuda"), "an old one");
    for message in ["CUDA Version: 13.0", "CUDA UMD Version: 13.1"] {
        machine.add_command("nvidia-smi", &format!("echo '| NVIDIA-SMI 590.44  {message}     |'"));
        assert!(machine.first_command(&[]).contains(" 'oarlock[cuda13]==0.1.0' "), "{message}");
    }
}

#[test]
fn a_bus_that_is_hidden_hides_no_gpu_that_has_a_driver() {
    let machine = FakeMachine::new();
    machine.add_command("nvidia-smi", "echo 'CUDA Version: 12.4'");
    assert!(machine.first_command(&[]).contains(" 'oarlock[cuda12]==0.1.0' "));
}

#[test]
fn the_tool_says_which_gpus_there_are() {
    let machine = FakeMachine::new();
    let says = |capabilities: &str| {
        let query = format!("case $1 in --query-gpu=compute_cap) printf '{capabilities}' ;; *)");
        machine.add_command("nvidia-smi", &format!("{query} echo 'CUDA Version: 13.0' ;; esac"));
        machine.first_command(&[])
    };
    assert!(says("7.0\\n").contains("[cuda12]"), "one that CUDA 13 does not serve");
    assert!(says("9.0\\n7.0\\n").contains("[cuda12]"), "one of each");
    assert!(says("9.0\\n").contains("[cuda13]"));
    assert!(!says("3.7\\n").contains("cuda"));
    assert!(
        says("Field \"compute_cap\" is not a valid field to query.\\n").contains("[cuda13]"),
        "an old tool"
    );
}

#[test]
fn uv_takes_ours_from_our_index_and_the_rest_from_where_it_always_looks() {
    let machine = FakeMachine::new();
    machine.add_command("uv", "");
    let install = "uv pip install --python bin/python3";
    let found = machine.first_command(&["--device", "cuda12"]);
    assert_eq!(
        found,
        format!("{install} 'oarlock[cuda12]==0.1.0' --index https://oarlock.example/wheels/simple/")
    );
    let found = machine.first_command(&["--blas", "mkl", "--local-libraries"]);
    assert_eq!(found, format!("{install} 'oarlock[mkl-local]==0.1.0' {INDEX_ARGUMENTS}"));
}

#[test]
fn nvidia_smi_without_a_driver_counts_as_no_gpu() {
    let machine = FakeMachine::new();
    machine.add_command("nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9");
    let output = machine.run_script(&[]);
    assert!(utf8_text(&output.stderr).contains("there is no GPU"), "{output:?}");
}

#[test]
fn a_newer_python_is_taken_where_the_usual_one_is_too_old() {
    let machine = FakeMachine::new();
    machine.add_command("python3", "echo python 3.9 yes 64 no no");
    let output = machine.run_script(&[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    machine.add_command("python3.13", "echo python 3.13 yes 64 no no");
    machine.add_command("python3.13-config", "echo --libs");
    assert!(machine.first_command(&[]).starts_with("bin/python3.13 -m pip install "));
}

#[test]
fn without_a_python_the_distribution_says_how_to_get_one() {
    let machine = FakeMachine::new();
    fs::remove_file(machine.0.path().join("bin/python3")).expect("a file");
    machine.write_file("root/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
    let output = machine.run_script(&[]);
    let stderr = utf8_text(&output.stderr);
    assert!(output.status.code() == Some(3) && stderr.contains("sudo apt-get install python3"), "{stderr}");
}

#[test]
fn a_32_bit_system_on_a_64_bit_kernel_is_told_what_is_wrong() {
    let machine = FakeMachine::new();
    machine.add_command("uname", "case $1 in -s) echo Linux ;; -m) echo aarch64 ;; esac");
    machine.add_command("getconf", "case $1 in LONG_BIT) echo 32 ;; *) echo glibc 2.31 ;; esac");
    machine.add_command("python3", "echo python 3.12 yes 32 no no");
    let output = machine.run_script(&[]);
    let stderr = utf8_text(&output.stderr);
    assert!(output.status.code() == Some(4), "{output:?}");
    assert!(stderr.contains("glibc 2.31 on armv8l; Oarlock needs a 64-bit system"), "{stderr}");
    // The same kernel with a system of 64 bits.
    machine.add_command("getconf", "case $1 in LONG_BIT) echo 64 ;; *) echo glibc 2.31 ;; esac");
    machine.add_command("python3", "echo python 3.12 yes 64 no no");
    assert!(machine.first_command(&[]).starts_with("bin/python3 -m pip install oarlock==0.1.0 "));
}

#[test]
fn without_what_says_what_the_machine_is_there_is_a_sentence() {
    let machine = FakeMachine::new();
    fs::remove_file(machine.0.path().join("bin/uname")).expect("a file");
    let output = machine.run_script(&[]);
    let stderr = utf8_text(&output.stderr);
    assert!(
        output.status.code() == Some(1) && stderr.starts_with("error: expected `uname`, which"),
        "{output:?}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn a_python_of_the_system_is_left_alone() {
    let machine = FakeMachine::new();
    machine.add_command("python3", "echo python 3.12 yes 64 no yes");
    assert_eq!(machine.first_command(&[]), "bin/python3 -m venv home/.local/share/oarlock/venv");
    assert_eq!(machine.first_command(&["--venv", "my venv"]), "bin/python3 -m venv 'my venv'");
    machine.add_command("uv", "");
    assert_eq!(machine.first_command(&["--venv", "it's"]), r"uv venv --quiet --python bin/python3 'it'\''s'");
    let output = machine.run_script(&["--venv", "here"]);
    let install = format!("uv pip install --python here/bin/python oarlock==0.1.0 {INDEX_ARGUMENTS}\n");
    assert!(utf8_text(&output.stdout).contains(&install), "{output:?}");
}

#[test]
fn without_a_home_a_virtual_environment_has_to_be_named() {
    let machine = FakeMachine::new();
    machine.add_command("python3", "echo python 3.12 yes 64 no yes");
    let output = machine.script_command(&[]).env_remove("HOME").output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(utf8_text(&output.stderr).contains("expected HOME to say where"), "{output:?}");
    let output = machine.script_command(&["--venv", "here"]).env_remove("HOME").output().expect("a shell");
    assert!(output.status.success(), "{output:?}");
    let other = machine
        .script_command(&[])
        .env_remove("HOME")
        .env("XDG_DATA_HOME", "/data")
        .output()
        .expect("a shell");
    assert!(utf8_text(&other.stdout).contains("venv /data/oarlock/venv"), "{other:?}");
}

/// An index with a core of one module, whose doctor exits with this code.
fn write_index(directory: &Path, doctor: u8) -> String {
    let name = "oarlock-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
    let mut wheel = Wheel::new("oarlock-0.1.0");
    wheel.add_metadata("METADATA", b"Metadata-Version: 2.1\nName: oarlock\nVersion: 0.1.0\n\n".to_vec());
    let about = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-abi3-manylinux_2_28_x86_64\n";
    wheel.add_metadata("WHEEL", about.to_vec());
    wheel.add_file("oarlock/__init__.py", b"def run_check():\n    print('checked')\n".to_vec());
    let main = format!("import sys\nprint('looked at', sys.argv[1])\nsys.exit({doctor})\n");
    wheel.add_file("oarlock/__main__.py", main.into_bytes());
    let wheels = directory.join("wheels");
    fs::create_dir_all(&wheels).expect("a directory");
    fs::write(wheels.join(name), wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"))
        .expect("a file");
    // With a matrix without rows, no wheel is checked for its library.
    let mut matrix = super::own_matrix();
    matrix.wheels.clear();
    let index = WheelIndex::of_directory(&wheels, &matrix, &BTreeMap::new(), |_, _| {}).expect("an index");
    index.write_index(&directory.join("index")).expect("files");
    format!("file://{}", directory.join("index").display())
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn it_installs_into_an_environment_and_has_the_doctor_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let environment = directory.path().join("an environment");
    for (doctor, code) in [(0, 0), (1, 5)] {
        let index = write_index(directory.path(), doctor);
        let mut command = script_command(&["sh"]);
        command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", &index]);
        command
            .env("PIP_NO_CACHE_DIR", "1")
            .env("PIP_FORCE_REINSTALL", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        let output = command.output().expect("a shell");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(utf8_text(&output.stdout).ends_with("looked at doctor\n"), "{output:?}");
    }
    // An image is built without a driver, which the doctor would report as an error.
    let tools = directory.path().join("tools");
    fs::create_dir(&tools).expect("a directory");
    fs::write(tools.join("nvidia-smi"), "#!/bin/sh\nexit 9\n").expect("a file");
    fs::set_permissions(tools.join("nvidia-smi"), fs::Permissions::from_mode(0o755)).expect("a file");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
    let mut command = script_command(&["sh"]);
    command.arg("--venv").arg(&environment).args(["--device", "cuda12", "--local-libraries"]);
    command.args(["--index", &write_index(directory.path(), 1)]).env("PATH", path);
    let output = command.env("OARLOCK_INSTALL_ROOT", directory.path()).output().expect("a shell");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(utf8_text(&output.stdout).ends_with("checked\n"), "{output:?}");
    assert!(
        utf8_text(&output.stderr).contains("no driver is here, so the device cannot be tried"),
        "{output:?}"
    );
    let mut command = script_command(&["sh"]);
    command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", "file:///nowhere"]);
    let output = command.env("PIP_FORCE_REINSTALL", "1").env("PIP_RETRIES", "0").output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(utf8_text(&output.stderr).contains("Oarlock is not installed"), "{output:?}");
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn reinstalling_replaces_another_installed_flavor() {
    let directory = tempfile::tempdir().expect("a directory");
    let environment = directory.path().join("environment");
    let index = write_index(directory.path(), 0);
    let install = || {
        let mut command = script_command(&["sh"]);
        command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", &index]);
        let output = command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1").output().expect("a shell");
        assert!(output.status.success(), "{output:?}");
        utf8_text(&output.stderr)
    };
    assert!(!install().contains("makes room"));
    // Other versions that satisfy `oarlock==0.1.0`.
    let versions = fs::read_dir(environment.join("lib")).expect("a directory");
    let python = versions.map(|it| it.expect("a directory").path()).next().expect("a version of Python");
    let packages = python.join("site-packages");
    let (plain, other) =
        (packages.join("oarlock-0.1.0.dist-info"), packages.join("oarlock-0.1.0+noavx.dist-info"));
    fs::rename(&plain, &other).expect("a directory");
    let metadata = fs::read_to_string(other.join("METADATA")).expect("a file");
    fs::write(other.join("METADATA"), metadata.replace("0.1.0", "0.1.0+noavx")).expect("a file");
    let record = fs::read_to_string(other.join("RECORD")).expect("a file");
    fs::write(other.join("RECORD"), record.replace("oarlock-0.1.0.", "oarlock-0.1.0+noavx."))
        .expect("a file");
    assert!(install().contains("`0.1.0+noavx` is installed, and makes room for another flavor"));
    assert!(plain.is_dir() && !other.exists());
    assert!(!install().contains("makes room"));
}
