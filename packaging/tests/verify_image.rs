//! What an image is held to: whatever was changed in one, `verify` says so.

#[path = "common/image.rs"]
mod image;

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use oarlock_pack::deb::Package;
use oarlock_pack::deb::control::Paragraph;
use oarlock_pack::image::Images;
use oarlock_pack::matrix::{Matrix, OWN};
use oarlock_pack::packages::{OWN as PACKAGES, Packages};
use oarlock_pack::tree::{Entry, Tree};
use oarlock_pack::verify::Found;
use serde_json::{Value, json};

use crate::image::{IMAGES, Place, sha256};

/// Where a plugin lies in its package.
const PLUGIN: &str = "usr/lib/x86_64-linux-gnu/oarlock/plugins/liboarlock_plugin_openblas.so";

/// The time of everything in them.
const TIME: u64 = 1_700_000_000;

/// Images of packages of which one is a plugin of our own matrix, with an entry and a link.
struct Judge {
    place: Place,
    images: String,
}

impl Judge {
    fn new() -> Self {
        let images = IMAGES
            .replace("own = [\"ours\"]", "own = [\"ours\", \"oarlock-plugin-openblas\"]\nentry = true")
            .replace("[[images]]", "[layers.more.links]\n\"usr/lib/also.so\" = \"more.so\"\n[[images]]");
        Self { place: Place::new(), images }
    }

    /// The archive of an image whose plugin has these bytes.
    fn archive(&self, plugin: &[u8]) -> Vec<u8> {
        let control = "Package: oarlock-plugin-openblas\nVersion: 1.0-1\nArchitecture: amd64\n";
        let control = Paragraph::read_one(control).expect("fields");
        let mut package = Package { control, ..Package::default() };
        package.contents.put(PLUGIN, Entry::file(plugin)).expect("a path");
        let file = self.place.path("debs/oarlock-plugin-openblas_1.0-1_amd64.deb");
        std::fs::write(file, package.to_bytes(1).expect("a package")).expect("a file");
        let finished = self.place.make(&self.images, &self.place.path("out")).expect("an image");
        std::fs::read(finished.file).expect("a file")
    }

    /// Has an archive looked at, as one of several.
    fn look(&self, found: &mut Found, archive: &[u8]) -> Result<(), String> {
        let file = self.place.path("image.tar");
        std::fs::write(&file, archive).expect("a file");
        let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
        let packages = Packages::read("packages.toml", PACKAGES).expect("our own packages");
        let images = Images::read("images.toml", &self.images).expect("images");
        let looked = found.image(&matrix, &packages, &images, &self.place.lock, Path::new(&file));
        looked.map_err(|error| error.to_string())
    }

    /// Why an archive is refused.
    fn refusal(&self, archive: &[u8]) -> String {
        self.look(&mut Found::default(), archive).expect_err("a refusal")
    }
}

/// The digest of the blob that something in an archive names, and where that lies.
fn place(blob: &Value) -> String {
    blob["digest"].as_str().expect("a digest").replace("sha256:", "blobs/sha256/")
}

fn value(files: &Tree, path: &str) -> Value {
    serde_json::from_slice(files.file(path).expect(path)).expect("JSON")
}

/// Puts bytes under their hash, and names them in place of what `blob` did.
fn put(files: &mut Tree, blob: &mut Value, bytes: Vec<u8>) {
    blob["digest"] = Value::from(format!("sha256:{}", sha256(&bytes)));
    blob["size"] = Value::from(bytes.len());
    files.put(&place(blob), Entry::file(bytes)).expect("a path");
}

