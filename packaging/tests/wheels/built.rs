//! What compiling gives, in a few bytes.

use std::process::Command;

use oarlock_pack::assemble::{Built, Core, Plugin};
use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::wheel::Wheel;
use sha2::{Digest as _, Sha256};

/// A function without any instruction of AVX.
pub(crate) const PLAIN: &str = "int sum(int one, int other) { return one + other; }";

fn built(part: &str, package: &str, opens: &[&str]) -> Built {
    Built {
        part: part.to_owned(),
        package: package.to_owned(),
        opens: opens.iter().map(ToString::to_string).collect(),
        bill: "{}\n".to_owned(),
        licences: "of others".to_owned(),
        licence: "ours".to_owned(),
    }
}

/// A part of the matrix that is a plugin; that of CUDA is the same for any version.
pub(crate) fn plugin(part: &str) -> Plugin {
    let name = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Plugin {
        built: built(part, &format!("oarlock-plugin-{name}"), &["libfar.so.1"]),
        library: vec![0x7f, b'E', b'L', b'F'],
        manifest: Some("name = \"x\"\npackage = \"y\"\n".to_owned()),
    }
}

/// The core, of a wheel that has its files.
pub(crate) fn core(wheel: Wheel) -> Core {
    Core { built: built("core", "oarlock-python", &[]), wheel }
}

/// A shared object of a source in C.
pub(crate) fn compiled(source: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let [code, library] = ["code.c", "library.so"].map(|name| directory.path().join(name));
    std::fs::write(&code, source).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(&library).arg(&code);
    compiler.args(["-Wl,--no-as-needed", "-lgcc_s"]);
    assert!(compiler.status().expect("a compiler").success(), "{source}");
    std::fs::read(library).expect("a library")
}

/// A library that names what a part of our matrix opens.
pub(crate) fn library(part: &str) -> Vec<u8> {
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    compiled(&format!("{PLAIN}const char *names = \"{} \";", matrix.parts[part].opens.join(" ")))
}

/// A plugin of a part that hosts of this release take.
pub(crate) fn loadable(part: &str) -> Plugin {
    let library = library(part);
    let hash: String = Sha256::digest(&library).iter().map(|byte| format!("{byte:02x}")).collect();
    let manifest = format!("name = \"{part}\"\ncontract = \"1.0..1.1\"\nsha256 = \"{hash}\"\n");
    Plugin { library, manifest: Some(manifest), ..plugin(part) }
}

/// Puts the CPU device where every core has it.
pub(crate) fn bring_cpu(wheel: &mut Wheel) {
    let cpu = loadable("cpu");
    let bundled = |ending: &str| format!("oarlock/plugins/liboarlock_plugin_cpu.{ending}");
    wheel.add(&bundled("oarlock.toml"), cpu.manifest.expect("a manifest").into_bytes());
    wheel.add_executable(&bundled("so"), cpu.library);
}
