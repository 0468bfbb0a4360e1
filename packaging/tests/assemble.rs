//! Wheels that are put together of what was built.

use oarlock_pack::assemble::{self, Plugin};
use oarlock_pack::matrix::{Matrix, OWN, Wheel as Row};
use oarlock_pack::wheel::{Effort, Wheel};

fn row(label: &str) -> Row {
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    matrix.wheels.into_iter().find(|row| row.label == label).unwrap_or_else(|| panic!("no row `{label}`"))
}

fn built(name: &str) -> Plugin {
    Plugin {
        name: name.to_owned(),
        library: vec![0x7f, b'E', b'L', b'F'],
        manifest: Some("name = \"x\"\n".to_owned()),
    }
}

fn core() -> Wheel {
    let mut core = Wheel::new("oarlock-0.1.0");
    core.add("oarlock/__init__.py", Vec::new());
    core.say(
        "METADATA",
        b"Metadata-Version: 2.4\nName: oarlock\nVersion: 0.1.0\n\n# Version: none\n".to_vec(),
    );
    core.say("WHEEL", b"Tag: cp311-abi3-manylinux_2_28_x86_64\n".to_vec());
    core
}

/// The paths of a wheel as it is written, and the text of one of them.
fn written(wheel: &Wheel) -> std::collections::BTreeMap<String, String> {
    let bytes = wheel.to_bytes(Effort::Usual).expect("a wheel");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wheel.whl");
    std::fs::write(&file, &bytes).expect("a file");
    Wheel::read(&file).expect("what was written is whole");
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
    let wheel = assemble::plugin(&row("CUDA 12"), &built("cuda"), b"the licence").expect("a wheel");
    let files = written(&wheel);
    let paths: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        paths,
        [
            "oarlock_cuda12-0.1.0.dist-info/METADATA",
            "oarlock_cuda12-0.1.0.dist-info/RECORD",
            "oarlock_cuda12-0.1.0.dist-info/WHEEL",
            "oarlock_cuda12-0.1.0.dist-info/entry_points.txt",
            "oarlock_cuda12-0.1.0.dist-info/licenses/LICENSE",
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
    assert!(
        files["oarlock_cuda12-0.1.0.dist-info/METADATA"].contains("Name: oarlock-cuda12\nVersion: 0.1.0\n")
    );
}

#[test]
fn one_file_is_the_core_of_another_version_with_plugins_in_it() {
    let wheel =
        assemble::one_file(&row("cuda13, mkl"), &core(), &[built("cuda"), built("mkl")]).expect("a wheel");
    let files = written(&wheel);
    let about = "oarlock-0.1.0+cuda13.mkl.dist-info";
    assert_eq!(
        files[&format!("{about}/METADATA")],
        "Metadata-Version: 2.4\nName: oarlock\nVersion: 0.1.0+cuda13.mkl\n\n# Version: none\n"
    );
    assert_eq!(
        files[&format!("{about}/entry_points.txt")],
        "[oarlock.plugins]\ncuda = oarlock_with_cuda\nmkl = oarlock_with_mkl\n"
    );
    assert!(
        files.contains_key("oarlock/__init__.py")
            && files.contains_key("oarlock_with_cuda/liboarlock_plugin_cuda.so")
    );
    assert!(files.keys().all(|path| !path.starts_with("oarlock-0.1.0.dist-info")));
}

#[test]
fn other_parts_than_the_matrix_names_are_refused() {
    let error = assemble::plugin(&row("CUDA 12"), &built("opencl"), b"").expect_err("another plugin");
    assert_eq!(error.to_string(), "expected for `CUDA 12` of the matrix the parts cuda, found opencl");
    let error =
        assemble::one_file(&row("cuda13, mkl"), &core(), &[built("cuda")]).expect_err("a plugin too few");
    assert_eq!(
        error.to_string(),
        "expected for `cuda13, mkl` of the matrix the parts core, cuda, mkl, found core, cuda"
    );
}
