//! Wheels assembled from compiled parts.

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::{MatrixRow, OWN_MATRIX, WheelMatrix};
use oarlock_pack::assemble;
use oarlock_pack::build_artifact::{BuiltCore, BuiltPlugin};

use crate::built::{self, compiled_part};

fn own_matrix() -> WheelMatrix {
    WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix")
}

fn row_of_label(label: &str) -> MatrixRow {
    own_matrix()
        .wheels
        .into_iter()
        .find(|row| row.label == label)
        .unwrap_or_else(|| panic!("no row `{label}`"))
}

/// A part of the matrix that is a plugin; all CUDA versions share one plugin.
fn plugin_of_part(part: &str) -> BuiltPlugin {
    let name = part.trim_end_matches(|letter: char| letter.is_ascii_digit());
    BuiltPlugin {
        built: compiled_part(part, &format!("oarlock-plugin-{name}"), &["libfar.so.1"]),
        library: vec![0x7f, b'E', b'L', b'F'],
        manifest: Some("name = \"x\"\npackage = \"y\"\n".to_owned()),
    }
}

fn core_artifact() -> BuiltCore {
    let mut wheel = Wheel::new("oarlock-0.1.0");
    wheel.add_file("oarlock/__init__.py", Vec::new());
    wheel.add_metadata(
        "METADATA",
        b"Metadata-Version: 2.4\nName: oarlock\nVersion: 0.1.0\n\n# Version: none\n".to_vec(),
    );
    wheel.add_metadata("WHEEL", b"Tag: cp311-abi3-linux_x86_64\n".to_vec());
    built::core_of_wheel(wheel)
}

/// The files of a wheel after writing, as text by path.
fn written_files(wheel: &Wheel) -> std::collections::BTreeMap<String, String> {
    let bytes = wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wheel.whl");
    std::fs::write(&file, &bytes).expect("a file");
    Wheel::read_file(&file).expect("what was written is whole");
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    (0..archive.len())
        .map(|place| {
            let mut entry = archive.by_index(place).expect("an entry");
            let name = entry.name().expect("a name").into_owned();
            let mut text = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut text).expect("a file");
            (name, String::from_utf8_lossy(&text).into_owned())
        })
        .collect()
}

#[test]
fn a_plugin_is_announced_by_its_wheel() {
    let wheel = assemble::assemble_plugin_wheel(&row_of_label("CUDA 12"), &plugin_of_part("cuda12"))
        .expect("a wheel");
    let files = written_files(&wheel);
    let paths: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            "oarlock_cuda12-0.1.0.dist-info/METADATA",
            "oarlock_cuda12-0.1.0.dist-info/RECORD",
            "oarlock_cuda12-0.1.0.dist-info/WHEEL",
            "oarlock_cuda12-0.1.0.dist-info/entry_points.txt",
            "oarlock_cuda12-0.1.0.dist-info/licenses/LICENSE",
            "oarlock_cuda12-0.1.0.dist-info/licenses/THIRD-PARTY-oarlock-plugin-cuda.txt",
            "oarlock_cuda12-0.1.0.dist-info/sboms/oarlock-plugin-cuda.cyclonedx.json",
            "oarlock_cuda12/__init__.py",
            "oarlock_cuda12/liboarlock_plugin_cuda.oarlock.toml",
            "oarlock_cuda12/liboarlock_plugin_cuda.so",
        ]
    );
    assert_eq!(
        files["oarlock_cuda12-0.1.0.dist-info/entry_points.txt"],
        "[oarlock.plugins]\ncuda = oarlock_cuda12\n"
    );
    assert!(files["oarlock_cuda12-0.1.0.dist-info/WHEEL"].ends_with("Tag: py3-none-manylinux_2_28_x86_64\n"));
    let about = &files["oarlock_cuda12-0.1.0.dist-info/METADATA"];
    assert!(about.contains("Name: oarlock-cuda12\nVersion: 0.1.0\n"), "{about}");
    assert!(about.contains("\nRequires-External: libfar.so.1\n"), "{about}");
    // A host that knows the library reports when it is missing; the package is the one that pip can update.
    assert_eq!(
        files["oarlock_cuda12/liboarlock_plugin_cuda.oarlock.toml"],
        "name = \"x\"\npackage = \"oarlock-cuda12\"\n\n[[requires]]\noptional = true\nsoname = \"libfar.so.1\"\n"
    );
}

