//! Wheels that come from anywhere are held to the matrix.

use std::path::{Path, PathBuf};

use oarlock_pack::assemble::{self, Plugin};
use oarlock_pack::check;
use oarlock_pack::index::Index;
use oarlock_pack::matrix::{Matrix, OWN, Wheel as Row};
use oarlock_pack::packed::Effort;
use oarlock_pack::wheel::Wheel;
use tempfile::TempDir;

use crate::built::{PLAIN, compiled, core_of, library, loadable, with_library};

const NAMES: &str = "const char *names = \"libopenblas.so.0 libopenblasp.so.0 libopenblas.so \";";
const AVX: &str = "double product(double one, double other) { double x; __asm__(\"vmulsd %1, %2, %0\" : \"=x\"(x) : \"x\"(one), \"x\"(other)); return x; }";

pub(crate) fn matrix() -> Matrix {
    Matrix::read("matrix.toml", OWN).expect("our own matrix")
}

pub(crate) fn row(label: &str) -> Row {
    matrix().wheels.into_iter().find(|row| row.label == label).unwrap_or_else(|| panic!("no row `{label}`"))
}

pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes a wheel under a name.
pub(crate) fn written(directory: &TempDir, name: &str, wheel: &Wheel) -> PathBuf {
    let file = directory.path().join(name);
    std::fs::write(&file, wheel.to_bytes(&Effort::Usual.into()).expect("a wheel")).expect("a file");
    file
}

/// The wheel of a plugin, of the row that it is alone in.
pub(crate) fn wheel(directory: &TempDir, plugin: &Plugin) -> PathBuf {
    let is_it = |row: &Row| row.parts == [plugin.built.part.as_str()];
    let row = matrix().wheels.into_iter().find(is_it).expect("a row");
    written(directory, &row.name.to_string(), &assemble::plugin(&row, plugin).expect("a wheel"))
}

/// A plugin for OpenBLAS with another library.
fn openblas(code: &str) -> Plugin {
    with_library("openblas", compiled(&format!("{PLAIN}{code}")))
}

/// A wheel of the core with a library and the CPU device, and what it says in itself of where it runs.
fn core(label: &str, path: &str, library: Vec<u8>, tag: &str) -> Wheel {
    let mut wheel = core_of(&row(label), path, library, &[loadable("cpu")]);
    wheel.say("WHEEL", format!("Wheel-Version: 1.0\nTag: {tag}\n").into_bytes());
    wheel
}

/// Why a wheel is refused: by `check` and, with the same words, by `index`.
pub(crate) fn refusal(file: &Path) -> String {
    let error = check::wheels(&matrix(), &[file]).expect_err("a wheel that is not as it should be");
    assert_eq!(not_indexed(file), error.to_string());
    error.to_string()
}

/// Why there is no index of the directory of a wheel.
fn not_indexed(file: &Path) -> String {
    let directory = file.parent().expect("a directory");
    Index::of_directory(directory, &matrix(), &Default::default(), |_, _| ())
        .expect_err("a wheel")
        .to_string()
}

#[test]
fn wheels_that_are_what_the_matrix_says_pass() {
    let directory = directory();
    let mut files = vec![wheel(&directory, &loadable("openblas")), wheel(&directory, &loadable("opencl"))];
    for (label, file) in [
        ("core", "_oarlock.abi3.so"),
        ("core, without AVX", "_oarlock.abi3.so"),
        ("core, free-threaded", "_oarlock.cpython-314t-x86_64-linux-gnu.so"),
    ] {
        let name = row(label).name;
        let tag = format!("{}-{}", name.python, name.platform);
        let wheel = core(label, &format!("oarlock/{file}"), library("core"), &tag);
        files.push(written(&directory, &name.to_string(), &wheel));
    }
    check::wheels(&matrix(), &files).expect("wheels");
    let index = Index::of_directory(directory.path(), &matrix(), &Default::default(), |_, _| ());
    assert_eq!(index.expect("an index").count(), files.len());
}

