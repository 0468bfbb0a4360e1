//! What `scripts/install.sh` finds out about a machine, which here is a directory and some commands, and what it installs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use oarlock_pack::index::Index;
use oarlock_pack::packed::Effort;
use oarlock_pack::wheel::Wheel;
use tempfile::TempDir;

use super::install::{script, text};

/// A machine: files below a root, and commands that say something.
struct Pretended(TempDir);

impl Pretended {
    /// One of x86-64 with glibc, a processor with AVX and CPython 3.12, without a GPU.
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().expect("a directory"));
        machine.file("root/proc/cpuinfo", "flags\t\t: fpu sse2 avx avx2\n");
        machine.command("uname", "case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac");
        machine.command("getconf", "echo glibc 2.39");
        machine.command("python3", "echo python 3.12 yes 64 no no");
        for tool in ["sh", "sed", "grep", "head", "tr", "cat"] {
            let place =
                Command::new("sh").args(["-c", &format!("command -v {tool}")]).output().expect("a shell");
            let place = text(&place.stdout);
            std::os::unix::fs::symlink(place.trim(), machine.0.path().join("bin").join(tool))
                .expect("a link");
        }
        machine
    }

    fn file(&self, path: &str, content: &str) {
        let file = self.0.path().join(path);
        fs::create_dir_all(file.parent().expect("a directory")).expect("directories");
        fs::write(file, content).expect("a file");
    }

    fn command(&self, name: &str, does: &str) {
        let path = format!("bin/{name}");
        self.file(&path, &format!("#!/bin/sh\n{does}\n"));
        fs::set_permissions(self.0.path().join(path), fs::Permissions::from_mode(0o755)).expect("a file");
    }

    fn gpu(&self, vendor: &str) {
        let place = format!("root/sys/bus/pci/devices/0000:0{vendor}:00.0");
        self.file(&format!("{place}/class"), "0x030000\n");
        self.file(&format!("{place}/vendor"), &format!("{vendor}\n"));
    }

    fn asking(&self, options: &[&str]) -> Command {
        let path = self.0.path();
        let mut command = script(&["sh"]);
        command.arg("--dry-run").args(options).env("PATH", path.join("bin")).env("HOME", path.join("home"));
        command.env("OARLOCK_INSTALL_ROOT", path.join("root")).env_remove("XDG_DATA_HOME");
        command
    }

    fn asked(&self, options: &[&str]) -> Output {
        self.asking(options).output().expect("a shell")
    }

    /// The first command that would be run, without what the machine is called here.
    fn first(&self, options: &[&str]) -> String {
        let output = self.asked(options);
        assert!(output.status.success(), "{output:?}");
        let said = text(&output.stdout).replace(&format!("{}/", self.0.path().display()), "");
        said.lines().next().unwrap_or_default().to_owned()
    }
}

const INDEX: &str = "--index-url https://oarlock.example/wheels/simple/";

#[test]
fn a_plain_machine_gets_the_core() {
    let machine = Pretended::new();
    assert_eq!(machine.first(&[]), format!("bin/python3 -m pip install oarlock==0.1.0 {INDEX}"));
    let output = text(&machine.asked(&[]).stdout);
    assert!(output.ends_with("bin/python3 -m oarlock doctor\n"), "{output}");
    let elsewhere = machine.first(&["--index", "http://localhost:8000/"]);
    assert!(elsewhere.ends_with(" --index-url http://localhost:8000/simple/"), "{elsewhere}");
}

#[test]
fn the_driver_is_known_by_its_tool_or_by_its_version() {
    let machine = Pretended::new();
    machine.gpu("0x10de");
    assert!(!machine.first(&[]).contains("cuda"), "no driver");
    let version =
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n";
    machine.file("root/proc/driver/nvidia/version", version);
    assert!(machine.first(&[]).contains(" 'oarlock[cuda12]==0.1.0' "), "by the version");
    machine.file("root/proc/driver/nvidia/version", &version.replace("535.104", "470.57"));
    assert!(!machine.first(&[]).contains("cuda"), "an old one");
    for said in ["CUDA Version: 13.0", "CUDA UMD Version: 13.1"] {
        machine.command("nvidia-smi", &format!("echo '| NVIDIA-SMI 590.44  {said}     |'"));
        assert!(machine.first(&[]).contains(" 'oarlock[cuda13]==0.1.0' "), "{said}");
    }
}

