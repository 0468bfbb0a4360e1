//! Images are reproducible, contain nothing unrequested, and leave no files after a failure.

#[path = "common/directory.rs"]
mod directory;
#[path = "common/image.rs"]
mod image;

use std::path::Path;
use std::process::{Command, Output};

use oarlock_formats::deb::DebPackage;
use oarlock_formats::deb::control::ControlParagraph;
use oarlock_formats::tree::{FileTree, TreeNode};
use oarlock_image::image_builder::ImageBuilder;
use oarlock_image::images::ImageKind;
use oarlock_image::local_packages::LocalPackages;
use oarlock_image::lock::LockedPackage;
use oarlock_image::mirror::DebianMirror;
use oarlock_image::{DebianLock, ImageCatalog, ImageSources, PackageCache, images};
use oarlock_matrix::CpuArchitecture;

use crate::directory::file_names;
use crate::image::{IMAGE_CATALOG, ImageFixture, read_catalog};

/// Builds images that must be refused, and asserts that no file is left.
fn refusal_of(place: &ImageFixture, images: &str) -> String {
    let out = place.path("refused");
    let error = place.build_first_image(images, &out).err().expect("a refusal").to_string();
    assert!(!out.exists(), "{error}");
    error
}

#[test]
fn an_image_is_reproducible_across_runs_and_directories() {
    let (one, other) = (ImageFixture::new(), ImageFixture::new());
    let images: Vec<Vec<u8>> = [&one, &one, &other]
        .into_iter()
        .map(|place| {
            let finished = place.build_first_image(IMAGE_CATALOG, &place.path("out")).expect("an image");
            assert_eq!(finished.name.to_string(), "example:1.0-small");
            assert_eq!(
                file_names(&place.path("out")),
                ["example-1.0-small-amd64", "example-1.0-small-amd64.tar"]
            );
            std::fs::read(&finished.file).expect("a file")
        })
        .collect();
    assert_eq!(images[0], images[1]);
    assert_eq!(images[0], images[2]);
}

#[test]
fn a_layer_holds_what_it_adds_and_the_last_knows_every_package() {
    let place = ImageFixture::new();
    let finished = place.build_first_image(IMAGE_CATALOG, &place.path("out")).expect("an image");
    let directory = finished.dockerfile.expect("a directory");
    assert_eq!(file_names(&directory), [".oarlock-image", "Dockerfile", "base.tar.gz", "more.tar.gz"]);
    let layer = |name: &str| {
        let mut unpacked = Vec::new();
        let file = std::fs::File::open(directory.join(name)).expect("a file");
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut unpacked)
            .expect("an archive");
        FileTree::from_tar(&unpacked).expect("an archive")
    };
    let (base, more) = (layer("base.tar.gz"), layer("more.tar.gz"));
    assert_eq!(base.file_bytes("usr/lib/base.so"), Some(&b"base"[..]));
    assert_eq!(base.get("lib").map(|entry| &entry.node), Some(&TreeNode::Link("usr/lib".to_owned())));
    assert_eq!(base.get("tmp").map(|entry| entry.mode), Some(0o1777));
    assert!(base.get("usr/share/man").is_none());
    let files: Vec<&str> = more.files().map(|(path, _)| path).collect();
    let info = |name: &str| ["list", "md5sums"].map(|kind| format!("var/lib/dpkg/info/{name}.{kind}"));
    let mut expected =
        [["usr/bin/ours".to_owned(), "usr/lib/more.so".to_owned()], info("more"), info("ours")].concat();
    expected.push("var/lib/dpkg/status".to_owned());
    assert_eq!(files, expected);
    let status =
        String::from_utf8_lossy(more.file_bytes("var/lib/dpkg/status").expect("a file")).into_owned();
    let known: Vec<String> = ControlParagraph::parse_all(&status)
        .expect("fields")
        .iter()
        .map(|it| it.require_field("Package").expect("a name").to_owned())
        .collect();
    assert_eq!(known, ["base", "more", "ours"]);
}