/// An archive with other layers or another configuration, in which all hashes are right.
fn changed(archive: &[u8], change: impl FnOnce(&mut [Tree], &mut Value)) -> Vec<u8> {
    let mut files = Tree::of_tar(archive).expect("an archive");
    let mut index = value(&files, "index.json");
    let mut manifest = value(&files, &place(&index["manifests"][0]));
    let mut config = value(&files, &place(&manifest["config"]));
    let unpacked = |blob: &Value| {
        let mut bytes = Vec::new();
        GzDecoder::new(files.file(&place(blob)).expect("a layer")).read_to_end(&mut bytes).expect("bytes");
        Tree::of_tar(&bytes).expect("a layer")
    };
    let mut layers: Vec<Tree> = manifest["layers"].as_array().expect("layers").iter().map(unpacked).collect();
    change(&mut layers, &mut config);
    for (number, layer) in layers.iter().enumerate() {
        let bytes = layer.to_tar("", TIME).expect("an archive");
        config["rootfs"]["diff_ids"][number] = Value::from(format!("sha256:{}", sha256(&bytes)));
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&bytes).expect("bytes");
        put(&mut files, &mut manifest["layers"][number], packed.finish().expect("bytes"));
    }
    put(&mut files, &mut manifest["config"], config.to_string().into_bytes());
    let layers: Vec<String> = manifest["layers"].as_array().expect("layers").iter().map(place).collect();
    let mut docker = value(&files, "manifest.json");
    docker[0]["Config"] = Value::from(place(&manifest["config"]));
    docker[0]["Layers"] = json!(layers);
    put(&mut files, &mut index["manifests"][0], manifest.to_string().into_bytes());
    for (path, value) in [("index.json", index), ("manifest.json", docker)] {
        files.put(path, Entry::file(value.to_string().into_bytes())).expect("a path");
    }
    files.to_tar("", 0).expect("an archive")
}

/// Changes a text in a layer.
fn edit(layer: &mut Tree, path: &str, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(layer.file(path).expect(path).to_vec()).expect("a text");
    layer.put(path, Entry::file(change(text).into_bytes())).expect("a path");
}

#[test]
fn images_are_held_to_each_other_and_to_packages() {
    let judge = Judge::new();
    let mut found = Found::default();
    judge.look(&mut found, &judge.archive(b"plugin")).expect("an image");
    judge
        .look(&mut found, &changed(&judge.archive(b"plugin"), |_, _| ()))
        .expect("the same, packed otherwise");
    assert_eq!(found.same().expect("the same")[0].places.len(), 2);
    judge.look(&mut found, &judge.archive(b"another")).expect("an image");
    let error = found.same().expect_err("others").to_string();
    assert!(error.contains("the same bytes of openblas for glibc 2.28 everywhere"), "{error}");
}

#[test]
fn what_packages_of_ours_bring_into_an_image_is_what_they_have() {
    let judge = Judge::new();
    let archive = judge.archive(b"\x7fELF plugin");
    let other = changed(&archive, |layers, _| {
        let path = "usr/bin/oarlock-extra.py";
        layers[1].put(path, Entry::program(*b"other")).expect("a path");
        let hash = "795f3202b17cb6bc3d4b771d8c6c9eaf";
        for (kind, line) in [("md5sums", format!("{hash}  {path}")), ("list", format!("/{path}"))] {
            let list = format!("var/lib/dpkg/info/oarlock-plugin-openblas.{kind}");
            edit(&mut layers[1], &list, |text| format!("{text}{line}\n"));
        }
    });
    let matrix = Matrix::read("matrix.toml", OWN).expect("our own matrix");
    let packages = Packages::read("packages.toml", PACKAGES).expect("our own packages");
    for (image, told) in [
        (archive, None),
        (other, Some("expected `usr/bin/oarlock-extra.py` as the package `oarlock-plugin-openblas` in `")),
    ] {
        let mut found = Found::default();
        let package = judge.place.path("debs/oarlock-plugin-openblas_1.0-1_amd64.deb");
        found.package(&matrix, &packages, &package).expect("a package");
        judge.look(&mut found, &image).expect("an image in itself");
        let error = found.same().err().map(|error| error.to_string());
        match told {
            None => assert_eq!(error, None),
            Some(told) => assert!(error.as_ref().is_some_and(|error| error.contains(told)), "{error:?}"),
        }
    }
}

