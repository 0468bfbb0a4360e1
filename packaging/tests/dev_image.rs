//! The Dockerfile of the development image, and its entry script, with fake programs in place of the tools that record their
//! calls. Settings are checked first, and all work runs as the owner of the sources.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use oarlock_image::{ImageSources, dev_dockerfile};
use oarlock_matrix::CpuArchitecture;

use tempfile::TempDir;

const ENTRY_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docker/dev.sh");

/// Records a call.
const NOTE_CALL_LINES: &str = "echo \"${0##*/} $*\" >> \"$NOTED\"\n";

/// A mounted source tree, and programs that record their calls.
struct FakeContainer {
    directory: TempDir,
}

impl FakeContainer {
    fn new() -> Self {
        let it = Self { directory: tempfile::tempdir().expect("a directory") };
        fs::create_dir_all(it.path("tree/packaging")).expect("a directory");
        fs::write(it.path("tree/packaging/images.toml"), "").expect("a file");
        it.add_program("id", "case $* in -u | -g) echo 1000 ;; *) echo 0 44 ;; esac\n");
        it.add_program("stat", "echo 1000\n");
        it.add_program("cargo", NOTE_CALL_LINES);
        it.add_program("dpkg-deb", NOTE_CALL_LINES);
        it
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces a program of the image.
    fn add_program(&self, name: &str, lines: &str) {
        let file = self.path("bin").join(name);
        fs::create_dir_all(self.path("bin")).expect("a directory");
        fs::write(&file, format!("#!/bin/sh\n{lines}")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    /// Runs the entry script, as root or as the owner of the sources.
    fn run_entry(&self, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").expect("a path"));
        let mut sh = Command::new("sh");
        sh.arg(ENTRY_SCRIPT).args(arguments).env_clear().env("PATH", path).env("HOME", self.directory.path());
        sh.env("NOTED", self.path("noted")).env("SOURCES", self.path("tree"));
        sh.envs(settings.iter().copied()).output().expect("a shell")
    }

    /// The recorded calls.
    fn noted_calls(&self) -> String {
        fs::read_to_string(self.path("noted")).unwrap_or_default()
    }

    fn refusal_of(&self, arguments: &[&str], settings: &[(&str, &str)]) -> String {
        let output = self.run_entry(arguments, settings);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{settings:?}");
        assert_eq!(self.noted_calls(), "", "{error}");
        error
    }
}

fn output_text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_plan_prints_each_setting_with_its_image_and_packages() {
    let container = FakeContainer::new();
    for (gpu, avx, image, packages) in [
        ("OFF", "ON", "plain", "oarlock-plugin-cpu python3-oarlock"),
        ("OFF", "OFF", "noavx", "oarlock-plugin-cpu-noavx python3-oarlock"),
        ("ON", "ON", "gpu-cuda12", "oarlock-plugin-cpu python3-oarlock oarlock-plugin-cuda12"),
        ("ON", "OFF", "gpu-cuda12-noavx", "oarlock-plugin-cpu-noavx python3-oarlock oarlock-plugin-cuda12"),
        ("cuda13", "ON", "gpu-cuda13", "oarlock-plugin-cpu python3-oarlock oarlock-plugin-cuda13"),
        ("opencl", "ON", "opencl", "oarlock-plugin-cpu python3-oarlock oarlock-plugin-opencl"),
    ] {
        let text = output_text(&container.run_entry(&["plan"], &[("GPU", gpu), ("AVX", avx)]));
        assert!(text.contains(&format!("\nimage     {image}\n")), "{text}");
        assert!(text.contains(&format!(" {packages}\n")), "{text}");
        assert!(text.contains("\nTEST=OFF\nuser      1000:1000"), "{text}");
    }
    assert_eq!(container.noted_calls(), "");
}

#[test]
fn our_own_images_build_what_goes_beside_them() {
    let ImageSources { images, .. } =
        ImageSources::of_oarlock(CpuArchitecture::X86_64).expect("our own images");
    let siblings = images.images.iter().filter_map(|image| Some((image.label().strip_suffix("dev")?, image)));
    let mut count = 0;
    for (sibling, image) in siblings {
        let settings: Vec<(&str, &str)> =
            image.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let text = output_text(&FakeContainer::new().run_entry(&["plan"], &settings));
        let sibling = if sibling.is_empty() { "plain" } else { sibling.trim_end_matches('-') };
        assert!(text.contains(&format!("\nimage     {sibling}\n")), "{}: {text}", image.label());
        assert!(images.select_images(&[sibling.to_owned()]).is_ok());
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn the_dockerfile_in_the_root_has_the_tools_of_the_image_that_is_laid_out() {
    let ImageSources { images, .. } =
        ImageSources::of_oarlock(CpuArchitecture::X86_64).expect("our own images");
    let expected = dev_dockerfile::render_dev_dockerfile(&images, "dev").expect("an image with the tools");
    let dev = images.select_images(&["dev".to_owned()]).expect("an image")[0];
    for package in dev.layers.iter().flat_map(|layer| &images.find_layer(layer).expect("a layer").debian) {
        assert!(expected.contains(&format!(" {package} ")), "{package}");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../Dockerfile");
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        fs::write(file, &expected).expect("the file can be written");
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(
        found == expected,
        "`Dockerfile` is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-pack`"
    );
}

#[test]
fn what_dockerfiles_copy_is_sent_to_the_engine() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let ignored = fs::read_to_string(format!("{root}/.dockerignore")).expect("a file");
    let sent: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert!(ignored.lines().any(|line| line == "*"), "{ignored}");
    let dockerfile = fs::read_to_string(format!("{root}/Dockerfile")).expect("a file");
    let copied = dockerfile.lines().filter_map(|line| line.strip_prefix("COPY ")?.split(' ').next());
    // `docker/dev.sh` writes the other one, with layers below `build/images`.
    let needed: Vec<&str> = copied.chain(["build/images"]).collect();
    assert_eq!(needed, ["docker/dev.sh", "build/images"]);
    assert_eq!(sent, needed);
}

#[test]
fn a_wrong_setting_is_refused_before_anything_is_done() {
    let container = FakeContainer::new();
    for (name, value, expected) in [
        ("GPU", "yes", "expected GPU=OFF, ON, cuda12, cuda13 or opencl, found `GPU=yes`"),
        ("AVX", "on", "expected AVX=ON or OFF, found `AVX=on`"),
        ("TEST", "1", "expected TEST=ON or OFF, found `TEST=1`"),
    ] {
        let error = container.refusal_of(&[], &[(name, value)]);
        assert!(error.contains(expected), "{error}");
    }
    let none = container.refusal_of(&[], &[("GPU", "opencl"), ("AVX", "OFF")]);
    assert!(none.contains("expected AVX=ON beside GPU=opencl"), "{none}");
}

#[test]
fn what_cannot_be_built_or_served_is_said() {
    let container = FakeContainer::new();
    let sshd = container.refusal_of(&["sshd"], &[]);
    assert!(sshd.contains("expected to begin as root, which sshd needs, found user 1000"), "{sshd}");
    fs::remove_file(container.path("tree/packaging/images.toml")).expect("a file");
    let sources = container.refusal_of(&[], &[]);
    assert!(sources.contains("expected the sources of Oarlock at "), "{sources}");
    container.add_program("id", "echo 0\n");
    let key = container.refusal_of(&["sshd"], &[]);
    assert!(key.contains("expected a public key in SSH_KEY, found none"), "{key}");
}

#[test]
fn without_crates_it_is_said_where_they_may_come_from() {
    let container = FakeContainer::new();
    container.add_program("cargo", "exit 101\n");
    let error = container.refusal_of(&[], &[]);
    assert!(error.contains("expected the crates that Cargo.lock names in "), "{error}");
    assert!(error.contains("-v ~/.cargo:/cargo -e CARGO_HOME=/cargo"), "{error}");
}

#[test]
fn root_becomes_whom_the_sources_belong_to() {
    let container = FakeContainer::new();
    container.add_program("id", "case $* in -u) echo 0 ;; *) echo 0 44 ;; esac\n");
    // Must not change users or home directories of this machine.
    container.add_program(
        "sed",
        "case $* in -i*) echo \"sed $*\" >> \"$NOTED\" ;; *) exec /bin/sed \"$@\" ;; esac\n",
    );
    container.add_program("chown", NOTE_CALL_LINES);
    container.add_program("chroot", NOTE_CALL_LINES);
    output_text(&container.run_entry(&["make", "it"], &[]));
    let noted = container.noted_calls();
    let users = "sed -i s|^oarlock:.*|oarlock:*:1000:1000:Oarlock:/home/oarlock:/bin/bash| /etc/passwd\n";
    assert!(noted.contains(users), "{noted}");
    assert!(noted.contains("chown -R 1000:1000 /home/oarlock\n"), "{noted}");
    let again = format!(
        "chroot --userspec=1000:1000 --groups=44 --skip-chdir / env HOME=/home/oarlock USER=oarlock {ENTRY_SCRIPT} make it\n"
    );
    assert!(noted.ends_with(&again), "{noted}");
}

#[test]
fn what_is_built_is_packed_and_its_image_is_made_from_the_root_of_the_sources() {
    let container = FakeContainer::new();
    // Stands for the output of a build: one package, and a directory with a Dockerfile.
    let pack = "echo \"pack $*\" >> \"$NOTED\"\n\
                case $1 in\n\
                deb) mkdir -p build/debs; : >build/debs/a.deb; : >build/debs/a-dbgsym_1.deb ;;\n\
                image) mkdir -p build/images/x-1; printf '#     docker build --tag x:1 .\\nFROM scratch\\nADD base.tar.gz /\\n' >build/images/x-1/Dockerfile ;;\n\
                esac\n";
    container.add_program("pack", pack);
    let cargo = "echo \"cargo $*\" >> \"$NOTED\"\n\
                 if [ \"$1\" = build ]; then mkdir -p \"$CARGO_TARGET_DIR/release\"; cp \"${0%/*}/pack\" \"$CARGO_TARGET_DIR/release/oarlock-pack\"; fi\n";
    container.add_program("cargo", cargo);
    let stale = container.path("tree/build/debs/stale.deb");
    fs::create_dir_all(stale.parent().expect("a directory")).expect("a directory");
    fs::write(&stale, "").expect("a file");
    output_text(&container.run_entry(&[], &[("AVX", "OFF"), ("MIRROR", "http://mirror.example.org/debian")]));
    let build = container.path("tree/build");
    let noted = container.noted_calls().replace(build.to_str().expect("UTF-8"), "build");
    assert_eq!(
        noted,
        "cargo fetch --quiet --locked\n\
         cargo build --quiet --release --locked --package oarlock-pack\n\
         pack deb liboarlock1 liboarlock-dev oarlock oarlock-plugin-cpu-noavx python3-oarlock --out build/debs\n\
         dpkg-deb --extract build/debs/a.deb build/install\n\
         pack image noavx --debs build/debs --out build/images --dockerfile --mirror http://mirror.example.org/debian\n"
    );
    assert!(!stale.exists());
    let text = fs::read_to_string(build.join("Dockerfile")).expect("a file");
    assert_eq!(
        text,
        "#     docker build --tag x:1 --file build/Dockerfile .\nFROM scratch\nADD build/images/x-1/base.tar.gz /\n"
    );
}

#[test]
fn any_other_command_runs_and_help_prints_the_script_header() {
    let container = FakeContainer::new();
    assert_eq!(output_text(&container.run_entry(&["echo", "a", "b c"], &[])), "a b c\n");
    let help = output_text(&container.run_entry(&["--help"], &[]));
    assert!(help.starts_with("Builds the sources that are mounted at /oarlock"), "{help}");
    for setting in ["GPU=OFF", "AVX=ON", "TEST=OFF", "SSH_KEY=", "MIRROR=", "CARGO_HOME="] {
        assert!(help.contains(setting), "{setting}");
    }
}
