//! `oarlock plugin new`, `plugin pack` and `plugin index`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::user::TestUser;

/// Makes a plugin and returns its directory.
fn make_plugin(user: &TestUser, name: &str, language: &str, kind: &str) -> PathBuf {
    let made = user.run_command(&[
        "plugin",
        "new",
        name,
        "--lang",
        language,
        "--kind",
        kind,
        "--vendor",
        "Acme & Sons",
    ]);
    assert_eq!(made.status, 0, "{}", made.err);
    user.home.path().join(name)
}

/// Runs a program in a directory.
fn run_in(directory: &Path, program: &str, arguments: &[&str]) {
    let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-new");
    let mut command = Command::new(program);
    // One directory for the crates of the SDK, so that they are built once.
    command
        .args(arguments)
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", shared)
        .env("CFLAGS", "-O0 -Werror");
    let output = command.env("CXXFLAGS", "-O0 -Werror").output().expect("the program is installed");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn check_plugin(user: &TestUser, library: &Path) {
    let check = user.run_command(&["plugin", "check", &library.to_string_lossy()]);
    assert_eq!(check.status, 0, "{}{}", check.out, check.err);
}

#[test]
fn every_plugin_in_c_and_cpp_builds_with_one_command_and_passes_the_check() {
    for language in ["c", "cpp"] {
        for kind in ["device", "kernels", "layer", "graph"] {
            let user = TestUser::new();
            let directory = make_plugin(&user, "acme-x1", language, kind);
            run_in(&directory, "make", &[]);
            check_plugin(&user, &directory.join("build/libacme_x1.so"));
        }
    }
}

#[test]
fn every_plugin_in_rust_builds_with_one_command_and_passes_the_check() {
    for kind in ["device", "kernels", "layer"] {
        let user = TestUser::new();
        let directory = make_plugin(&user, &format!("acme-{kind}"), "rust", kind);
        run_in(&directory, env!("CARGO"), &["build", "--offline", "--quiet"]);
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugin-new");
        let library = user.home.path().join("plugin.so");
        fs::copy(shared.join(format!("debug/libacme_{kind}.so")), &library).expect("a plugin");
        check_plugin(&user, &library);
    }
}

#[test]
fn a_new_device_computes() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "device");
    run_in(&directory, "make", &[]);
    let library = directory.join("build/libacme_x1.so").to_string_lossy().into_owned();
    let run = |op: &[&str]| {
        let outcome = user.run_command(&[&["--plugin", &library, "op"], op, &["-d", "AcmeX1"]].concat());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        outcome.out
    };
    let product = run(&["MatMul", "f32:[[1,2],[3,4]]", "f32:[[1,2],[3,4]]"]);
    assert!(product.contains("[[ 7.0, 10.0],\n [15.0, 22.0]]"), "{product}");
    let difference = run(&["Sub", "f32:[1,2]", "f32:[[1],[2]]"]);
    assert!(difference.contains("[[ 0.0,  1.0],\n [-1.0,  0.0]]"), "{difference}");
    let shares = run(&["Softmax", "f32:[[0,0],[1,1]]"]);
    assert!(shares.contains("[[0.5, 0.5],\n [0.5, 0.5]]"), "{shares}");
}

#[test]
fn what_exists_is_not_overwritten_and_wrong_wishes_make_nothing() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "device");
    fs::write(directory.join("src/plugin.c"), "mine").expect("a file");
    let again = user.run_command(&["plugin", "new", "acme-x1"]);
    assert_eq!(again.status, 1);
    assert!(again.err.contains("expected an empty directory or none, found files in it"), "{}", again.err);
    assert_eq!(fs::read_to_string(directory.join("src/plugin.c")).expect("a file"), "mine");
    for (arguments, expected) in [
        (&["Acme"][..], "lower-case letters"),
        (&["class"], "no word of C, C++ or Rust"),
        (&["x1", "--device-type", "cpu"], "Oarlock has a device `cpu`"),
        (&["x1", "--vendor", "a\"b"], "the name of a vendor"),
        (&["x1", "--lang", "rust", "--kind", "graph"], "take the language `c` or `cpp`"),
        (&["x1", "--kind", "layer", "--device-type", "X"], "which has no device"),
        (&["x1", "--sdk", "."], "expected no `--sdk`"),
        (&["x1", "--lang", "rust", "--sdk", "acme-x1"], "no `Cargo.toml` in it"),
    ] {
        let refused = user.run_command(&[&["plugin", "new"], arguments].concat());
        assert_ne!(refused.status, 0, "{arguments:?}");
        assert!(refused.err.contains(expected), "{arguments:?}: {}", refused.err);
        assert!(!user.home.path().join("x1").exists(), "{arguments:?}");
    }
}

#[test]
fn an_empty_directory_may_be_there_already() {
    let user = TestUser::new();
    fs::create_dir(user.home.path().join("mine")).expect("a directory");
    let made = user.run_command(&["plugin", "new", "acme-x1", "--directory", "mine", "--json"]).parse_json();
    assert_eq!((&made["library"], &made["build"]), (&"build/libacme_x1.so".into(), &"make".into()));
    for file in made["files"].as_array().expect("a list") {
        assert!(user.home.path().join("mine").join(file.as_str().expect("a path")).is_file(), "{file}");
    }
    let names = fs::read_dir(user.home.path()).expect("the home").flatten().map(|entry| entry.file_name());
    assert!(names.map(|name| name.to_string_lossy().into_owned()).all(|name| !name.ends_with(".new")));
}

