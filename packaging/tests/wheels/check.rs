//! Wheels of any origin are checked against the matrix.

use std::path::{Path, PathBuf};

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixRow, OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::build_artifact::BuiltPlugin;
use oarlock_pack::check;
use oarlock_pack::index::WheelIndex;

use crate::built::{
    SOURCE_WITHOUT_AVX, compile_library, core_wheel_of_row, library_of_part, loadable_plugin,
    plugin_with_library,
};
use tempfile::TempDir;

const LIBRARY_NAMES_SOURCE: &str =
    "const char *names = \"libopenblas.so.0 libopenblasp.so.0 libopenblas.so \";";
const AVX_SOURCE: &str = "double product(double one, double other) { double x; __asm__(\"vmulsd %1, %2, %0\" : \"=x\"(x) : \"x\"(one), \"x\"(other)); return x; }";

pub(crate) fn own_matrix() -> WheelMatrix {
    WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix")
}

pub(crate) fn row_of_label(label: &str) -> MatrixRow {
    own_matrix()
        .wheels
        .into_iter()
        .find(|row| row.label == label)
        .unwrap_or_else(|| panic!("no row `{label}`"))
}

pub(crate) fn temporary_directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes a wheel under a name.
pub(crate) fn write_wheel(directory: &TempDir, name: &str, wheel: &Wheel) -> PathBuf {
    let file = directory.path().join(name);
    std::fs::write(&file, wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"))
        .expect("a file");
    file
}

/// Writes the wheel of a plugin, for the row that only has this plugin.
pub(crate) fn write_plugin_wheel(directory: &TempDir, plugin: &BuiltPlugin) -> PathBuf {
    let is_it = |row: &MatrixRow| row.parts == [plugin.built.part.as_str()];
    let row = own_matrix().wheels.into_iter().find(is_it).expect("a row");
    write_wheel(
        directory,
        &row.name.to_string(),
        &assemble::assemble_plugin_wheel(&row, plugin).expect("a wheel"),
    )
}

/// A plugin for OpenBLAS with a library of this code.
fn openblas_plugin(code: &str) -> BuiltPlugin {
    plugin_with_library("openblas", compile_library(&format!("{SOURCE_WITHOUT_AVX}{code}")))
}

/// A core wheel with a library and the CPU plugin, and this tag in its WHEEL file.
fn core_with_library(label: &str, path: &str, library: Vec<u8>, tag: &str) -> Wheel {
    let mut wheel = core_wheel_of_row(&row_of_label(label), path, library, &[loadable_plugin("cpu")]);
    wheel.add_metadata("WHEEL", format!("Wheel-Version: 1.0\nTag: {tag}\n").into_bytes());
    wheel
}

/// The error for a wheel from `check`; `index` must give the same one.
pub(crate) fn refusal_of(file: &Path) -> String {
    let error = check::check_wheels(&own_matrix(), &[file]).expect_err("a wheel that is not as it should be");
    assert_eq!(index_refusal(file), error.to_string());
    error.to_string()
}

/// The error of indexing the directory of a wheel.
fn index_refusal(file: &Path) -> String {
    let directory = file.parent().expect("a directory");
    WheelIndex::of_directory(directory, &own_matrix(), &Default::default(), |_, _| ())
        .expect_err("a wheel")
        .to_string()
}

#[test]
fn wheels_that_are_what_the_matrix_says_pass() {
    let directory = temporary_directory();
    let mut files = vec![
        write_plugin_wheel(&directory, &loadable_plugin("openblas")),
        write_plugin_wheel(&directory, &loadable_plugin("opencl")),
    ];
    for (label, file) in [
        ("core", "_oarlock.abi3.so"),
        ("core, without AVX", "_oarlock.abi3.so"),
        ("core, free-threaded", "_oarlock.cpython-314t-x86_64-linux-gnu.so"),
    ] {
        let name = row_of_label(label).name;
        let tag = format!("{}-{}", name.python, name.platform);
        let wheel = core_with_library(label, &format!("oarlock/{file}"), library_of_part("core"), &tag);
        files.push(write_wheel(&directory, &name.to_string(), &wheel));
    }
    check::check_wheels(&own_matrix(), &files).expect("wheels");
    let index = WheelIndex::of_directory(directory.path(), &own_matrix(), &Default::default(), |_, _| ());
    assert_eq!(index.expect("an index").wheel_count(), files.len());
}

#[test]
fn a_library_for_other_processors_is_refused() {
    let error = refusal_of(&write_plugin_wheel(
        &temporary_directory(),
        &openblas_plugin(&format!("{AVX_SOURCE}{LIBRARY_NAMES_SOURCE}")),
    ));
    assert!(error.contains("oarlock_openblas/liboarlock_plugin_openblas.so"), "{error}");
    assert!(error.contains("it has 1 VEX instructions, the first at 0x"), "{error}");
    assert!(error.ends_with(" in `product`"), "{error}");
    // The core may contain AVX code unless its row rules it out.
    for (label, is_refused) in [("core", false), ("core, without AVX", true)] {
        let directory = temporary_directory();
        let library = compile_library(&format!("{SOURCE_WITHOUT_AVX}{AVX_SOURCE}"));
        let wheel =
            core_with_library(label, "oarlock/_oarlock.abi3.so", library, "cp311-abi3-manylinux_2_28_x86_64");
        let file = write_wheel(&directory, &row_of_label(label).name.to_string(), &wheel);
        assert_eq!(check::check_wheels(&own_matrix(), &[file]).is_err(), is_refused, "{label}");
    }
}

#[test]
fn a_library_for_another_machine_is_refused() {
    let mut plugin = loadable_plugin("openblas");
    // The machine field of the ELF header: AArch64.
    plugin.library[18..20].copy_from_slice(&183_u16.to_le_bytes());
    let plugin = plugin_with_library("openblas", plugin.library);
    let error = refusal_of(&write_plugin_wheel(&temporary_directory(), &plugin));
    assert!(
        error.ends_with(
            "expected a library for `manylinux_2_28_x86_64`, found one for the architecture Aarch64"
        ),
        "{error}"
    );
}

#[test]
fn a_library_that_opens_others_than_it_says_is_refused() {
    let error = refusal_of(&write_plugin_wheel(
        &temporary_directory(),
        &openblas_plugin("const char *other = \"libother.so.3\";"),
    ));
    assert!(error.contains("it names `libother.so.3`, which [parts]"), "{error}");
    assert!(error.contains("it does not name `libopenblas.so.0`"), "{error}");
    let newer = LIBRARY_NAMES_SOURCE.replace("libopenblas.so ", "libopenblas.so libopenblas.so.3 ");
    let error = refusal_of(&write_plugin_wheel(&temporary_directory(), &openblas_plugin(&newer)));
    assert!(error.contains("it names `libopenblas.so.3`, which [parts]"), "{error}");
}

#[test]
fn wheels_without_their_libraries_or_a_matrix_row_are_refused() {
    let directory = temporary_directory();
    let file = write_plugin_wheel(&directory, &loadable_plugin("openblas"));
    let of_mkl = file.with_file_name("oarlock_mkl-0.1.0-py3-none-manylinux_2_28_x86_64.whl");
    let of_openblas = loadable_plugin("openblas");
    let mut renamed = Wheel::new("oarlock_mkl-0.1.0");
    let name = row_of_label("mkl").name;
    renamed.add_metadata("WHEEL", format!("Tag: {}-{}\n", name.python, name.platform).into_bytes());
    renamed.add_metadata("METADATA", b"Name: oarlock-mkl\nVersion: 0.1.0\n\n".to_vec());
    renamed.add_file("oarlock_mkl/__init__.py", b"# Python\n".to_vec());
    renamed.add_executable("oarlock_mkl/liboarlock_plugin_openblas.so", of_openblas.library);
    std::fs::remove_file(&file).expect("a file");
    std::fs::write(&of_mkl, renamed.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"))
        .expect("a file");
    let error = check::check_wheels(&own_matrix(), &[&of_mkl]).expect_err("another plugin").to_string();
    assert!(
        error.contains("expected the libraries of mkl, found `oarlock_mkl/liboarlock_plugin_openblas.so"),
        "{error}"
    );
    let unknown = file.with_file_name("oarlock_abacus-0.1.0-py3-none-any.whl");
    std::fs::rename(&of_mkl, &unknown).expect("a name");
    let error = check::check_wheels(&own_matrix(), &[unknown]).expect_err("a wheel of no row").to_string();
    assert!(error.contains("expected a wheel of the matrix"), "{error}");
    let name = row_of_label("openblas").name;
    let tag = format!("Tag: {}-{}\n", name.python, name.platform);
    let mut empty = Wheel::new("oarlock_openblas-0.1.0");
    empty.add_metadata("WHEEL", tag.into_bytes());
    empty.add_file("oarlock_openblas/__init__.py", b"# Python\n".to_vec());
    empty.add_metadata("METADATA", b"Name: oarlock-openblas\nVersion: 0.1.0\n\n".to_vec());
    std::fs::remove_file(directory.path().join("oarlock_abacus-0.1.0-py3-none-any.whl")).expect("a file");
    let error = refusal_of(&write_wheel(&directory, &name.to_string(), &empty));
    assert!(error.ends_with("expected a library of `openblas`, found none"), "{error}");
}

#[test]
fn a_plugin_that_the_host_of_this_release_does_not_take_is_refused() {
    let with = |old: &str, new: &str| {
        let plugin = loadable_plugin("openblas");
        let manifest = plugin.manifest.as_ref().map(|text| text.replace(old, new));
        refusal_of(&write_plugin_wheel(&temporary_directory(), &BuiltPlugin { manifest, ..plugin }))
    };
    for (contract, expected) in [("9.0..9.1", "9.0 to 9.1"), ("1.3..1.5", "1.3 to 1.5"), ("0.9", "0.9")] {
        let error = with("1.0..1.1", contract);
        let wanted = format!(
            "expected a plugin that speaks contract 1.0 to 1.2, found one that speaks {expected}, by its manifest"
        );
        assert!(error.contains(&wanted), "{error}");
    }
    for wrong in ["", "1", "1.1..1.0", "1.0..2.1", "1.0..", "1.0..1.1..1.2"] {
        let error = with("1.0..1.1", wrong);
        assert!(error.contains(&format!("for `contract` in the manifest, found `{wrong}`")), "{error}");
    }
    let error = with("sha256 = \"", "sha256 = \"0");
    assert!(error.contains("expected a library with the hash 0"), "{error}");
    let error = refusal_of(&write_plugin_wheel(
        &temporary_directory(),
        &BuiltPlugin { manifest: None, ..loadable_plugin("openblas") },
    ));
    assert!(
        error.contains("expected its manifest `oarlock_openblas/liboarlock_plugin_openblas.oarlock.toml`"),
        "{error}"
    );
}

#[test]
fn a_wheel_whose_tags_differ_from_its_name_is_refused() {
    let directory = temporary_directory();
    let abi3 = "oarlock/_oarlock.abi3.so";
    let name = row_of_label("core").name.to_string();
    let wheel = core_with_library("core", abi3, library_of_part("core"), "cp311-abi3-manylinux_2_28_aarch64");
    let file = write_wheel(&directory, &name, &wheel);
    assert!(refusal_of(&file).ends_with(
        "expected the tags of its name in its WHEEL, cp311-abi3-manylinux_2_28_x86_64; found cp311-abi3-manylinux_2_28_aarch64"
    ));
    std::fs::remove_file(file).expect("a file");
    let label = "core, free-threaded";
    let wheel = core_with_library(label, abi3, library_of_part("core"), "cp314-cp314t-manylinux_2_28_x86_64");
    let error = refusal_of(&write_wheel(&directory, &row_of_label(label).name.to_string(), &wheel));
    assert!(error.contains("expected `oarlock/_oarlock.cpython-314t-"), "{error}");
}

#[test]
fn of_another_release_it_is_not_known_what_it_opens_and_speaks() {
    let directory = temporary_directory();
    let mut row = row_of_label("openblas");
    row.name.version =
        "0.0.9".parse().map(oarlock_matrix::wheel_name::WheelVersion::Valid).expect("a version");
    let older = |code: &str| {
        let plugin = openblas_plugin(code);
        let manifest = plugin.manifest.as_ref().map(|text| text.replace("1.0..1.1", "0.3"));
        let wheel =
            assemble::assemble_plugin_wheel(&row, &BuiltPlugin { manifest, ..plugin }).expect("a wheel");
        write_wheel(&directory, &row.name.to_string(), &wheel)
    };
    older("const char *other = \"libother.so.3\";");
    WheelIndex::of_directory(directory.path(), &own_matrix(), &Default::default(), |_, _| ())
        .expect("an index");
    let error = index_refusal(&older(AVX_SOURCE));
    assert!(error.contains("it has 1 VEX instructions"), "{error}");
}

#[test]
fn a_wheel_whose_version_differs_from_its_name_is_refused() {
    let directory = temporary_directory();
    let file = write_plugin_wheel(&directory, &loadable_plugin("openblas"));
    let row = own_matrix().wheels.into_iter().find(|row| row.label == "openblas").expect("a row");
    let mut wheel = assemble::assemble_plugin_wheel(&row, &loadable_plugin("openblas")).expect("a wheel");
    wheel.add_metadata("METADATA", b"Name: oarlock-openblas\nVersion: 0.2.0\n\n".to_vec());
    std::fs::write(&file, wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"))
        .expect("a file");
    let error = refusal_of(&file);
    assert!(
        error.ends_with("oarlock-openblas==0.1.0; found oarlock-openblas==0.2.0 in its METADATA"),
        "{error}"
    );
}
