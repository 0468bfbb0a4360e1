//! A third-party reader of images reads ours, and sees the same image in both of its formats.
//!
//! Without skopeo there is one ignored test that says so. `engine.rs` tests engines.

#[path = "common/image.rs"]
mod image;
#[path = "common/trials.rs"]
mod trials;

use std::process::{Command, ExitCode};

use oarlock_image::image_index;
use oarlock_matrix::CpuArchitecture;

use crate::image::{IMAGE_CATALOG, ImageFixture};
use serde_json::Value;

const TESTS: &[(&str, fn())] = &[
    ("skopeo_reads_both_forms_of_an_archive", skopeo_reads_both_forms_of_an_archive),
    ("skopeo_keeps_the_digest_of_what_it_copies", skopeo_keeps_the_digest_of_what_it_copies),
    ("skopeo_chooses_the_image_of_an_architecture", skopeo_chooses_the_image_of_an_architecture),
];

fn main() -> ExitCode {
    let is_here =
        Command::new("skopeo").arg("--version").output().is_ok_and(|message| message.status.success());
    let missing = || "`skopeo` is missing: it is part of Debian and Ubuntu".to_owned();
    trials::run_trials(TESTS, (!is_here).then(missing))
}

fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect(program);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json_output_of(program: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&output_of(program, arguments)).expect("JSON")
}

fn skopeo_reads_both_forms_of_an_archive() {
    let place = ImageFixture::new();
    let finished = place.build_first_image(IMAGE_CATALOG, &place.path("out")).expect("an image");
    let file = finished.file.display();
    let of_oci = json_output_of("skopeo", &["inspect", &format!("oci-archive:{file}")]);
    assert_eq!(of_oci["Digest"], format!("sha256:{}", finished.digest));
    assert_eq!(of_oci["Architecture"], "amd64");
    assert_eq!(of_oci["Created"], "2023-11-14T22:13:20Z");
    assert_eq!(of_oci["Labels"]["org.opencontainers.image.version"], "1.0");
    assert_eq!(of_oci["Layers"].as_array().map(Vec::len), Some(2));
    let config = |form: &str| json_output_of("skopeo", &["inspect", "--config", &format!("{form}:{file}")]);
    assert_eq!(config("oci-archive"), config("docker-archive"));
}

fn skopeo_keeps_the_digest_of_what_it_copies() {
    let place = ImageFixture::new();
    let finished = place.build_first_image(IMAGE_CATALOG, &place.path("out")).expect("an image");
    let copy = place.path("copy");
    let from = format!("oci-archive:{}", finished.file.display());
    output_of("skopeo", &["--insecure-policy", "copy", &from, &format!("dir:{}", copy.display())]);
    let manifest = std::fs::read(copy.join("manifest.json")).expect("a manifest");
    assert_eq!(image::sha256_hex(&manifest), finished.digest);
}

fn skopeo_chooses_the_image_of_an_architecture() {
    let out = tempfile::tempdir().expect("a directory");
    let images = CpuArchitecture::ALL.map(|architecture| {
        let place = ImageFixture::for_architecture(architecture);
        place.build_first_image(IMAGE_CATALOG, out.path()).expect("an image")
    });
    let indexes = image_index::write_indexes(&images, out.path()).expect("an index");
    let from = format!("oci-archive:{}", indexes[0].file.display());
    for architecture in CpuArchitecture::ALL.map(CpuArchitecture::debian_name) {
        let config =
            json_output_of("skopeo", &["--override-arch", architecture, "inspect", "--config", &from]);
        assert_eq!(config["architecture"], architecture);
    }
    let copy = out.path().join("copy");
    output_of("skopeo", &["--insecure-policy", "copy", "--all", &from, &format!("dir:{}", copy.display())]);
    let manifest = std::fs::read(copy.join("manifest.json")).expect("a manifest");
    assert_eq!(image::sha256_hex(&manifest), indexes[0].digest);
}
