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

fn matrix() -> Matrix {
    Matrix::read("matrix.toml", OWN).expect("our own matrix")
}

fn row(label: &str) -> Row {
    matrix().wheels.into_iter().find(|row| row.label == label).unwrap_or_else(|| panic!("no row `{label}`"))
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Writes a wheel under a name.
fn written(directory: &TempDir, name: &str, wheel: &Wheel) -> PathBuf {
    let file = directory.path().join(name);
    std::fs::write(&file, wheel.to_bytes(&Effort::Usual.into()).expect("a wheel")).expect("a file");
    file
}

/// The wheel of a plugin, of the row that it is alone in.
fn wheel(directory: &TempDir, plugin: &Plugin) -> PathBuf {
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
fn refusal(file: &Path) -> String {
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

/// The wheel of a row with the plugins that it has, as it is built.
fn whole(label: &str) -> (Row, Wheel) {
    let row = row(label);
    let plugins: Vec<Plugin> =
        row.parts.iter().filter(|part| *part != "core").map(|it| loadable(it)).collect();
    let wheel = match row.parts.len() == plugins.len() {
        true => assemble::plugin(&row, &plugins[0]).expect("a wheel"),
        false => core_of(&row, "oarlock/_oarlock.abi3.so", library("core"), &plugins),
    };
    (row, wheel)
}

/// Why the wheel of a row is refused after something was done to it.
fn refusal_after(label: &str, change: &dyn Fn(&mut Wheel)) -> String {
    let (row, mut wheel) = whole(label);
    change(&mut wheel);
    refusal(&written(&directory(), &row.name.to_string(), &wheel))
}

#[test]
fn every_row_passes_as_it_is_built() {
    let directory = directory();
    for label in ["core", "core, without AVX", "CUDA 12", "mkl", "OpenCL", "cpu, openblas", "cuda13, mkl"] {
        let (row, wheel) = whole(label);
        written(&directory, &row.name.to_string(), &wheel);
    }
    let index = Index::of_directory(directory.path(), &matrix(), &Default::default(), |_, _| ());
    assert_eq!(index.expect("an index").count(), 7);
}

#[test]
fn files_that_a_row_does_not_have_are_refused() {
    for (label, path, words) in [
        ("core", "numpy/__init__.py", "expected nothing beside `oarlock/`"),
        ("core", "oarlock.pth", "found `oarlock.pth`"),
        ("core", "oarlock-0.1.0.data/scripts/oarlock", "found `oarlock-0.1.0.data/scripts/oarlock`"),
        ("OpenCL", "oarlock/__init__.py", "expected nothing beside `oarlock_opencl/`"),
        ("OpenCL", "oarlock_opencl/more.py", "no file that `OpenCL` does not have, found"),
        (
            "core",
            "oarlock/plugins/more.py",
            "no file that `core` does not have, found `oarlock/plugins/more.py`",
        ),
        (
            "core",
            "oarlock-0.1.0.dist-info/direct_url.json",
            "found `oarlock-0.1.0.dist-info/direct_url.json`",
        ),
        (
            "core",
            "oarlock-0.1.0.dist-info/sboms/more.cyclonedx.json",
            "found `oarlock-0.1.0.dist-info/sboms/more",
        ),
    ] {
        let error = refusal_after(label, &|wheel| wheel.add(path, b"x".to_vec()));
        assert!(error.contains(words), "{path}: {error}");
    }
    // What is compiled is a library whatever it is called.
    let error = refusal_after("core", &|wheel| wheel.add("oarlock/tool", library("core")));
    assert!(error.contains("expected the libraries of core, cpu, found `oarlock/tool`"), "{error}");
}

#[test]
fn files_that_a_row_has_are_missed() {
    for (label, path) in [
        ("core", "oarlock/__init__.py"),
        ("core", "oarlock/wheel.json"),
        ("core", "oarlock-0.1.0.dist-info/licenses/LICENSE"),
        ("core", "oarlock-0.1.0.dist-info/licenses/THIRD-PARTY-oarlock-python.txt"),
        ("core", "oarlock-0.1.0.dist-info/sboms/oarlock-plugin-cpu.cyclonedx.json"),
        ("mkl", "oarlock_mkl/__init__.py"),
        ("mkl", "oarlock_mkl-0.1.0.dist-info/entry_points.txt"),
        ("mkl", "oarlock_mkl-0.1.0.dist-info/sboms/oarlock-plugin-mkl.cyclonedx.json"),
    ] {
        let error = refusal_after(label, &|wheel| *wheel = without(wheel, path));
        assert!(error.ends_with(&format!("expected `{path}`, found none")), "{error}");
    }
    let path = "oarlock-0.1.0.dist-info/licenses/LICENSE";
    let error = refusal_after("core", &|wheel| wheel.add(path, Vec::new()));
    assert!(error.ends_with(&format!("expected a text in `{path}`, found nothing")), "{error}");
}

/// The same without a file.
fn without(wheel: &Wheel, path: &str) -> Wheel {
    let bytes = wheel.to_bytes(&Effort::Usual.into()).expect("a wheel");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    let names: Vec<String> =
        archive.file_names().map(|name| name.expect("a name in UTF-8").into_owned()).collect();
    let (named, _) = names.last().and_then(|it| it.split_once(".dist-info/")).expect("a list of files");
    let mut left = Wheel::new(named);
    for name in names.iter().filter(|name| *name != path && !name.ends_with("/RECORD")) {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut archive.by_name(name).expect("a file"), &mut bytes).expect("a file");
        left.add(name, bytes);
    }
    left
}

#[test]
fn metadata_that_says_something_else_than_the_row_is_refused() {
    for (label, old, new, words) in [
        (
            "core",
            ">=3.11",
            ">=2.7",
            "expected `Requires-Python: >=3.11` in METADATA, found `Requires-Python: >=2.7`",
        ),
        (
            "mkl",
            "Requires-Python: >=3.11\n",
            "",
            "expected `Requires-Python: >=3.11` in METADATA, found none",
        ),
        (
            "mkl",
            "License-File: L",
            "Requires-Dist: evil\nLicense-File: L",
            "found `Requires-Dist: evil` beside it",
        ),
        (
            "mkl",
            "License-File: L",
            "requires-dist: evil\nLicense-File: L",
            "found `Requires-Dist: evil` beside it",
        ),
        (
            "core",
            "cuda12==0.1.0 ;",
            "cuda12>=0.1.0 ;",
            "extra == 'cuda12-local'` in METADATA, found `Requires-Dist: oarlock-cuda12>=0.1.0 ; extra",
        ),
        (
            "mkl",
            "Requires-External: libmkl_rt.so.2\n",
            "",
            "expected `Requires-External: libmkl_rt.so.2` in METADATA",
        ),
        (
            "mkl",
            "https://oarlock",
            "https://other",
            "expected `Project-URL: Homepage, https://oarlock.example`",
        ),
    ] {
        let (row, mut wheel) = whole(label);
        let path =
            format!("{}-{}.dist-info/METADATA", row.name.distribution.replace('-', "_"), row.name.version);
        let text = text_of(&wheel, &path);
        assert!(text.contains(old), "{old} in {text}");
        wheel.add(&path, text.replacen(old, new, 1).into_bytes());
        let error = refusal(&written(&directory(), &row.name.to_string(), &wheel));
        assert!(error.contains(words), "{error}");
    }
}

/// The text of a file of a wheel.
fn text_of(wheel: &Wheel, path: &str) -> String {
    let bytes = wheel.to_bytes(&Effort::Usual.into()).expect("a wheel");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    std::io::read_to_string(archive.by_name(path).expect("a file")).expect("a text")
}

#[test]
fn what_else_a_wheel_says_is_held_to_its_row() {
    let says = |label: &str, name: &str, text: &str| {
        refusal_after(label, &|wheel| wheel.say(name, text.as_bytes().to_vec()))
    };
    let error = says("core", "entry_points.txt", "[console_scripts]\npython = evil:main\n");
    assert!(
        error.ends_with("expected no command in `entry_points.txt`, found `[console_scripts]`"),
        "{error}"
    );
    let error = says("mkl", "entry_points.txt", "[oarlock.plugins]\nmkl = numpy\n");
    assert!(
        error.contains("expected `[oarlock.plugins]\\nmkl = oarlock_mkl` in `entry_points.txt`"),
        "{error}"
    );
    let bill = "sboms/oarlock-plugin-mkl.cyclonedx.json";
    assert!(says("mkl", bill, "{").contains(&format!("{bill}`: expected a bill of materials as JSON")));
    assert!(says("mkl", bill, "{}").ends_with("expected `CycloneDX` as `bomFormat`, found null"));
    let text = text_of(&whole("mkl").1, &format!("oarlock_mkl-0.1.0.dist-info/{bill}"));
    assert!(
        says("mkl", bill, &text.replace("libmkl_rt.so.2", "x"))
            .contains("expected `libmkl_rt.so.2`, which the part opens")
    );
    let error = refusal_after("core", &|wheel| wheel.add("oarlock/wheel.json", b"{}".to_vec()));
    assert!(error.contains("expected `oarlock/wheel.json` to tell of `core`"), "{error}");
    let (row, _) = whole("core");
    let (_, other) = whole("core, without AVX");
    let error = refusal(&written(&directory(), &row.name.to_string(), &other));
    assert!(error.contains("found oarlock==0.1.0+noavx in its METADATA"), "{error}");
}

#[test]
fn what_is_said_lies_where_the_name_of_the_wheel_says() {
    let (row, wheel) = whole("mkl");
    let mut moved = Wheel::new("oarlock_mkl-0.2.0");
    moved.say("METADATA", text_of(&wheel, "oarlock_mkl-0.1.0.dist-info/METADATA").into_bytes());
    moved.say("WHEEL", text_of(&wheel, "oarlock_mkl-0.1.0.dist-info/WHEEL").into_bytes());
    let error = refusal(&written(&directory(), &row.name.to_string(), &moved));
    assert!(
        error.ends_with(
            "expected the directory `oarlock_mkl-0.1.0.dist-info`, found `oarlock_mkl-0.2.0.dist-info`"
        ),
        "{error}"
    );
}

#[test]
fn a_manifest_that_says_something_else_than_the_matrix_is_refused() {
    let refused = |part: &str, old: &str, new: &str| {
        let plugin = loadable(part);
        let text = plugin.manifest.as_ref().expect("a manifest");
        assert!(text.contains(old), "{old} in {text}");
        let manifest = Some(text.replacen(old, new, 1));
        refusal(&wheel(&directory(), &Plugin { manifest, ..plugin }))
    };
    for (part, old, new, words) in [
        (
            "mkl",
            "x86_64-linux",
            "aarch64-linux",
            "expected `architecture = \"x86_64-linux\"` in the manifest, found `\"aarch64-linux\"`",
        ),
        (
            "mkl",
            "architecture = \"x86_64-linux\"\n",
            "",
            "expected `architecture = \"x86_64-linux\"` in the manifest, found none",
        ),
        (
            "mkl",
            "version = \"0",
            "version = \"9",
            "expected `version = \"0.1.0\"` in the manifest, found `\"9.1.0\"`",
        ),
        (
            "mkl",
            "kind =",
            "device_type = \"cpu\"\nkind =",
            "expected no `device_type` in the manifest, found `\"cpu\"`",
        ),
        (
            "cuda12",
            "\"cuda\"",
            "\"rocm\"",
            "expected `device_type = \"cuda\"` in the manifest, found `\"rocm\"`",
        ),
        ("cuda12", "kind = \"device\"", "kind = \"layer\"", "expected `kind = \"device\"` in the manifest"),
        ("mkl", "sha256 =", "other =", "expected `sha256` in the manifest, by which a host knows"),
    ] {
        let error = refused(part, old, new);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_wheel_is_no_larger_installed_than_its_row_allows() {
    let own = OWN.replace("installed_budget_mb = 30", "installed_budget_mb = 1");
    let small = Matrix::read("matrix.toml", &own).expect("a matrix");
    let (row, mut wheel) = whole("core");
    wheel.add("oarlock/zeros.py", vec![0; 1_000_000]);
    let directory = directory();
    let file = written(&directory, &row.name.to_string(), &wheel);
    check::wheels(&matrix(), &[&file]).expect("a wheel of a megabyte");
    let error = check::wheels(&small, &[&file]).expect_err("a wheel of a megabyte").to_string();
    assert!(
        error.contains(
            "expected at most 1000000 bytes for `core` once it is installed, its `installed_budget_mb`"
        ),
        "{error}"
    );
}

#[test]
fn a_wheel_that_is_named_twice_counts_once() {
    let directory = directory();
    let file = wheel(&directory, &loadable("mkl"));
    let again = directory.path().join(".").join(file.file_name().expect("a name"));
    assert_eq!(check::wheels(&matrix(), &[&file, &again, &file]), Ok(1));
}
