//! Fake compiled parts of a few bytes.

use std::process::Command;

use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixRow, OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::build_artifact::{BuiltCore, BuiltPlugin, CompiledPart};

use sha2::{Digest as _, Sha256};

/// A function without any AVX instruction.
pub(crate) const SOURCE_WITHOUT_AVX: &str = "int sum(int one, int other) { return one + other; }";

/// A part that opens these libraries.
pub(crate) fn compiled_part(part: &str, package: &str, opens: &[&str]) -> CompiledPart {
    let opened: Vec<_> = opens.iter().map(|soname| serde_json::json!({ "name": soname })).collect();
    let about = serde_json::json!({ "name": package, "version": env!("CARGO_PKG_VERSION") });
    let sbom = serde_json::json!({ "bomFormat": "CycloneDX", "metadata": { "component": about }, "components": opened });
    CompiledPart {
        part: part.to_owned(),
        package: package.to_owned(),
        opens: opens.iter().map(ToString::to_string).collect(),
        sbom: sbom.to_string(),
        licenses: "of others".to_owned(),
        license: "ours".to_owned(),
    }
}

/// The core from a wheel with its files.
pub(crate) fn core_of_wheel(wheel: Wheel) -> BuiltCore {
    BuiltCore { built: compiled_part("core", "oarlock-python", &[]), wheel }
}

/// Compiles C source to a shared object.
pub(crate) fn compile_library(source: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let [code, library] = ["code.c", "library.so"].map(|name| directory.path().join(name));
    std::fs::write(&code, source).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(&library).arg(&code);
    compiler.args(["-Wl,--no-as-needed", "-lgcc_s"]);
    assert!(compiler.status().expect("a compiler").success(), "{source}");
    std::fs::read(library).expect("a library")
}

fn own_matrix() -> WheelMatrix {
    WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix")
}

/// A library that names the libraries that a part of our matrix opens.
pub(crate) fn library_of_part(part: &str) -> Vec<u8> {
    compile_library(&format!(
        "{SOURCE_WITHOUT_AVX}const char *names = \"{} \";",
        own_matrix().parts[part].opens.join(" ")
    ))
}

/// A plugin that hosts of this release accept.
pub(crate) fn loadable_plugin(part: &str) -> BuiltPlugin {
    plugin_with_library(part, library_of_part(part))
}

/// The same plugin with another library.
pub(crate) fn plugin_with_library(part: &str, library: Vec<u8>) -> BuiltPlugin {
    let hash: String = Sha256::digest(&library).iter().map(|byte| format!("{byte:02x}")).collect();
    let package = own_matrix().parts[part].package.clone();
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
    let opens = own_matrix().parts[part].opens.clone();
    let built = compiled_part(part, &package, &opens.iter().map(String::as_str).collect::<Vec<_>>());
    BuiltPlugin { built, library, manifest: Some(manifest) }
}

/// The library of a part with a header that names 64-bit ARM.
pub(crate) fn library_for_arm(part: &str) -> Vec<u8> {
    let mut library = library_of_part(part);
    library[18] = 183;
    library
}

/// A plugin with such a library.
pub(crate) fn plugin_for_arm(part: &str) -> BuiltPlugin {
    let plugin = plugin_with_library(part, library_for_arm(part));
    let manifest = plugin.manifest.as_ref().map(|text| text.replace("x86_64-linux", "aarch64-linux"));
    BuiltPlugin { manifest, ..plugin }
}

/// Assembles a core wheel for a row as maturin builds it, with a library at a path and the CPU plugin.
pub(crate) fn core_wheel_of_row(
    row: &MatrixRow,
    path: &str,
    library: Vec<u8>,
    plugins: &[BuiltPlugin],
) -> Wheel {
    let mut wheel = Wheel::new("oarlock-0");
    wheel.add_file("oarlock/__init__.py", b"# Python\n".to_vec());
    let about = "Metadata-Version: 2.4\nName: oarlock\nVersion: 0\nRequires-Python: >=3.11\n\n";
    wheel.add_metadata("METADATA", about.as_bytes().to_vec());
    wheel.add_executable(path, library);
    assemble::assemble_core_wheel(&own_matrix(), row, &core_of_wheel(wheel), plugins).expect("a wheel")
}