#[test]
fn an_image_of_other_packages_than_the_lock_has_is_refused() {
    let place = ImageFixture::new();
    let file = place.path("pool/more_1.0-1_amd64.deb");
    let mut bytes = std::fs::read(&file).expect("a file");
    *bytes.last_mut().expect("a byte") ^= 1;
    std::fs::write(&file, &bytes).expect("a file");
    assert!(refusal_of(&place, IMAGE_CATALOG).contains("expected `more` 1.0-1 of "));
    std::fs::remove_file(&file).expect("a file");
    assert!(refusal_of(&place, IMAGE_CATALOG).contains("expected `more` 1.0-1, found none"));
    let newer = refusal_of(&place, &IMAGE_CATALOG.replace("[\"more\"]", "[\"more\", \"new\"]"));
    assert!(newer.contains("expected `new` among the packages of the layer `more`, found none"), "{newer}");
}

#[test]
fn an_image_that_is_too_large_or_lacks_something_is_refused() {
    let place = ImageFixture::new();
    let large = refusal_of(&place, &IMAGE_CATALOG.replace("budget_mb = 1", "budget_mb = 0"));
    assert!(
        large.contains("`example:1.0-small`: expected at most 0 MB, packed; found 0.3 MB: `base` 0.0 MB"),
        "{large}"
    );
    let lacking = IMAGE_CATALOG.replace("[\"base\", \"more\"]", "[\"base\", \"own\"]").replace(
        "[[images]]",
        "[layers.own]\npurpose = \"p\"\nown = [\"ours\"]\n[[images]]\nsuffix = \"-all\"\ntitle = \"t\"\nlayers = [\"more\"]\nbudget_mb = 1\n[[images]]",
    );
    let images = read_catalog(&lacking, CpuArchitecture::X86_64).expect("images");
    let (pool, out) = (PackageCache::in_directory(&place.path("pool")), place.path("lacking"));
    let own = LocalPackages::in_directory(&place.path("debs"), "amd64").expect("packages");
    let mut workshop = ImageBuilder::new(&images, &place.lock, &pool, &own, &out);
    let error = workshop.build_image(
        images.select_images(&["small".into()]).expect("an image")[0],
        &out,
        false,
        &|_| (),
    );
    let error = error.err().expect("a refusal").to_string();
    assert!(error.contains("`ours` depends on `more`, which no layer of the image `small` has"), "{error}");
    assert!(!out.exists());
}

#[test]
fn our_own_images_have_no_compiler_no_editor_and_nothing_that_makes_somebody_root() {
    let unwanted = [
        "apt",
        "binutils",
        "cpp",
        "dpkg",
        "ed",
        "emacs",
        "gcc",
        "g++",
        "login",
        "make",
        "mount",
        "nano",
        "passwd",
        "perl",
        "perl-base",
        "sudo",
        "util-linux",
        "vim",
        "vim-tiny",
    ];
    for ImageSources { images, lock } in ImageSources::of_all_architectures().expect("our own images") {
        let runs = |layer: &String| images.find_layer(layer).expect("a layer").kind == ImageKind::Prod;
        for package in lock.packages.iter().filter(|package| package.layers.iter().any(runs)) {
            let name = package
                .name
                .trim_end_matches(|last: char| last.is_ascii_digit() || last == '-' || last == '.');
            assert!(!unwanted.contains(&name), "{}", package.name);
        }
        let of_slim: Vec<&str> =
            locked_packages_of(&lock, &images, "slim").map(|package| &*package.name).collect();
        assert_eq!(of_slim, ["base-files", "gcc-14-base", "libc6", "libgcc-s1"]);
    }
}

/// Our own images for x86-64.
fn own_images() -> ImageSources {
    ImageSources::of_oarlock(CpuArchitecture::X86_64).expect("our own images")
}