#[test]
fn the_core_can_be_asked_for_with_plugins_and_what_their_vendors_give() {
    let wheel = assemble::assemble_core_wheel(
        &own_matrix(),
        &row_of_label("core"),
        &core_artifact(),
        &[plugin_of_part("cpu")],
    )
    .expect("a wheel");
    let files = written_files(&wheel);
    assert!(files.contains_key("oarlock/plugins/liboarlock_plugin_cpu.so"), "the CPU device is part of it");
    let about = &files["oarlock-0.1.0.dist-info/METADATA"];
    for line in [
        "Provides-Extra: cuda12\nRequires-Dist: oarlock-cuda12==0.1.0 ; extra == 'cuda12'\n",
        "Requires-Dist: nvidia-cuda-nvrtc-cu12>=12.0,<13 ; extra == 'cuda12'\n",
        "Provides-Extra: cuda12-local\nRequires-Dist: oarlock-cuda12==0.1.0 ; extra == 'cuda12-local'\nProvides-Extra",
        "Provides-Extra: opencl\nRequires-Dist: oarlock-opencl==0.1.0 ; extra == 'opencl'\n",
    ] {
        assert!(about.contains(line), "{line} in {about}");
    }
    assert!(!about.contains("opencl-local") && !about.contains("rocm"), "{about}");
    assert!(about.ends_with("\n\n# Version: none\n"), "{about}");
}

#[test]
fn one_file_is_the_core_of_another_version_with_plugins_in_it() {
    let plugins = ["cpu", "cuda13", "mkl"].map(plugin_of_part);
    let wheel = assemble::assemble_core_wheel(
        &own_matrix(),
        &row_of_label("cuda13, mkl"),
        &core_artifact(),
        &plugins,
    )
    .expect("a wheel");
    let files = written_files(&wheel);
    let about = "oarlock-0.1.0+cuda13.mkl.dist-info";
    let metadata = &files[&format!("{about}/METADATA")];
    assert!(
        metadata
            .starts_with("Metadata-Version: 2.4\nName: oarlock\nVersion: 0.1.0+cuda13.mkl\nLicense-File: "),
        "{metadata}"
    );
    for part in ["oarlock-python", "oarlock-plugin-cpu", "oarlock-plugin-cuda", "oarlock-plugin-mkl"] {
        let licenses = format!("licenses/THIRD-PARTY-{part}.txt");
        assert!(files.contains_key(&format!("{about}/{licenses}")) && metadata.contains(&licenses[9..]));
        assert!(files.contains_key(&format!("{about}/sboms/{part}.cyclonedx.json")));
    }
    assert!(files[&format!("{about}/WHEEL")].ends_with("Tag: cp311-abi3-manylinux_2_28_x86_64\n"));
    for name in ["cpu", "cuda", "mkl"] {
        assert!(files.contains_key(&format!("oarlock/plugins/liboarlock_plugin_{name}.so")));
        assert!(files.contains_key(&format!("oarlock/plugins/liboarlock_plugin_{name}.oarlock.toml")));
    }
    let lies_in_one = |path: &String| path.starts_with("oarlock/") || path.starts_with(about);
    assert!(files.keys().all(lies_in_one), "{:?}", files.keys());
}

#[test]
fn other_parts_than_the_matrix_names_are_refused() {
    let error = assemble::assemble_plugin_wheel(&row_of_label("CUDA 12"), &plugin_of_part("opencl"))
        .expect_err("another plugin");
    assert_eq!(error.to_string(), "expected for `CUDA 12` of the matrix the parts cuda12, found opencl");
    let too_few = ["cpu", "cuda13"].map(plugin_of_part);
    let error = assemble::assemble_core_wheel(
        &own_matrix(),
        &row_of_label("cuda13, mkl"),
        &core_artifact(),
        &too_few,
    )
    .expect_err("a plugin too few");
    assert_eq!(
        error.to_string(),
        "expected for `cuda13, mkl` of the matrix the parts core, cpu, cuda13, mkl, found core, cpu, cuda13"
    );
}
