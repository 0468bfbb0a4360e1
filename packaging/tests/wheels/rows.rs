//! Wheels of this release contain exactly what their rows specify.

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixRow, OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::build_artifact::BuiltPlugin;
use oarlock_pack::check;
use oarlock_pack::index::WheelIndex;

use crate::built::{
    core_wheel_of_row, library_for_arm, library_of_part, loadable_plugin, plugin_for_arm, plugin_with_library,
};
use crate::check::{
    own_matrix, refusal_of, row_of_label, temporary_directory, write_plugin_wheel, write_wheel,
};

/// Builds the wheel of a row with its plugins.
fn built_wheel_of_label(label: &str) -> (MatrixRow, Wheel) {
    let row = row_of_label(label);
    let plugins: Vec<BuiltPlugin> =
        row.parts.iter().filter(|part| *part != "core").map(|it| loadable_plugin(it)).collect();
    let wheel = match row.parts.len() == plugins.len() {
        true => assemble::assemble_plugin_wheel(&row, &plugins[0]).expect("a wheel"),
        false => core_wheel_of_row(&row, "oarlock/_oarlock.abi3.so", library_of_part("core"), &plugins),
    };
    (row, wheel)
}

/// The error for the wheel of a row after a modification.
fn refusal_after(label: &str, change: &dyn Fn(&mut Wheel)) -> String {
    let (row, mut wheel) = built_wheel_of_label(label);
    change(&mut wheel);
    refusal_of(&write_wheel(&temporary_directory(), &row.name.to_string(), &wheel))
}

#[test]
fn every_row_passes_as_it_is_built() {
    let directory = temporary_directory();
    for label in ["core", "core, without AVX", "CUDA 12", "mkl", "OpenCL", "cpu, openblas", "cuda13, mkl"] {
        let (row, wheel) = built_wheel_of_label(label);
        write_wheel(&directory, &row.name.to_string(), &wheel);
    }
    let index = WheelIndex::of_directory(directory.path(), &own_matrix(), &Default::default(), |_, _| ());
    assert_eq!(index.expect("an index").wheel_count(), 7);
}

#[test]
fn a_wheel_for_arm_has_libraries_for_arm_and_no_extra() {
    let right = plugin_for_arm("cpu");
    let row = row_of_label("core, arm64");
    let wheel_of = |core: Vec<u8>, plugin: &BuiltPlugin| {
        core_wheel_of_row(&row, "oarlock/_oarlock.abi3.so", core, std::slice::from_ref(plugin))
    };
    let directory = temporary_directory();
    let other = plugin_with_library("cpu", library_for_arm("cpu"));
    let wheel = wheel_of(library_for_arm("core"), &right);
    let file = write_wheel(&directory, &row.name.to_string(), &wheel);
    assert_eq!(check::check_wheels(&own_matrix(), &[&file]), Ok(1));
    assert!(!text_of(&wheel, "oarlock-0.1.0.dist-info/METADATA").contains("Provides-Extra"));
    for (core, plugin, words) in [
        (library_of_part("core"), &right, "found one for the architecture X86_64"),
        (library_for_arm("core"), &other, "expected `architecture = \"aarch64-linux\"` in the manifest"),
        (library_for_arm("core"), &loadable_plugin("cpu"), "found one for the architecture X86_64"),
    ] {
        let error = refusal_of(&write_wheel(&directory, &row.name.to_string(), &wheel_of(core, plugin)));
        assert!(error.contains(words), "{error}");
    }
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
        let error = refusal_after(label, &|wheel| wheel.add_file(path, b"x".to_vec()));
        assert!(error.contains(words), "{path}: {error}");
    }
    // A compiled file is a library under any name.
    let error = refusal_after("core", &|wheel| wheel.add_file("oarlock/tool", library_of_part("core")));
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
        let error = refusal_after(label, &|wheel| *wheel = without_file(wheel, path));
        assert!(error.ends_with(&format!("expected `{path}`, found none")), "{error}");
    }
    let path = "oarlock-0.1.0.dist-info/licenses/LICENSE";
    let error = refusal_after("core", &|wheel| wheel.add_file(path, Vec::new()));
    assert!(error.ends_with(&format!("expected a text in `{path}`, found nothing")), "{error}");
}

