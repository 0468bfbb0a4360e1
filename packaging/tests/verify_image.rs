//! `verify` detects every modification of an image.

#[path = "common/image.rs"]
mod image;

use std::io::{Read as _, Write as _};
use std::path::Path;

use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::tree::{FileTree, TreeEntry};
use oarlock_image::ImageSources;
use oarlock_matrix::{CpuArchitecture, OWN_MATRIX, WheelMatrix};
use oarlock_pack::packages::{OWN_PACKAGES as PACKAGES, PackageCatalog};
use oarlock_pack::verify::FoundParts;

use crate::image::{IMAGE_CATALOG, ImageFixture, read_catalog, sha256_hex};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// The path of the plugin in its package.
const PLUGIN_PATH: &str = "usr/lib/x86_64-linux-gnu/oarlock/plugins/liboarlock_plugin_openblas.so";

/// The timestamp of everything in the images.
const IMAGE_TIME: u64 = 1_700_000_000;

/// Images with a plugin of our own matrix among their packages, an entry point and a link.
struct ImageJudge {
    place: ImageFixture,
    images: String,
}

impl ImageJudge {
    fn new() -> Self {
        let images = IMAGE_CATALOG
            .replace("own = [\"ours\"]", "own = [\"ours\", \"oarlock-plugin-openblas\"]\nentry = true")
            .replace("[[images]]", "[layers.more.links]\n\"usr/lib/also.so\" = \"more.so\"\n[[images]]");
        Self { place: ImageFixture::new(), images }
    }

    /// An image archive whose plugin has these bytes.
    fn archive_with_plugin(&self, plugin: &[u8]) -> Vec<u8> {
        let control = "Package: oarlock-plugin-openblas\nVersion: 1.0-1\nArchitecture: amd64\n";
        let control = ControlParagraph::parse_single(control).expect("fields");
        let mut package = DebPackage { control, ..DebPackage::default() };
        package.contents.insert_entry(PLUGIN_PATH, TreeEntry::file(plugin)).expect("a path");
        let file = self.place.path("debs/oarlock-plugin-openblas_1.0-1_amd64.deb");
        std::fs::write(file, package.to_bytes(1).expect("a package")).expect("a file");
        let finished = self.place.build_first_image(&self.images, &self.place.path("out")).expect("an image");
        std::fs::read(finished.file).expect("a file")
    }

    /// Verifies an archive as one of several.
    fn verify_archive(&self, found: &mut FoundParts, archive: &[u8]) -> Result<(), String> {
        let file = self.place.path("image.tar");
        std::fs::write(&file, archive).expect("a file");
        let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
        let packages = PackageCatalog::from_toml("packages.toml", PACKAGES).expect("our own packages");
        let images = read_catalog(&self.images, CpuArchitecture::X86_64).expect("images");
        let sources = [ImageSources { images, lock: self.place.lock.clone() }];
        let looked = found.add_image(&matrix, &packages, &sources, Path::new(&file));
        looked.map_err(|error| error.to_string())
    }

    /// The error for an archive.
    fn refusal_of(&self, archive: &[u8]) -> String {
        self.verify_archive(&mut FoundParts::default(), archive).expect_err("a refusal")
    }
}

/// The path of the blob that a descriptor refers to.
fn blob_path(blob: &Value) -> String {
    blob["digest"].as_str().expect("a digest").replace("sha256:", "blobs/sha256/")
}

fn read_json(files: &FileTree, path: &str) -> Value {
    serde_json::from_slice(files.file_bytes(path).expect(path)).expect("JSON")
}

/// Stores bytes as a blob and makes the descriptor refer to it.
fn replace_blob(files: &mut FileTree, blob: &mut Value, bytes: Vec<u8>) {
    blob["digest"] = Value::from(format!("sha256:{}", sha256_hex(&bytes)));
    blob["size"] = Value::from(bytes.len());
    files.insert_entry(&blob_path(blob), TreeEntry::file(bytes)).expect("a path");
}