#[test]
fn a_file_that_no_package_brought_is_refused_whatever_it_is() {
    let judge = Judge::new();
    let archive = judge.archive(b"plugin");
    let unwanted = "expected no file that no package brought";
    let modes = "expected what root alone may change, and programs that may be run, found `usr/";
    let list = "var/lib/dpkg/info/other.md5sums";
    for (path, entry, told) in [
        ("usr/libexec/helper", Entry::program(*b""), unwanted),
        ("etc/ssh/id_ed25519", Entry::file(*b"secret"), unwanted),
        ("usr/lib/python3/dist-packages/more.py", Entry::file(*b""), unwanted),
        ("usr/lib/python3/__pycache__/more.cpython-313.pyc", Entry::file(*b""), unwanted),
        (list, Entry::file(*b"d41d8cd98f00b204e9800998ecf8427e  usr/bin/other\n"), unwanted),
        (
            "usr/bin/gcc",
            Entry::program(*b""),
            "expected no compiler in an image to run programs, found `usr/bin/gcc`",
        ),
        ("usr/bin/x86_64-linux-gnu-g++-14", Entry::program(*b""), "expected no compiler"),
        ("usr/libexec/gcc/x86_64-linux-gnu/14/cc1", Entry::program(*b""), "expected no compiler"),
        ("usr/bin/ld.bfd", Entry::program(*b""), "expected no compiler"),
        ("usr/bin/tcc", Entry::link("ours"), "expected no compiler"),
        (
            "usr/bin/su",
            Entry { mode: 0o4755, ..Entry::program(*b"") },
            "expected no program that runs as somebody else",
        ),
        ("usr/bin/ours", Entry { mode: 0o777, ..Entry::program(*b"ours") }, modes),
        ("usr/bin/ours", Entry { owner: (10_001, 0), ..Entry::program(*b"ours") }, modes),
        ("usr/bin/ours", Entry::file(*b"ours"), modes),
        ("usr/local/bin", Entry { mode: 0o777, ..Entry::directory() }, modes),
        ("work", Entry::directory(), "expected `work` as every such image has it"),
        ("tmp", Entry::directory(), "expected `tmp` as every such image has it"),
        ("bin", Entry::directory(), "expected layers that go through no link of those below, found `bin`"),
        ("lib/base.so", Entry::file(*b"base"), "expected layers that go through no link"),
        ("usr/bin/away", Entry::link("nowhere"), "expected links to what is there, found `usr/bin/away`"),
        ("usr/bin/here", Entry::link("ours"), unwanted),
        ("usr/bin/.wh.ours", Entry::file(*b""), "expected layers that take nothing away of those below"),
        (
            "usr/lib/base.so",
            Entry::file(*b"other"),
            "expected `usr/lib/base.so` as the package `base` brought it, found another one",
        ),
        (
            "usr/bin/oarlock-entry",
            Entry::program(*b"#!/bin/sh\n"),
            "expected `usr/bin/oarlock-entry` as every such image has it",
        ),
        (
            "etc/passwd",
            Entry::file(*b"other::0:0::/:/bin/sh\n"),
            "expected `etc/passwd` as every such image has it",
        ),
    ] {
        let forged = changed(&archive, |layers, _| layers[1].put(path, entry).expect(path));
        let error = judge.refusal(&forged);
        assert!(error.contains(told), "{path}: {error}");
    }
}

