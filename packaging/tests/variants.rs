//! Variants of the plain version, after PEP 825.

use std::collections::BTreeMap;
use std::path::Path;

use oarlock_formats::file_packer::CompressionEffort;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::WheelMatrix;
use oarlock_pack::index::WheelIndex;

use tempfile::TempDir;

const MATRIX_TEXT: &str = r#"
host = "https://example.org"
[axes]
python = ["py3-none"]
blas = ["mkl", "openblas"]
isa = ["any", "noavx"]
[[channels]]
name = "release"
version = "1.0"
[[wheels]]
python = "*"
blas = "*"
isa = "*"
tag = "any"
names.release = { label = "{blas}, {isa}", directory = "/{blas}-{isa}", distribution = "example", suffix = "+{blas}.{isa}" }
[[properties]]
property = "x86_64::level::v3"
isa = "any"
[[properties]]
property = "blas_lapack :: library :: mkl"
blas = "mkl"
isa = "any"
"#;

/// Writes an index of wheels of these versions.
fn written_index(matrix: &str, versions: &[&str]) -> Result<TempDir, oarlock_formats::Error> {
    let directory = tempfile::tempdir().expect("a directory");
    let wheels = directory.path().join("wheels");
    std::fs::create_dir(&wheels).expect("a directory");
    for version in versions {
        let mut wheel = Wheel::new(&format!("example-{version}"));
        wheel.add_metadata(
            "METADATA",
            format!("Name: example\nVersion: {version}\n\nVersion: {version}\n").into(),
        );
        wheel.add_metadata("WHEEL", b"Wheel-Version: 1.0\nTag: py3-none-any\n".to_vec());
        let file = wheels.join(format!("example-{version}-py3-none-any.whl"));
        std::fs::write(file, wheel.to_bytes(&CompressionEffort::Usual.into()).expect("a wheel"))
            .expect("a file");
    }
    let matrix = WheelMatrix::from_toml("matrix.toml", matrix)?;
    let index =
        WheelIndex::of_directory(&wheels, &matrix, &BTreeMap::new(), |_, _| ())?.with_variants(&matrix)?;
    index.write_index(&directory.path().join("index"))?;
    Ok(directory)
}

fn read_file(directory: &TempDir, path: &str) -> String {
    let file = directory.path().join("index").join(path);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A file of a wheel.
fn wheel_file(file: &Path, path: &str) -> String {
    let file = std::fs::File::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut archive = zip::ZipArchive::new(file).expect("a wheel");
    let mut entry = archive.by_name(path).expect("a file of it");
    std::io::read_to_string(&mut entry).expect("a text")
}

#[test]
fn a_variant_wheel_keeps_the_plain_version_and_lists_requirements() {
    let directory =
        written_index(MATRIX_TEXT, &["1.0", "1.0+mkl.any", "1.0+openblas.any"]).expect("an index");
    let name = "example-1.0-py3-none-any-mkl.any.whl";
    let wheel = directory.path().join("index/files").join(name);
    Wheel::read_file(&wheel).expect("a whole wheel");
    // The version changes in the header, and not in the description below.
    let metadata = "Name: example\nVersion: 1.0\n\nVersion: 1.0+mkl.any\n";
    assert_eq!(wheel_file(&wheel, "example-1.0.dist-info/METADATA"), metadata);
    assert_eq!(read_file(&directory, &format!("files/{name}.metadata")), metadata);
    let about: serde_json::Value =
        serde_json::from_str(&wheel_file(&wheel, "example-1.0.dist-info/variant.json")).expect("JSON");
    assert_eq!(
        about,
        serde_json::json!({
            "$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
            "default-priorities": { "namespace": ["x86_64", "blas_lapack"] },
            "variants": { "mkl.any": { "blas_lapack": { "library": ["mkl"] }, "x86_64": { "level": ["v3"] } } },
        })
    );
}

#[test]
fn pages_with_variants_lead_to_what_is_said_of_all_of_them() {
    let directory =
        written_index(MATRIX_TEXT, &["1.0", "1.0+mkl.any", "1.0+openblas.any"]).expect("an index");
    let page = read_file(&directory, "simple/example/index.html");
    assert!(page.contains("href=\"../../files/example-1.0-variants.json#sha256="), "{page}");
    assert_eq!(page.matches("<a href").count(), 4);
    assert_eq!(read_file(&directory, "mkl-any/index.html").matches("<a href").count(), 1);
    let json: serde_json::Value =
        serde_json::from_str(&read_file(&directory, "json/example/index.json")).expect("JSON");
    assert_eq!(json["versions"], serde_json::json!(["1.0"]));
    let about: serde_json::Value =
        serde_json::from_str(&read_file(&directory, "files/example-1.0-variants.json")).expect("JSON");
    let labels: Vec<&String> = about["variants"].as_object().expect("labels").keys().collect();
    assert_eq!(labels, ["mkl.any", "openblas.any"]);
}

#[test]
fn what_needs_nothing_of_a_machine_is_no_variant() {
    let directory = written_index(MATRIX_TEXT, &["1.0", "1.0+mkl.noavx"]).expect("an index");
    assert_eq!(read_file(&directory, "simple/example/index.html").matches("<a href").count(), 1);
    assert!(!directory.path().join("index/files/example-1.0-variants.json").exists());
}

#[test]
fn two_variants_that_need_the_same_are_refused() {
    let same = MATRIX_TEXT.replace("blas = \"mkl\"\nisa", "blas = \"*\"\nisa");
    let error = written_index(&same, &["1.0+mkl.any", "1.0+openblas.any"]).expect_err("two of the same");
    assert!(error.to_string().ends_with("`mkl.any` and `openblas.any` need the same"), "{error}");
}

#[test]
fn what_is_no_property_is_refused() {
    for bad in ["x86_64 :: level", "x86_64 :: Level :: v3", "a :: b :: ", "a.b :: c :: d", "a :: b :: c :: d"]
    {
        let error =
            written_index(&MATRIX_TEXT.replace("x86_64::level::v3", bad), &[]).expect_err("no property");
        assert!(error.to_string().contains("expected a property such as"), "{error}");
    }
    let error = written_index(&MATRIX_TEXT.replace("blas = \"mkl\"\nisa", "blas = \"mlk\"\nisa"), &[]);
    assert!(error.expect_err("no value").to_string().contains("found `mlk`"));
}