#[test]
fn a_library_for_other_processors_is_refused() {
    let error = refusal(&wheel(&directory(), &openblas(&format!("{AVX}{NAMES}"))));
    assert!(error.contains("oarlock_openblas/liboarlock_plugin_openblas.so"), "{error}");
    assert!(error.contains("it has 1 VEX instructions, the first at 0x"), "{error}");
    assert!(error.ends_with(" in `product`"), "{error}");
    // What the core has where its row promises nothing.
    for (label, is_refused) in [("core", false), ("core, without AVX", true)] {
        let directory = directory();
        let library = compiled(&format!("{PLAIN}{AVX}"));
        let wheel = core(label, "oarlock/_oarlock.abi3.so", library, "cp311-abi3-manylinux_2_28_x86_64");
        let file = written(&directory, &row(label).name.to_string(), &wheel);
        assert_eq!(check::wheels(&matrix(), &[file]).is_err(), is_refused, "{label}");
    }
}

#[test]
fn a_library_for_another_machine_is_refused() {
    let mut plugin = loadable("openblas");
    // The machine in the header of an ELF file: AArch64.
    plugin.library[18..20].copy_from_slice(&183_u16.to_le_bytes());
    let plugin = with_library("openblas", plugin.library);
    let error = refusal(&wheel(&directory(), &plugin));
    assert!(
        error.ends_with(
            "expected a library for `manylinux_2_28_x86_64`, found one for the architecture Aarch64"
        ),
        "{error}"
    );
}

#[test]
fn a_library_that_opens_others_than_it_says_is_refused() {
    let error = refusal(&wheel(&directory(), &openblas("const char *other = \"libother.so.3\";")));
    assert!(error.contains("it names `libother.so.3`, which [parts]"), "{error}");
    assert!(error.contains("it does not name `libopenblas.so.0`"), "{error}");
    let newer = NAMES.replace("libopenblas.so ", "libopenblas.so libopenblas.so.3 ");
    let error = refusal(&wheel(&directory(), &openblas(&newer)));
    assert!(error.contains("it names `libopenblas.so.3`, which [parts]"), "{error}");
}

#[test]
fn a_wheel_without_what_its_row_has_or_of_no_row_is_refused() {
    let directory = directory();
    let file = wheel(&directory, &loadable("openblas"));
    let of_mkl = file.with_file_name("oarlock_mkl-0.1.0-py3-none-manylinux_2_28_x86_64.whl");
    let of_openblas = loadable("openblas");
    let mut renamed = Wheel::new("oarlock_mkl-0.1.0");
    let name = row("mkl").name;
    renamed.say("WHEEL", format!("Tag: {}-{}\n", name.python, name.platform).into_bytes());
    renamed.say("METADATA", b"Name: oarlock-mkl\nVersion: 0.1.0\n\n".to_vec());
    renamed.add("oarlock_mkl/__init__.py", b"# Python\n".to_vec());
    renamed.add_executable("oarlock_mkl/liboarlock_plugin_openblas.so", of_openblas.library);
    std::fs::remove_file(&file).expect("a file");
    std::fs::write(&of_mkl, renamed.to_bytes(&Effort::Usual.into()).expect("a wheel")).expect("a file");
    let error = check::wheels(&matrix(), &[&of_mkl]).expect_err("another plugin").to_string();
    assert!(
        error.contains("expected the libraries of mkl, found `oarlock_mkl/liboarlock_plugin_openblas.so"),
        "{error}"
    );
    let unknown = file.with_file_name("oarlock_abacus-0.1.0-py3-none-any.whl");
    std::fs::rename(&of_mkl, &unknown).expect("a name");
    let error = check::wheels(&matrix(), &[unknown]).expect_err("a wheel of no row").to_string();
    assert!(error.contains("expected a wheel of the matrix"), "{error}");
    let name = row("openblas").name;
    let tag = format!("Tag: {}-{}\n", name.python, name.platform);
    let mut empty = Wheel::new("oarlock_openblas-0.1.0");
    empty.say("WHEEL", tag.into_bytes());
    empty.add("oarlock_openblas/__init__.py", b"# Python\n".to_vec());
    empty.say("METADATA", b"Name: oarlock-openblas\nVersion: 0.1.0\n\n".to_vec());
    std::fs::remove_file(directory.path().join("oarlock_abacus-0.1.0-py3-none-any.whl")).expect("a file");
    let error = refusal(&written(&directory, &name.to_string(), &empty));
    assert!(error.ends_with("expected a library of `openblas`, found none"), "{error}");
}