/// The wheel without a file.
fn without_file(wheel: &Wheel, path: &str) -> Wheel {
    let bytes = wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    let names: Vec<String> =
        archive.file_names().map(|name| name.expect("a name in UTF-8").into_owned()).collect();
    let (named, _) = names.last().and_then(|it| it.split_once(".dist-info/")).expect("a list of files");
    let mut left = Wheel::new(named);
    for name in names.iter().filter(|name| *name != path && !name.ends_with("/RECORD")) {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut archive.by_name(name).expect("a file"), &mut bytes).expect("a file");
        left.add_file(name, bytes);
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
            "found `Requires-Dist: evil` as well",
        ),
        (
            "mkl",
            "License-File: L",
            "Requires-Dist:evil\nLicense-File: L",
            "found `Requires-Dist: evil` as well",
        ),
        ("mkl", "Name: o", "Version: 9\nName: o", "expected one `Version` in METADATA, found several"),
        (
            "mkl",
            "License-File: L",
            "requires-dist: evil\nLicense-File: L",
            "found `Requires-Dist: evil` as well",
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
        let (row, mut wheel) = built_wheel_of_label(label);
        let path =
            format!("{}-{}.dist-info/METADATA", row.name.distribution.replace('-', "_"), row.name.version);
        let text = text_of(&wheel, &path);
        assert!(text.contains(old), "{old} in {text}");
        wheel.add_file(&path, text.replacen(old, new, 1).into_bytes());
        let error = refusal_of(&write_wheel(&temporary_directory(), &row.name.to_string(), &wheel));
        assert!(error.contains(words), "{error}");
    }
}

/// A file of a wheel as text.
fn text_of(wheel: &Wheel, path: &str) -> String {
    let bytes = wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    std::io::read_to_string(archive.by_name(path).expect("a file")).expect("a text")
}

#[test]
fn what_else_a_wheel_says_is_held_to_its_row() {
    let says = |label: &str, name: &str, text: &str| {
        refusal_after(label, &|wheel| wheel.add_metadata(name, text.as_bytes().to_vec()))
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
    let sbom = "sboms/oarlock-plugin-mkl.cyclonedx.json";
    assert!(says("mkl", sbom, "{").contains(&format!("{sbom}`: expected an SBOM as JSON")));
    assert!(says("mkl", sbom, "{}").ends_with("expected `CycloneDX` as `bomFormat`, found null"));
    let text = text_of(&built_wheel_of_label("mkl").1, &format!("oarlock_mkl-0.1.0.dist-info/{sbom}"));
    assert!(
        says("mkl", sbom, &text.replace("libmkl_rt.so.2", "x"))
            .contains("expected it to list `libmkl_rt.so.2`, which the part opens")
    );
    let error = refusal_after("core", &|wheel| wheel.add_file("oarlock/wheel.json", b"{}".to_vec()));
    assert!(error.contains("expected `oarlock/wheel.json` to tell of `core`"), "{error}");
    let (row, _) = built_wheel_of_label("core");
    let (_, other) = built_wheel_of_label("core, without AVX");
    let error = refusal_of(&write_wheel(&temporary_directory(), &row.name.to_string(), &other));
    assert!(error.contains("found oarlock==0.1.0+noavx in its METADATA"), "{error}");
}

#[test]
fn what_is_said_lies_where_the_name_of_the_wheel_says() {
    let (row, wheel) = built_wheel_of_label("mkl");
    let mut moved = Wheel::new("oarlock_mkl-0.2.0");
    moved.add_metadata("METADATA", text_of(&wheel, "oarlock_mkl-0.1.0.dist-info/METADATA").into_bytes());
    moved.add_metadata("WHEEL", text_of(&wheel, "oarlock_mkl-0.1.0.dist-info/WHEEL").into_bytes());
    let error = refusal_of(&write_wheel(&temporary_directory(), &row.name.to_string(), &moved));
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
        let plugin = loadable_plugin(part);
        let text = plugin.manifest.as_ref().expect("a manifest");
        assert!(text.contains(old), "{old} in {text}");
        let manifest = Some(text.replacen(old, new, 1));
        refusal_of(&write_plugin_wheel(&temporary_directory(), &BuiltPlugin { manifest, ..plugin }))
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
fn a_wheel_over_its_installed_size_budget_is_refused() {
    let own = OWN_MATRIX.replace("installed_budget_mb = 30", "installed_budget_mb = 1");
    let small = WheelMatrix::from_toml("matrix.toml", &own).expect("a matrix");
    let (row, mut wheel) = built_wheel_of_label("core");
    wheel.add_file("oarlock/zeros.py", vec![0; 1_000_000]);
    let directory = temporary_directory();
    let file = write_wheel(&directory, &row.name.to_string(), &wheel);
    check::check_wheels(&own_matrix(), &[&file]).expect("a wheel of a megabyte");
    let error = check::check_wheels(&small, &[&file]).expect_err("a wheel of a megabyte").to_string();
    assert!(
        error.contains(
            "expected at most 1000000 bytes for `core` once it is installed, its `installed_budget_mb`"
        ),
        "{error}"
    );
}

#[test]
fn a_wheel_that_is_named_twice_counts_once() {
    let directory = temporary_directory();
    let file = write_plugin_wheel(&directory, &loadable_plugin("mkl"));
    let again = directory.path().join(".").join(file.file_name().expect("a name"));
    assert_eq!(check::check_wheels(&own_matrix(), &[&file, &again, &file]), Ok(1));
}