/// An archive with modified layers or configuration in which all digests are correct.
fn altered_archive(archive: &[u8], change: impl FnOnce(&mut [FileTree], &mut Value)) -> Vec<u8> {
    let mut files = FileTree::from_tar(archive).expect("an archive");
    let mut index = read_json(&files, "index.json");
    let mut manifest = read_json(&files, &blob_path(&index["manifests"][0]));
    let mut config = read_json(&files, &blob_path(&manifest["config"]));
    let unpacked = |blob: &Value| {
        let mut bytes = Vec::new();
        GzDecoder::new(files.file_bytes(&blob_path(blob)).expect("a layer"))
            .read_to_end(&mut bytes)
            .expect("bytes");
        FileTree::from_tar(&bytes).expect("a layer")
    };
    let mut layers: Vec<FileTree> =
        manifest["layers"].as_array().expect("layers").iter().map(unpacked).collect();
    change(&mut layers, &mut config);
    for (number, layer) in layers.iter().enumerate() {
        let bytes = layer.to_tar("", IMAGE_TIME).expect("an archive");
        config["rootfs"]["diff_ids"][number] = Value::from(format!("sha256:{}", sha256_hex(&bytes)));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&bytes).expect("bytes");
        replace_blob(&mut files, &mut manifest["layers"][number], packed.finish().expect("bytes"));
    }
    replace_blob(&mut files, &mut manifest["config"], config.to_string().into_bytes());
    let layers: Vec<String> = manifest["layers"].as_array().expect("layers").iter().map(blob_path).collect();
    let mut docker = read_json(&files, "manifest.json");
    docker[0]["Config"] = Value::from(blob_path(&manifest["config"]));
    docker[0]["Layers"] = json!(layers);
    replace_blob(&mut files, &mut index["manifests"][0], manifest.to_string().into_bytes());
    for (path, value) in [("index.json", index), ("manifest.json", docker)] {
        files.insert_entry(path, TreeEntry::file(value.to_string().into_bytes())).expect("a path");
    }
    files.to_tar("", 0).expect("an archive")
}

/// Edits a text file in a layer.
fn edit_text_file(layer: &mut FileTree, path: &str, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(layer.file_bytes(path).expect(path).to_vec()).expect("a text");
    layer.insert_entry(path, TreeEntry::file(change(text).into_bytes())).expect("a path");
}

#[test]
fn images_are_held_to_each_other_and_to_packages() {
    let judge = ImageJudge::new();
    let mut found = FoundParts::default();
    judge.verify_archive(&mut found, &judge.archive_with_plugin(b"plugin")).expect("an image");
    judge
        .verify_archive(&mut found, &altered_archive(&judge.archive_with_plugin(b"plugin"), |_, _| ()))
        .expect("the same, packed otherwise");
    assert_eq!(found.identical_parts().expect("the same")[0].places.len(), 2);
    judge.verify_archive(&mut found, &judge.archive_with_plugin(b"another")).expect("an image");
    let error = found.identical_parts().expect_err("others").to_string();
    assert!(error.contains("the same bytes of openblas for glibc 2.28 everywhere"), "{error}");
}

#[test]
fn what_packages_of_ours_bring_into_an_image_is_what_they_have() {
    let judge = ImageJudge::new();
    let archive = judge.archive_with_plugin(b"\x7fELF plugin");
    let other = altered_archive(&archive, |layers, _| {
        let path = "usr/bin/oarlock-extra.py";
        layers[1].insert_entry(path, TreeEntry::program(*b"other")).expect("a path");
        let hash = "795f3202b17cb6bc3d4b771d8c6c9eaf";
        for (kind, line) in [("md5sums", format!("{hash}  {path}")), ("list", format!("/{path}"))] {
            let list = format!("var/lib/dpkg/info/oarlock-plugin-openblas.{kind}");
            edit_text_file(&mut layers[1], &list, |text| format!("{text}{line}\n"));
        }
    });
    let matrix = WheelMatrix::from_toml("matrix.toml", OWN_MATRIX).expect("our own matrix");
    let packages = PackageCatalog::from_toml("packages.toml", PACKAGES).expect("our own packages");
    for (image, expected) in [
        (archive, None),
        (other, Some("expected `usr/bin/oarlock-extra.py` as the package `oarlock-plugin-openblas` in `")),
    ] {
        let mut found = FoundParts::default();
        let package = judge.place.path("debs/oarlock-plugin-openblas_1.0-1_amd64.deb");
        found.add_package(&matrix, &packages, &package).expect("a package");
        judge.verify_archive(&mut found, &image).expect("an image in itself");
        let error = found.identical_parts().err().map(|error| error.to_string());
        match expected {
            None => assert_eq!(error, None),
            Some(expected) => {
                assert!(error.as_ref().is_some_and(|error| error.contains(expected)), "{error:?}");
            }
        }
    }
}