#[test]
fn a_plugin_that_the_host_of_this_release_does_not_take_is_refused() {
    let with = |old: &str, new: &str| {
        let plugin = loadable("openblas");
        let manifest = plugin.manifest.as_ref().map(|text| text.replace(old, new));
        refusal(&wheel(&directory(), &Plugin { manifest, ..plugin }))
    };
    for (contract, told) in [("9.0..9.1", "9.0 to 9.1"), ("1.2..1.4", "1.2 to 1.4"), ("0.9", "0.9")] {
        let error = with("1.0..1.1", contract);
        let wanted = format!(
            "expected a plugin that speaks contract 1.0 to 1.1, found one that speaks {told}, by its manifest"
        );
        assert!(error.contains(&wanted), "{error}");
    }
    for wrong in ["", "1", "1.1..1.0", "1.0..2.1", "1.0..", "1.0..1.1..1.2"] {
        let error = with("1.0..1.1", wrong);
        assert!(error.contains(&format!("for `contract` in the manifest, found `{wrong}`")), "{error}");
    }
    let error = with("sha256 = \"", "sha256 = \"0");
    assert!(error.contains("expected a library with the hash 0"), "{error}");
    let error = refusal(&wheel(&directory(), &Plugin { manifest: None, ..loadable("openblas") }));
    assert!(
        error.contains("expected its manifest `oarlock_openblas/liboarlock_plugin_openblas.oarlock.toml`"),
        "{error}"
    );
}

#[test]
fn a_wheel_that_says_another_platform_or_python_than_its_name_is_refused() {
    let directory = directory();
    let abi3 = "oarlock/_oarlock.abi3.so";
    let name = row("core").name.to_string();
    let wheel = core("core", abi3, library("core"), "cp311-abi3-manylinux_2_28_aarch64");
    let file = written(&directory, &name, &wheel);
    assert!(refusal(&file).ends_with(
        "expected the tags of its name in its WHEEL, cp311-abi3-manylinux_2_28_x86_64; found cp311-abi3-manylinux_2_28_aarch64"
    ));
    std::fs::remove_file(file).expect("a file");
    let label = "core, free-threaded";
    let wheel = core(label, abi3, library("core"), "cp314-cp314t-manylinux_2_28_x86_64");
    let error = refusal(&written(&directory, &row(label).name.to_string(), &wheel));
    assert!(error.contains("expected `oarlock/_oarlock.cpython-314t-"), "{error}");
}

#[test]
fn of_another_release_it_is_not_known_what_it_opens_and_speaks() {
    let directory = directory();
    let mut row = row("openblas");
    row.name.version =
        "0.0.9".parse().map(oarlock_pack::matrix::wheel_name::WheelVersion::Valid).expect("a version");
    let older = |code: &str| {
        let plugin = openblas(code);
        let manifest = plugin.manifest.as_ref().map(|text| text.replace("1.0..1.1", "0.3"));
        let wheel = assemble::plugin(&row, &Plugin { manifest, ..plugin }).expect("a wheel");
        written(&directory, &row.name.to_string(), &wheel)
    };
    older("const char *other = \"libother.so.3\";");
    Index::of_directory(directory.path(), &matrix(), &Default::default(), |_, _| ()).expect("an index");
    let error = not_indexed(&older(AVX));
    assert!(error.contains("it has 1 VEX instructions"), "{error}");
}

#[test]
fn a_wheel_that_says_another_version_than_its_name_is_refused() {
    let directory = directory();
    let file = wheel(&directory, &loadable("openblas"));
    let row = matrix().wheels.into_iter().find(|row| row.label == "openblas").expect("a row");
    let mut wheel = assemble::plugin(&row, &loadable("openblas")).expect("a wheel");
    wheel.say("METADATA", b"Name: oarlock-openblas\nVersion: 0.2.0\n\n".to_vec());
    std::fs::write(&file, wheel.to_bytes(&Effort::Usual.into()).expect("a wheel")).expect("a file");
    let error = refusal(&file);
    assert!(
        error.ends_with("oarlock-openblas==0.1.0; found oarlock-openblas==0.2.0 in its METADATA"),
        "{error}"
    );
}
