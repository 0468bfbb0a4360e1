//! Wheels that come from anywhere are held to the matrix.

use std::path::{Path, PathBuf};
use std::process::Command;

use oarlock_pack::assemble::{self, Plugin};
use oarlock_pack::check;
use oarlock_pack::matrix::{Matrix, OWN, Wheel as Row};
use oarlock_pack::packed::Effort;
use tempfile::TempDir;

use crate::built::plugin;

const NAMES: &str = "const char *names = \"libopenblas.so.0 libopenblasp.so.0 libopenblas.so \";";
const PLAIN: &str = "int sum(int one, int other) { return one + other; }";
const AVX: &str = "double product(double one, double other) { double x; __asm__(\"vmulsd %1, %2, %0\" : \"=x\"(x) : \"x\"(one), \"x\"(other)); return x; }";

fn matrix() -> Matrix {
    Matrix::read("matrix.toml", OWN).expect("our own matrix")
}

/// A shared object of a source in C.
fn compiled(directory: &TempDir, source: &str) -> Vec<u8> {
    let [code, library] = ["code.c", "library.so"].map(|name| directory.path().join(name));
    std::fs::write(&code, source).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(&library).arg(&code);
    compiler.args(["-Wl,--no-as-needed", "-lgcc_s"]);
    assert!(compiler.status().expect("a compiler").success(), "{source}");
    std::fs::read(library).expect("a library")
}

/// A wheel of the row for a part, with this library and this manifest.
fn wheel(directory: &TempDir, part: &str, library: Vec<u8>, contract: &str) -> PathBuf {
    let is_it = |row: &&Row| row.parts == [part];
    let row = matrix().wheels.iter().find(is_it).expect("a row").clone();
    let manifest = Some(format!("name = \"x\"\ncontract = \"{contract}\"\n"));
    let plugin = Plugin { library, manifest, ..plugin(part) };
    let file = directory.path().join(row.name.to_string());
    let bytes = assemble::plugin(&row, &plugin).expect("a wheel").to_bytes(&Effort::Usual.into());
    std::fs::write(&file, bytes.expect("a wheel")).expect("a file");
    file
}

fn refusal(files: &[impl AsRef<Path>]) -> String {
    check::wheels(&matrix(), files).expect_err("a wheel that is not as it should be").to_string()
}

#[test]
fn a_wheel_that_is_what_the_matrix_says_passes() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = compiled(&directory, &format!("{PLAIN}{NAMES}"));
    let file = wheel(&directory, "openblas", library, "1.0..1.1");
    check::wheels(&matrix(), &[file]).expect("a wheel");
}

#[test]
fn a_library_for_other_processors_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = compiled(&directory, &format!("{PLAIN}{AVX}{NAMES}"));
    let error = refusal(&[wheel(&directory, "openblas", library, "1.0")]);
    assert!(error.contains("oarlock_openblas/liboarlock_plugin_openblas.so"), "{error}");
    assert!(error.contains("it has 1 VEX instructions, the first in `product`"), "{error}");
}

#[test]
fn a_library_that_opens_others_than_it_says_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = compiled(&directory, &format!("{PLAIN}const char *other = \"libother.so.3\";"));
    let error = refusal(&[wheel(&directory, "openblas", library, "1.0")]);
    assert!(error.contains("it names `libother.so.3`, which [parts]"), "{error}");
    assert!(error.contains("it does not name `libopenblas.so.0`"), "{error}");
}

#[test]
fn a_wheel_without_what_its_row_has_or_of_no_row_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = compiled(&directory, &format!("{PLAIN}{NAMES}"));
    let file = wheel(&directory, "openblas", library, "1.0");
    let of_mkl = file.with_file_name("oarlock_mkl-0.1.0-py3-none-manylinux_2_28_x86_64.whl");
    std::fs::copy(&file, &of_mkl).expect("a copy");
    let error = refusal(&[of_mkl]);
    assert!(error.contains("expected the libraries of mkl, found `oarlock_openblas/"), "{error}");
    let unknown = file.with_file_name("oarlock_abacus-0.1.0-py3-none-any.whl");
    std::fs::copy(&file, &unknown).expect("a copy");
    assert!(refusal(&[unknown]).contains("expected a wheel of the matrix"));
}

#[test]
fn plugins_that_no_host_takes_together_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let library = compiled(&directory, &format!("{PLAIN}{NAMES}"));
    let opencl = compiled(&directory, &format!("{PLAIN}const char *name = \"libOpenCL.so.1\";"));
    let old = wheel(&directory, "openblas", library, "1.0..1.1");
    let new = wheel(&directory, "opencl", opencl.clone(), "1.2..1.4");
    let error = refusal(&[&old, &new]);
    assert!(
        error.contains("oarlock_opencl-0.1.0") && error.contains("needs the contract 1.2 or newer"),
        "{error}"
    );
    assert!(error.contains("speaks none after 1.1"), "{error}");
    let new = wheel(&directory, "opencl", opencl, "1.1..1.4");
    check::wheels(&matrix(), &[old, new]).expect("both speak 1.1");
}