#[test]
fn a_file_that_no_package_brought_is_refused_whatever_it_is() {
    let judge = ImageJudge::new();
    let archive = judge.archive_with_plugin(b"plugin");
    let unwanted = "expected no file that no package installed";
    let modes = "expected what root alone may change, and programs that may be run, found `usr/";
    let list = "var/lib/dpkg/info/other.md5sums";
    for (path, entry, expected) in [
        ("usr/libexec/helper", TreeEntry::program(*b""), unwanted),
        ("etc/ssh/id_ed25519", TreeEntry::file(*b"secret"), unwanted),
        ("usr/lib/python3/dist-packages/more.py", TreeEntry::file(*b""), unwanted),
        ("usr/lib/python3/__pycache__/more.cpython-313.pyc", TreeEntry::file(*b""), unwanted),
        (list, TreeEntry::file(*b"d41d8cd98f00b204e9800998ecf8427e  usr/bin/other\n"), unwanted),
        (
            "usr/bin/gcc",
            TreeEntry::program(*b""),
            "expected no compiler in an image to run programs, found `usr/bin/gcc`",
        ),
        ("usr/bin/x86_64-linux-gnu-g++-14", TreeEntry::program(*b""), "expected no compiler"),
        ("usr/libexec/gcc/x86_64-linux-gnu/14/cc1", TreeEntry::program(*b""), "expected no compiler"),
        ("usr/bin/ld.bfd", TreeEntry::program(*b""), "expected no compiler"),
        ("usr/bin/tcc", TreeEntry::link("ours"), "expected no compiler"),
        (
            "usr/bin/su",
            TreeEntry { mode: 0o4755, ..TreeEntry::program(*b"") },
            "expected no setuid or setgid program",
        ),
        ("usr/bin/ours", TreeEntry { mode: 0o777, ..TreeEntry::program(*b"ours") }, modes),
        ("usr/bin/ours", TreeEntry { owner: (10_001, 0), ..TreeEntry::program(*b"ours") }, modes),
        ("usr/bin/ours", TreeEntry::file(*b"ours"), modes),
        ("usr/local/bin", TreeEntry { mode: 0o777, ..TreeEntry::directory() }, modes),
        ("work", TreeEntry::directory(), "expected `work` as every such image has it"),
        ("tmp", TreeEntry::directory(), "expected `tmp` as every such image has it"),
        (
            "bin",
            TreeEntry::directory(),
            "expected layers that go through no link of those below, found `bin`",
        ),
        ("lib/base.so", TreeEntry::file(*b"base"), "expected layers that go through no link"),
        ("usr/bin/away", TreeEntry::link("nowhere"), "expected links to what is there, found `usr/bin/away`"),
        ("usr/bin/here", TreeEntry::link("ours"), unwanted),
        ("usr/bin/.wh.ours", TreeEntry::file(*b""), "expected layers that take nothing away of those below"),
        (
            "usr/lib/base.so",
            TreeEntry::file(*b"other"),
            "expected `usr/lib/base.so` as the package `base` installed it, found another one",
        ),
        (
            "usr/bin/oarlock-entry",
            TreeEntry::program(*b"#!/bin/sh\n"),
            "expected `usr/bin/oarlock-entry` as every such image has it",
        ),
        (
            "etc/passwd",
            TreeEntry::file(*b"other::0:0::/:/bin/sh\n"),
            "expected `etc/passwd` as every such image has it",
        ),
    ] {
        let forged = altered_archive(&archive, |layers, _| layers[1].insert_entry(path, entry).expect(path));
        let error = judge.refusal_of(&forged);
        assert!(error.contains(expected), "{path}: {error}");
    }
}

#[test]
fn packages_are_those_of_the_lock_and_of_the_layers() {
    let judge = ImageJudge::new();
    let archive = judge.archive_with_plugin(b"plugin");
    let with_status = |change: fn(String) -> String| {
        judge.refusal_of(&altered_archive(&archive, |layers, _| {
            edit_text_file(&mut layers[1], "var/lib/dpkg/status", change);
        }))
    };
    let more = with_status(|text| format!("{text}\nPackage: gcc\nVersion: 1\n"));
    assert!(more.contains("expected no package `gcc` in the image `small`, found one"), "{more}");
    let other = with_status(|text| text.replace("1.0-1", "1.0-2"));
    assert!(
        other.contains("expected `base` 1.0-1 in the image, as the lock names it; found 1.0-2"),
        "{other}"
    );
    let listed = judge.refusal_of(&altered_archive(&archive, |layers, _| {
        edit_text_file(&mut layers[1], "var/lib/dpkg/info/ours.list", |text| {
            format!("{text}/usr/bin/other\n")
        });
        layers[1].insert_entry("usr/bin/other", TreeEntry::program(*b"")).expect("a path");
    }));
    assert!(listed.contains("expected no file that no package installed, found `usr/bin/other`"), "{listed}");
    let hidden = with_status(|text| {
        text.split("\n\n").filter(|it| !it.contains("openblas")).collect::<Vec<_>>().join("\n\n")
    });
    assert!(
        hidden.contains("expected the package `oarlock-plugin-openblas` in the image, found none"),
        "{hidden}"
    );
}