#[test]
fn what_runs_on_both_architectures_has_an_image_for_each() {
    let sources = ImageSources::of_oarlock(CpuArchitecture::Aarch64).expect("our own images");
    let labels: Vec<&str> = sources.images.images.iter().map(|image| image.label()).collect();
    assert_eq!(labels, ["plain", "slim", "notebook"]);
    // Debian's packages in both images differ in nothing but those that one processor needs.
    let names = |sources: &ImageSources| -> Vec<String> {
        let packages = locked_packages_of(&sources.lock, &sources.images, "notebook");
        packages.map(|package| package.name.clone()).collect()
    };
    assert_eq!(names(&sources), names(&own_images()));
}

/// The Debian packages of an image.
fn locked_packages_of<'l>(
    lock: &'l DebianLock,
    images: &ImageCatalog,
    image: &str,
) -> impl Iterator<Item = &'l LockedPackage> {
    lock.packages_of_images(&images.select_images(&[image.to_owned()]).expect("an image")).into_iter()
}

#[test]
fn what_is_not_free_is_in_the_images_for_cuda_alone() {
    let ImageSources { images, lock } = own_images();
    for image in &images.images {
        let packages = locked_packages_of(&lock, &images, image.label());
        // Security updates have a pool of their own.
        let is_free =
            |path: &str| ["pool/main/", "pool/updates/main/"].iter().any(|pool| path.starts_with(pool));
        let found: Vec<&str> =
            packages.filter(|package| !is_free(&package.path)).map(|it| &*it.name).collect();
        let wanted: &[&str] = match image.label() {
            "gpu-cuda12" | "gpu-cuda12-noavx" => &["libcublaslt12", "libnvrtc-builtins12.4", "libnvrtc12"],
            _ => &[],
        };
        assert_eq!(found, wanted, "{}", image.label());
    }
}

#[test]
fn our_own_images_to_build_with_have_compilers_and_neither_editors_nor_toolkits_for_gpus() {
    let ImageSources { images, lock } = own_images();
    let of_dev: Vec<&str> = locked_packages_of(&lock, &images, "dev").map(|package| &*package.name).collect();
    for wanted in [
        "apt",
        "cargo",
        "clang-18",
        "dpkg",
        "g++",
        "git",
        "openssh-server",
        "python3-dev",
        "rustc",
        "rustfmt",
    ] {
        assert!(of_dev.contains(&wanted), "{wanted}");
    }
    let is_unwanted = |name: &&&str| {
        ["ed", "emacs", "nano", "sudo", "vim"].iter().any(|it| name.split('-').next() == Some(it))
            || ["cuda", "nvidia", "libcu", "hip", "rocm"]
                .iter()
                .any(|it| name.starts_with(it) && !name.starts_with("libcurl"))
    };
    assert_eq!(of_dev.iter().find(is_unwanted), None);
    let of_backports: Vec<&str> =
        lock.packages.iter().filter(|it| it.suite == "trixie-backports").map(|it| it.name.as_str()).collect();
    assert!(of_backports.iter().all(|name| name.contains("rust") || *name == "cargo"), "{of_backports:?}");
}

#[test]
fn a_dev_image_keeps_documentation_and_has_no_health_check() {
    let place = ImageFixture::new();
    let images = IMAGE_CATALOG
        .replace(
            "[layers.more]\n",
            "[layers.more]\nkind = \"dev\"\nentry = true\nlinks = { \"usr/lib/link.so\" = \"more.so\" }\n",
        )
        .replace("[layers.base]\n", "[layers.base]\nkind = \"dev\"\n")
        .replace("own = [\"ours\"]\n", "")
        .replace("budget_mb = 1", "budget_mb = 1\nenvironment = { GPU = \"OFF\" }");
    let finished = place.build_first_image(&images, &place.path("out")).expect("an image");
    // Without packages of ours, the image has the version of this crate.
    assert_eq!(finished.name.to_string(), format!("example:{}-small", env!("CARGO_PKG_VERSION")));
    let text = std::fs::read_to_string(finished.dockerfile.expect("a directory").join("Dockerfile"))
        .expect("a file");
    assert!(text.contains("GPU=\"OFF\"") && !text.contains("HEALTHCHECK"), "{text}");
    let archive = FileTree::from_tar(&std::fs::read(&finished.file).expect("a file")).expect("an archive");
    let layers = archive.files().filter(|(_, bytes)| bytes.starts_with(&[0x1f, 0x8b]));
    let layers = layers.map(|(_, bytes)| {
        let mut unpacked = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(bytes), &mut unpacked).expect("a layer");
        FileTree::from_tar(&unpacked).expect("an archive")
    });
    let paths: Vec<String> = layers
        .flat_map(|layer| layer.entries().map(|(path, _)| path.to_owned()).collect::<Vec<_>>())
        .collect();
    for path in ["usr/share/man/base.1", "usr/bin/oarlock-dev", "usr/lib/link.so", "oarlock"] {
        assert!(paths.iter().any(|it| it == path), "{path}");
    }
}