#[test]
fn the_list_names_every_template() {
    let user = TestUser::new();
    let list = user.run_command(&["plugin", "new", "--list", "--json"]).parse_json();
    let languages = |kind: usize| list[kind]["languages"].to_string();
    assert_eq!((list[0]["kind"].as_str(), languages(0).as_str()), (Some("device"), r#"["c","cpp","rust"]"#));
    assert_eq!((list[3]["kind"].as_str(), languages(3).as_str()), (Some("graph"), r#"["c","cpp"]"#));
}

#[test]
fn the_packages_of_a_plugin_are_the_same_twice_and_are_listed() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "kernels");
    run_in(&directory, "make", &[]);
    let pack = |target: &str| {
        let outcome = user.run_command(&["plugin", "pack", "acme-x1", "-o", target, "--json"]);
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        outcome.parse_json()
    };
    let (first, second) = (pack("one"), pack("two"));
    let packages = first["packages"].as_array().expect("a list");
    assert_eq!(packages.len(), 2);
    for (one, two) in packages.iter().zip(second["packages"].as_array().expect("a list")) {
        assert_eq!(one["sha256"], two["sha256"]);
    }
    let index = user.run_command(&["plugin", "index", "one", "--output", "page.html", "--json"]).parse_json();
    let files = index["files"].as_array().expect("a list");
    assert_eq!(files.len(), 2, "{index}");
    for file in files {
        assert_eq!(file["manifest"]["name"], "acme-x1");
        assert_eq!(file["manifest"]["kind"], "kernels");
        assert_eq!((&file["signed"], &file["support_level"]), (&false.into(), &"unspecified".into()));
    }
    let page = fs::read_to_string(user.home.path().join("page.html")).expect("a page");
    assert!(page.starts_with("<!doctype html>") && !page.contains("<script"), "{page}");
    for package in packages {
        assert!(page.contains(package["sha256"].as_str().expect("a hash")), "{page}");
    }
    // A file that is no package is named, and the others are listed all the same.
    fs::write(user.home.path().join("one/broken.whl"), "PK").expect("a file");
    let broken = user.run_command(&["plugin", "index", "one"]);
    assert!(broken.status == 1 && broken.err.contains("broken.whl`: expected a wheel"), "{}", broken.err);
    assert_eq!(broken.out.lines().count(), 2, "{}", broken.out);
}

#[test]
fn a_plugin_that_cannot_be_shipped_is_not_packed() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "kernels");
    let refused = user.run_command(&["plugin", "pack", "acme-x1"]);
    assert!(refused.status == 1 && refused.err.contains("build it first"), "{}", refused.err);
    run_in(&directory, "make", &["LDFLAGS=-Wl,-rpath,/opt/acme"]);
    let refused = user.run_command(&["plugin", "pack", "acme-x1"]);
    assert!(refused.status == 1 && refused.err.contains("`/opt/acme` (RUNPATH)"), "{}", refused.err);
    fs::remove_file(directory.join("LICENSE")).expect("a file");
    run_in(&directory, "make", &["-B"]);
    let refused = user.run_command(&["plugin", "pack", "acme-x1"]);
    assert!(refused.status == 1 && refused.err.contains("LICENSE"), "{}", refused.err);
    assert!(!directory.join("dist").exists());
    let refused = user.run_command(&["plugin", "pack", "."]);
    assert!(refused.status == 1 && refused.err.contains("expected the recipe"), "{}", refused.err);
}

#[test]
fn a_signature_of_another_manifest_is_not_shipped() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "kernels");
    run_in(&directory, "make", &[]);
    let signature = directory.join("build/libacme_x1.oarlock.sig");
    fs::write(&signature, "signature").expect("a file");
    let refused = user.run_command(&["plugin", "pack", "acme-x1"]);
    assert!(
        refused.status == 1 && refused.err.contains("sign it again with `--key FILE`"),
        "{}",
        refused.err
    );
    fs::remove_file(&signature).expect("a file");
    assert_eq!(user.run_command(&["plugin", "pack", "acme-x1"]).status, 0);
    fs::write(&signature, "signature").expect("a file");
    let refused = user.run_command(&["plugin", "pack", "acme-x1"]);
    assert!(
        refused.status == 1 && refused.err.contains("libacme_x1.oarlock.sig`: expected"),
        "{}",
        refused.err
    );
}

#[test]
fn a_packed_plugin_is_signed_with_the_key_that_is_named() {
    let user = TestUser::new();
    let directory = make_plugin(&user, "acme-x1", "c", "kernels");
    run_in(&directory, "make", &[]);
    assert_eq!(user.run_command(&["plugin", "key", "new", "acme"]).status, 0);
    let packed = user.run_command(&["plugin", "pack", "acme-x1", "--key", "acme.key", "--json"]);
    assert_eq!(packed.status, 0, "{}", packed.err);
    assert_eq!(packed.parse_json()["signed"], true);
    let library = "acme-x1/build/libacme_x1.so";
    let verified = user.run_command(&["plugin", "verify", library, "--key", "acme.pem"]);
    assert_eq!(verified.status, 0, "{}{}", verified.out, verified.err);
    // Another manifest is signed again.
    let manifest = directory.join("build/libacme_x1.oarlock.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(&manifest, text.replace("unloadable = false", "unloadable = true")).expect("a file");
    assert_eq!(user.run_command(&["plugin", "pack", "acme-x1", "--key", "acme.key"]).status, 0);
    assert_eq!(user.run_command(&["plugin", "verify", library, "--key", "acme.pem"]).status, 0);
}