#[test]
fn what_an_image_says_of_itself_is_what_one_like_it_says() {
    let judge = ImageJudge::new();
    let archive = judge.archive_with_plugin(b"plugin");
    let error =
        judge.refusal_of(&altered_archive(&archive, |_, config| config["config"]["User"] = Value::from("0")));
    assert!(error.contains("expected \"10001:10001\" as `config.User` of the image, found \"0\""), "{error}");
    let entry = json!(["/bin/sh", "-c", "other"]);
    let error =
        judge.refusal_of(&altered_archive(&archive, |_, config| config["config"]["Entrypoint"] = entry));
    assert!(error.contains("as `config.Entrypoint` of the image"), "{error}");
    let error = judge
        .refusal_of(&altered_archive(&archive, |_, config| config["architecture"] = Value::from("arm64")));
    let expected = "expected an image for linux on amd64, as the index says; found one for linux on arm64";
    assert!(error.contains(expected), "{error}");
    let error = judge.refusal_of(&altered_archive(&archive, |_, config| {
        config["history"][0]["comment"] = Value::from("x");
    }));
    assert!(error.contains("as `history` of the image"), "{error}");
    let label = "org.opencontainers.image.version";
    let error = judge
        .refusal_of(&altered_archive(&archive, |_, config| config["config"]["Labels"][label] = json!("2")));
    assert!(
        error.contains("expected \"1.0\" as `config.Labels.org.opencontainers.image.version`"),
        "{error}"
    );
    let error = judge
        .refusal_of(&altered_archive(&archive, |_, config| config["config"]["OnBuild"] = json!(["RUN x"])));
    assert!(error.contains("expected nothing as `config.OnBuild` of the image"), "{error}");
}

#[test]
fn an_archive_whose_files_do_not_go_together_is_none() {
    let judge = ImageJudge::new();
    let archive = judge.archive_with_plugin(b"plugin");
    let forged = altered_archive(&archive, |layers, _| {
        layers[1].insert_entry(PLUGIN_PATH, TreeEntry::file(*b"other")).expect("a path");
    });
    let [ours, other] = [&archive, &forged].map(|bytes| FileTree::from_tar(bytes).expect("an archive"));
    let refusal = |change: &dyn Fn(&mut FileTree)| {
        // All files of both, so that none is missing.
        let mut files = other.clone();
        files.overlay_tree(ours.clone()).expect("files");
        change(&mut files);
        judge.refusal_of(&files.to_tar("", 0).expect("an archive"))
    };
    let error = refusal(&|files| {
        let index = other.file_bytes("index.json").expect("an index");
        files.insert_entry("index.json", TreeEntry::file(index)).expect("a path");
    });
    assert!(error.contains("expected the same image in `manifest.json` as in `index.json`"), "{error}");
    let layer = read_json(&ours, "manifest.json")[0]["Layers"][1].as_str().expect("a path").to_owned();
    let error = refusal(&|files| files.insert_entry(&layer, TreeEntry::file(*b"other")).expect("a path"));
    assert!(error.contains(" bytes of the hash sha256:"), "{error}");
    let error = refusal(&|files| files.retain(|path| path != layer));
    assert!(error.contains(&format!("expected `{layer}` in the archive, found none")), "{error}");
    let error = refusal(&|files| {
        let mut index = read_json(&ours, "index.json");
        let second = index["manifests"][0].clone();
        index["manifests"].as_array_mut().expect("a list").push(second);
        files.insert_entry("index.json", TreeEntry::file(index.to_string().into_bytes())).expect("a path");
    });
    assert!(error.contains("expected one image in the archive, found 2"), "{error}");
    let error = refusal(&|files| {
        let mut index = read_json(&ours, "index.json");
        index["manifests"][0]["urls"] = json!(["https://example.org/other"]);
        files.insert_entry("index.json", TreeEntry::file(index.to_string().into_bytes())).expect("a path");
    });
    assert!(error.contains("in the archive alone, found it at `https://example.org/other` too"), "{error}");
    let more =
        |config: &mut Value| config["rootfs"]["diff_ids"].as_array_mut().expect("a list").push(json!(""));
    let error = judge.refusal_of(&altered_archive(&archive, |_, config| more(config)));
    assert!(error.contains("expected the layers that the image says it has, found others"), "{error}");
    let mut files = ours.clone();
    files.retain(|path| path != "manifest.json");
    judge
        .verify_archive(&mut FoundParts::default(), &files.to_tar("", 0).expect("an archive"))
        .expect("what skopeo writes");
}