#[test]
fn a_bus_that_is_hidden_hides_no_gpu_that_has_a_driver() {
    let machine = Pretended::new();
    machine.command("nvidia-smi", "echo 'CUDA Version: 12.4'");
    assert!(machine.first(&[]).contains(" 'oarlock[cuda12]==0.1.0' "));
}

#[test]
fn the_tool_says_which_gpus_there_are() {
    let machine = Pretended::new();
    let says = |capabilities: &str| {
        let query = format!("case $1 in --query-gpu=compute_cap) printf '{capabilities}' ;; *)");
        machine.command("nvidia-smi", &format!("{query} echo 'CUDA Version: 13.0' ;; esac"));
        machine.first(&[])
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
    let machine = Pretended::new();
    machine.command("uv", "");
    let install = "uv pip install --python bin/python3";
    let found = machine.first(&["--device", "cuda12"]);
    assert_eq!(
        found,
        format!("{install} 'oarlock[cuda12]==0.1.0' --index https://oarlock.example/wheels/simple/")
    );
    let found = machine.first(&["--blas", "mkl", "--local-libraries"]);
    assert_eq!(found, format!("{install} 'oarlock[mkl-local]==0.1.0' {INDEX}"));
}

#[test]
fn a_tool_without_a_driver_is_no_gpu() {
    let machine = Pretended::new();
    machine.command("nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9");
    let output = machine.asked(&[]);
    assert!(text(&output.stderr).contains("there is no GPU"), "{output:?}");
}

#[test]
fn a_newer_python_is_taken_where_the_usual_one_is_too_old() {
    let machine = Pretended::new();
    machine.command("python3", "echo python 3.9 yes 64 no no");
    let output = machine.asked(&[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    machine.command("python3.13", "echo python 3.13 yes 64 no no");
    machine.command("python3.13-config", "echo --libs");
    assert!(machine.first(&[]).starts_with("bin/python3.13 -m pip install "));
}

#[test]
fn without_a_python_the_distribution_says_how_to_get_one() {
    let machine = Pretended::new();
    fs::remove_file(machine.0.path().join("bin/python3")).expect("a file");
    machine.file("root/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
    let output = machine.asked(&[]);
    let told = text(&output.stderr);
    assert!(output.status.code() == Some(3) && told.contains("sudo apt-get install python3"), "{told}");
}

#[test]
fn without_what_says_what_the_machine_is_there_is_a_sentence() {
    let machine = Pretended::new();
    fs::remove_file(machine.0.path().join("bin/uname")).expect("a file");
    let output = machine.asked(&[]);
    let told = text(&output.stderr);
    assert!(
        output.status.code() == Some(1) && told.starts_with("error: expected `uname`, which"),
        "{output:?}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_python_of_the_system_is_left_alone() {
    let machine = Pretended::new();
    machine.command("python3", "echo python 3.12 yes 64 no yes");
    assert_eq!(machine.first(&[]), "bin/python3 -m venv home/.local/share/oarlock/venv");
    assert_eq!(machine.first(&["--venv", "my venv"]), "bin/python3 -m venv 'my venv'");
    machine.command("uv", "");
    assert_eq!(machine.first(&["--venv", "it's"]), r"uv venv --quiet --python bin/python3 'it'\''s'");
    let output = machine.asked(&["--venv", "here"]);
    let install = format!("uv pip install --python here/bin/python oarlock==0.1.0 {INDEX}\n");
    assert!(text(&output.stdout).contains(&install), "{output:?}");
}

#[test]
fn without_a_home_a_virtual_environment_has_to_be_named() {
    let machine = Pretended::new();
    machine.command("python3", "echo python 3.12 yes 64 no yes");
    let output = machine.asking(&[]).env_remove("HOME").output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("expected HOME to say where"), "{output:?}");
    let output = machine.asking(&["--venv", "here"]).env_remove("HOME").output().expect("a shell");
    assert!(output.status.success(), "{output:?}");
    let other =
        machine.asking(&[]).env_remove("HOME").env("XDG_DATA_HOME", "/data").output().expect("a shell");
    assert!(text(&other.stdout).contains("venv /data/oarlock/venv"), "{other:?}");
}

/// An index of a core that is one module, whose doctor ends with a number.
fn index(directory: &Path, doctor: u8) -> String {
    let name = "oarlock-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl";
    let mut wheel = Wheel::new("oarlock-0.1.0");
    wheel.say("METADATA", b"Metadata-Version: 2.1\nName: oarlock\nVersion: 0.1.0\n\n".to_vec());
    let about = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-abi3-manylinux_2_28_x86_64\n";
    wheel.say("WHEEL", about.to_vec());
    wheel.add("oarlock/__init__.py", b"def run_check():\n    print('checked')\n".to_vec());
    let main = format!("import sys\nprint('looked at', sys.argv[1])\nsys.exit({doctor})\n");
    wheel.add("oarlock/__main__.py", main.into_bytes());
    let wheels = directory.join("wheels");
    fs::create_dir_all(&wheels).expect("a directory");
    fs::write(wheels.join(name), wheel.to_bytes(&Effort::Usual.into()).expect("a wheel")).expect("a file");
    // By a matrix without rows nobody wants to see its library.
    let mut matrix = super::own();
    matrix.wheels.clear();
    let index = Index::of_directory(&wheels, &matrix, &BTreeMap::new(), |_, _| {}).expect("an index");
    index.write(&directory.join("index")).expect("files");
    format!("file://{}", directory.join("index").display())
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn it_installs_into_an_environment_and_has_the_doctor_look() {
    let directory = tempfile::tempdir().expect("a directory");
    let environment = directory.path().join("an environment");
    for (doctor, code) in [(0, 0), (1, 5)] {
        let index = index(directory.path(), doctor);
        let mut command = script(&["sh"]);
        command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", &index]);
        command
            .env("PIP_NO_CACHE_DIR", "1")
            .env("PIP_FORCE_REINSTALL", "1")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
        let output = command.output().expect("a shell");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert!(text(&output.stdout).ends_with("looked at doctor\n"), "{output:?}");
    }
    // Where an image is made there is no driver, and the doctor would find that wrong.
    let tools = directory.path().join("tools");
    fs::create_dir(&tools).expect("a directory");
    fs::write(tools.join("nvidia-smi"), "#!/bin/sh\nexit 9\n").expect("a file");
    fs::set_permissions(tools.join("nvidia-smi"), fs::Permissions::from_mode(0o755)).expect("a file");
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a path"));
    let mut command = script(&["sh"]);
    command.arg("--venv").arg(&environment).args(["--device", "cuda12", "--local-libraries"]);
    command.args(["--index", &index(directory.path(), 1)]).env("PATH", path);
    let output = command.env("OARLOCK_INSTALL_ROOT", directory.path()).output().expect("a shell");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).ends_with("checked\n"), "{output:?}");
    assert!(text(&output.stderr).contains("no driver is here, so the device cannot be tried"), "{output:?}");
    let mut command = script(&["sh"]);
    command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", "file:///nowhere"]);
    let output = command.env("PIP_FORCE_REINSTALL", "1").env("PIP_RETRIES", "0").output().expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("Oarlock is not installed"), "{output:?}");
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn another_flavour_makes_room_for_what_was_chosen() {
    let directory = tempfile::tempdir().expect("a directory");
    let environment = directory.path().join("environment");
    let index = index(directory.path(), 0);
    let install = || {
        let mut command = script(&["sh"]);
        command.arg("--venv").arg(&environment).args(["--device", "cpu", "--index", &index]);
        let output = command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1").output().expect("a shell");
        assert!(output.status.success(), "{output:?}");
        text(&output.stderr)
    };
    assert!(!install().contains("makes room"));
    // What installers would take for what `oarlock==0.1.0` asks for.
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
    assert!(install().contains("`0.1.0+noavx` is installed, and makes room for another flavour"));
    assert!(plain.is_dir() && !other.exists());
    assert!(!install().contains("makes room"));
}