#[test]
fn packages_are_those_of_the_lock_and_of_the_layers() {
    let judge = Judge::new();
    let archive = judge.archive(b"plugin");
    let with_status = |change: fn(String) -> String| {
        judge.refusal(&changed(&archive, |layers, _| edit(&mut layers[1], "var/lib/dpkg/status", change)))
    };
    let more = with_status(|text| format!("{text}\nPackage: gcc\nVersion: 1\n"));
    assert!(more.contains("expected no package `gcc` in the image `small`, found one"), "{more}");
    let other = with_status(|text| text.replace("1.0-1", "1.0-2"));
    assert!(
        other.contains("expected `base` 1.0-1 in the image, as the lock names it; found 1.0-2"),
        "{other}"
    );
    let listed = judge.refusal(&changed(&archive, |layers, _| {
        edit(&mut layers[1], "var/lib/dpkg/info/ours.list", |text| format!("{text}/usr/bin/other\n"));
        layers[1].put("usr/bin/other", Entry::program(*b"")).expect("a path");
    }));
    assert!(listed.contains("expected no file that no package brought, found `usr/bin/other`"), "{listed}");
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
    let judge = Judge::new();
    let archive = judge.archive(b"plugin");
    let error = judge.refusal(&changed(&archive, |_, config| config["config"]["User"] = Value::from("0")));
    assert!(error.contains("expected \"10001:10001\" as `config.User` of the image, found \"0\""), "{error}");
    let entry = json!(["/bin/sh", "-c", "other"]);
    let error = judge.refusal(&changed(&archive, |_, config| config["config"]["Entrypoint"] = entry));
    assert!(error.contains("as `config.Entrypoint` of the image"), "{error}");
    let error = judge.refusal(&changed(&archive, |_, config| config["architecture"] = Value::from("arm64")));
    assert!(error.contains("expected \"amd64\" as `architecture` of the image, found \"arm64\""), "{error}");
    let error =
        judge.refusal(&changed(&archive, |_, config| config["history"][0]["comment"] = Value::from("x")));
    assert!(error.contains("as `history` of the image"), "{error}");
    let label = "org.opencontainers.image.version";
    let error = judge.refusal(&changed(&archive, |_, config| config["config"]["Labels"][label] = json!("2")));
    assert!(
        error.contains("expected \"1.0\" as `config.Labels.org.opencontainers.image.version`"),
        "{error}"
    );
    let error = judge.refusal(&changed(&archive, |_, config| config["config"]["OnBuild"] = json!(["RUN x"])));
    assert!(error.contains("expected nothing as `config.OnBuild` of the image"), "{error}");
}

#[test]
fn an_archive_whose_files_do_not_go_together_is_none() {
    let judge = Judge::new();
    let archive = judge.archive(b"plugin");
    let forged =
        changed(&archive, |layers, _| layers[1].put(PLUGIN, Entry::file(*b"other")).expect("a path"));
    let [ours, other] = [&archive, &forged].map(|bytes| Tree::of_tar(bytes).expect("an archive"));
    let refusal = |change: &dyn Fn(&mut Tree)| {
        // All that either has, so that nothing is missing.
        let mut files = other.clone();
        files.lay(ours.clone()).expect("files");
        change(&mut files);
        judge.refusal(&files.to_tar("", 0).expect("an archive"))
    };
    let error = refusal(&|files| {
        let index = other.file("index.json").expect("an index");
        files.put("index.json", Entry::file(index)).expect("a path");
    });
    assert!(error.contains("expected the same image in `manifest.json` as in `index.json`"), "{error}");
    let layer = value(&ours, "manifest.json")[0]["Layers"][1].as_str().expect("a path").to_owned();
    let error = refusal(&|files| files.put(&layer, Entry::file(*b"other")).expect("a path"));
    assert!(error.contains(" bytes of the hash sha256:"), "{error}");
    let error = refusal(&|files| files.retain(|path| path != layer));
    assert!(error.contains(&format!("expected `{layer}` in the archive, found none")), "{error}");
    let error = refusal(&|files| {
        let mut index = value(&ours, "index.json");
        let second = index["manifests"][0].clone();
        index["manifests"].as_array_mut().expect("a list").push(second);
        files.put("index.json", Entry::file(index.to_string().into_bytes())).expect("a path");
    });
    assert!(error.contains("expected one image in the archive, found 2"), "{error}");
    let error = refusal(&|files| {
        let mut index = value(&ours, "index.json");
        index["manifests"][0]["urls"] = json!(["https://example.org/other"]);
        files.put("index.json", Entry::file(index.to_string().into_bytes())).expect("a path");
    });
    assert!(error.contains("in the archive alone, found it at `https://example.org/other` too"), "{error}");
    let more =
        |config: &mut Value| config["rootfs"]["diff_ids"].as_array_mut().expect("a list").push(json!(""));
    let error = judge.refusal(&changed(&archive, |_, config| more(config)));
    assert!(error.contains("expected the layers that the image says it has, found others"), "{error}");
    let mut files = ours.clone();
    files.retain(|path| path != "manifest.json");
    judge.look(&mut Found::default(), &files.to_tar("", 0).expect("an archive")).expect("what skopeo writes");
}