#[test]
fn our_own_image_with_python_is_the_same_bytes_twice() {
    let pool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/pack/pool");
    let pool = PackageCache::with_mirror(&pool, DebianMirror::of_machine());
    let lock = own_images().lock;
    let place = ImageFixture::new();
    // A test package in place of each of ours.
    let text: String =
        images::OWN_IMAGES
            .lines()
            .map(|line| {
                if line.starts_with("own = ") { "own = [\"ours\"]\n".to_owned() } else { format!("{line}\n") }
            })
            .collect();
    let images = read_catalog(&text, CpuArchitecture::X86_64).expect("images");
    let plain = images.select_images(&["plain".into()]).expect("an image")[0];
    let file = place.path("debs/ours_1.0-1_amd64.deb");
    let mut ours = DebPackage::read_file(&file).expect("a package");
    ours.control.set("Depends", "python3");
    std::fs::write(&file, ours.to_bytes(1).expect("a package")).expect("a file");
    let make = |out: &str| {
        let own = LocalPackages::in_directory(&place.path("debs"), "amd64").expect("packages");
        let out = place.path(out);
        let mut workshop = ImageBuilder::new(&images, &lock, &pool, &own, &out);
        let finished = workshop.build_image(plain, &out, false, &|_| ()).expect("an image");
        std::fs::read(finished.file).expect("a file")
    };
    assert!(make("one") == make("a/second/place"));
}

fn run_command(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_oarlock-pack"));
    command.arg("image").args(arguments).current_dir(directory).output().expect("oarlock-pack")
}

#[test]
fn the_command_says_what_is_wrong_before_it_begins() {
    let place = tempfile::tempdir().expect("a directory");
    for (arguments, expected) in [
        (&["fat"][..], "expected one of `plain`, `slim`"),
        (&["slim"], "`dist/deb`: expected the packages `oarlock`, `oarlock-plugin-cpu`"),
        (&[], "`dist/deb`: expected the packages of an image, found those of none"),
        (
            &["slim", "--architecture", "arm64"],
            "`dist/deb`: expected the packages `oarlock`, `oarlock-plugin-cpu` of the image `slim`",
        ),
        (&["noavx", "--architecture", "arm64"], "expected one of `plain`, `slim`, `notebook`; found `noavx`"),
        (&["--architecture", "armhf"], "expected an architecture, one of amd64, arm64; found `armhf`"),
        (&["--engine", "--architecture=amd64", "--architecture=arm64"], "expected one `--architecture`"),
        (&["--name", "Oarlock"], "expected the name of an image of lower-case letters"),
        (&["lock", "--mirror", "ftp://example.org"], "begins with `http://`, found `ftp://example.org`"),
    ] {
        let output = run_command(arguments, place.path());
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(expected), "{arguments:?}: {message}");
        assert!(file_names(place.path()).is_empty(), "{arguments:?}");
    }
    let listed = run_command(&["--list", "--json"], place.path());
    assert!(listed.status.success());
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed[1]["image"], "slim");
    assert_eq!(listed[1]["missing"][0], "oarlock");
    let of_slim = listed.as_array().expect("a list").iter().filter(|image| image["image"] == "slim");
    let architectures: Vec<&serde_json::Value> = of_slim.map(|image| &image["architecture"]).collect();
    assert_eq!(architectures, ["amd64", "arm64"]);
}
