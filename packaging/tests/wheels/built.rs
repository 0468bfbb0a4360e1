//! What compiling gives, in a few bytes.

use std::process::Command;

use oarlock_pack::assemble::{self, Built, Core, Plugin};
use oarlock_pack::matrix::{Matrix, OWN, Wheel as Row};
use oarlock_pack::wheel::Wheel;
use sha2::{Digest as _, Sha256};

/// A function without any instruction of AVX.
pub(crate) const PLAIN: &str = "int sum(int one, int other) { return one + other; }";

/// What is told of a part, which opens these libraries.
pub(crate) fn built(part: &str, package: &str, opens: &[&str]) -> Built {
    let opened: Vec<_> = opens.iter().map(|soname| serde_json::json!({ "name": soname })).collect();
    let about = serde_json::json!({ "name": package, "version": env!("CARGO_PKG_VERSION") });
    let bill = serde_json::json!({ "bomFormat": "CycloneDX", "metadata": { "component": about }, "components": opened });
    Built {
        part: part.to_owned(),
        package: package.to_owned(),
        opens: opens.iter().map(ToString::to_string).collect(),
        bill: bill.to_string(),
        licences: "of others".to_owned(),
        licence: "ours".to_owned(),
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

fn matrix() -> Matrix {
    Matrix::read("matrix.toml", OWN).expect("our own matrix")
}

/// A library that names what a part of our matrix opens.
pub(crate) fn library(part: &str) -> Vec<u8> {
    compiled(&format!("{PLAIN}const char *names = \"{} \";", matrix().parts[part].opens.join(" ")))
}

/// A plugin of a part that hosts of this release take.
pub(crate) fn loadable(part: &str) -> Plugin {
    with_library(part, library(part))
}

/// The same with another library.
pub(crate) fn with_library(part: &str, library: Vec<u8>) -> Plugin {
    let hash: String = Sha256::digest(&library).iter().map(|byte| format!("{byte:02x}")).collect();
    let package = matrix().parts[part].package.clone();
    let name = package.strip_prefix("oarlock-plugin-").expect("a plugin");
    let kind = match name {
        "openblas" | "mkl" => "kind = \"kernels\"".to_owned(),
        _ => format!("kind = \"device\"\ndevice_type = \"{name}\""),
    };
    let version = env!("CARGO_PKG_VERSION");
    let manifest = format!(
        "name = \"oarlock-{name}\"\nversion = \"{version}\"\n{kind}\ncontract = \"1.0..1.1\"\n\
         architecture = \"x86_64-linux\"\nsha256 = \"{hash}\"\n"
    );
    let opens = matrix().parts[part].opens.clone();
    let built = built(part, &package, &opens.iter().map(String::as_str).collect::<Vec<_>>());
    Plugin { built, library, manifest: Some(manifest) }
}

/// A wheel of the core as maturin makes it, with a library at a path and the CPU device, put together for a row.
pub(crate) fn core_of(row: &Row, path: &str, library: Vec<u8>, plugins: &[Plugin]) -> Wheel {
    let mut wheel = Wheel::new("oarlock-0");
    wheel.add("oarlock/__init__.py", b"# Python\n".to_vec());
    let about = "Metadata-Version: 2.4\nName: oarlock\nVersion: 0\nRequires-Python: >=3.11\n\n";
    wheel.say("METADATA", about.as_bytes().to_vec());
    wheel.add_executable(path, library);
    assemble::whole(&matrix(), row, &core(wheel), plugins).expect("a wheel")
}
