//! Each wheel of our own matrix by its exact version, and the core for who names none.

use std::path::Path;

use oarlock_pack::matrix::Wheel as Row;

use crate::serving::{Served, VERSION, requirement, rows};
use crate::tools::{Environment, Installer, contents, pip, pips};

/// What an installer is told for a wheel: the index, and the page of the wheel where it is on one of its own.
fn sources(served: &Served, row: &Row) -> Vec<String> {
    let mut sources = vec!["--index-url".to_owned(), served.simple()];
    if !row.directory.is_empty() {
        sources.extend(["--find-links".to_owned(), served.page(&row.directory)]);
    }
    sources
}

/// Those that the Python of the tests can install.
fn installable() -> Vec<Row> {
    let rows = rows().into_iter().filter(|row| row.name.python != "cp314-cp314t");
    rows.collect()
}

/// That a directory holds one wheel, byte for byte as it was made; takes it away.
fn holds_just(directory: &Path, served: &Served, name: &str) {
    let entries = std::fs::read_dir(directory).expect("what was downloaded");
    let found: Vec<String> =
        entries.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, [name]);
    let read = |path: &Path| std::fs::read(path).expect("a wheel");
    assert!(read(&directory.join(name)) == read(&served.made(name)), "{name}");
    std::fs::remove_dir_all(directory).expect("a directory");
}

fn downloads(
    installer: &Installer,
    environment: &Environment,
    row: &Row,
    sources: &[String],
    served: &Served,
) {
    let requirement = requirement(row);
    let mut arguments = vec!["download", "--only-binary=:all:", "--no-deps", "--dest", "got", &requirement];
    arguments.extend(sources.iter().map(String::as_str));
    environment.succeeds(installer, &arguments);
    holds_just(&environment.path().join("got"), served, &row.name.to_string());
}

pub(crate) fn pip_downloads_the_wheel_of_each_pin() {
    let (served, environment) = (Served::matrix(), Environment::new());
    for row in installable() {
        for pip in pips() {
            downloads(&pip, &environment, &row, &sources(&served, &row), &served);
        }
    }
    // Every version of pip reads the JSON; what lies on a page of its own is on no other.
    assert!(served.log().contains("GET /simple/oarlock/ 200") && served.log().contains("GET /cpu-mkl/ 200"));
}

pub(crate) fn pip_downloads_from_the_pages_without_a_server() {
    let (served, environment) = (Served::matrix(), Environment::new());
    for row in installable().iter().filter(|row| row.directory.is_empty()) {
        let sources = ["--index-url".to_owned(), served.simple_as_files()];
        for pip in pips() {
            downloads(&pip, &environment, row, &sources, &served);
        }
    }
    assert_eq!(served.log(), "");
}

pub(crate) fn uv_installs_the_wheel_of_each_pin_and_nothing_else() {
    let served = Served::matrix();
    for row in installable() {
        installs(&Installer::Uv, &served, &row);
    }
}

pub(crate) fn pip_installs_the_wheel_of_each_pin_and_nothing_else() {
    let served = Served::matrix();
    for row in installable() {
        installs(&pip(), &served, &row);
    }
}

/// That a wheel arrives in a fresh environment with all its files and no others.
fn installs(installer: &Installer, served: &Served, row: &Row) {
    let environment = Environment::new();
    let (requirement, sources) = (requirement(row), sources(served, row));
    let mut arguments = vec![requirement.as_str()];
    arguments.extend(sources.iter().map(String::as_str));
    environment.installs(installer, &arguments);
    let wheel = contents(&served.made(&row.name.to_string()));
    assert_eq!(environment.installed(), wheel, "{requirement}");
}

pub(crate) fn a_python_without_a_lock_gets_the_wheel_that_is_built_for_it() {
    let (served, environment) = (Served::matrix(), Environment::new());
    let index = served.simple();
    let requirement = format!("oarlock=={VERSION}");
    for (abi, name) in [("cp314t", "cp314-cp314t"), ("abi3", "cp311-abi3")] {
        let said = ["--python-version", "3.14", "--implementation", "cp", "--abi", abi];
        let from = ["--platform", "manylinux_2_28_x86_64", "--index-url", &index, &requirement];
        let how = ["download", "--only-binary=:all:", "--no-deps", "--dest", "got"];
        environment.succeeds(&pip(), &[&how[..], &said, &from].concat());
        let name = format!("oarlock-{VERSION}-{name}-manylinux_2_28_x86_64.whl");
        holds_just(&environment.path().join("got"), &served, &name);
    }
    let old = ["--python-version", "3.10", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64"];
    let from = ["download", "--only-binary=:all:", "--no-deps", "--index-url", &index, &requirement];
    let said = environment.fails(&pip(), &[&from[..], &old].concat());
    assert!(said.contains("No matching distribution found for oarlock"), "{said}");
}

pub(crate) fn who_names_no_version_gets_the_plain_core() {
    let served = Served::matrix();
    let index = served.simple();
    let plain = contents(&served.made(&rows()[0].name.to_string()));
    for installer in pips().iter().chain([&Installer::Uv]) {
        // The public version alone stands for its local ones too, so it is no safer than none.
        for requirement in ["oarlock".to_owned(), format!("oarlock=={VERSION}")] {
            let environment = Environment::new();
            environment.installs(installer, &["--index-url", &index, &requirement]);
            assert_eq!(environment.installed(), plain, "{installer:?} {requirement}");
        }
    }
}

pub(crate) fn a_local_version_beside_the_plain_one_would_be_preferred() {
    // Why they are on pages of their own.
    let served = Served::matrix();
    let (index, page) = (served.simple(), served.page("/noavx"));
    for installer in [pip(), Installer::Uv] {
        let environment = Environment::new();
        environment.installs(&installer, &["--index-url", &index, "--find-links", &page, "oarlock"]);
        let without = format!("oarlock-{VERSION}+noavx.dist-info/METADATA");
        assert!(environment.installed().contains(&without), "{:?}", environment.installed());
    }
}

pub(crate) fn what_a_wheel_needs_is_known_without_fetching_it() {
    let served = Served::matrix();
    let environment = Environment::new();
    let index = served.simple();
    std::fs::write(environment.path().join("wanted"), "oarlock-cuda12\noarlock\n").expect("a file");
    let compiled = environment.succeeds(&Installer::Uv, &["pip", "compile", "--index-url", &index, "wanted"]);
    assert!(compiled.contains(&format!("oarlock-cuda12=={VERSION}")), "{compiled}");
    environment.installs(&pip(), &["--dry-run", "--index-url", &index, "oarlock", "oarlock-cuda12"]);
    let log = served.log();
    assert!(log.contains(".whl.metadata 200"), "{log}");
    assert!(!log.contains(".whl 200") && !log.contains(".whl 206"), "{log}");
}

pub(crate) fn a_wheel_that_was_changed_is_refused() {
    let (served, environment) = (Served::matrix(), Environment::new());
    let name = rows()[0].name.to_string();
    let mut bytes = std::fs::read(served.served(&name)).expect("a wheel");
    *bytes.last_mut().expect("a wheel that is not empty") ^= 1;
    std::fs::remove_file(served.served(&name)).expect("a file");
    std::fs::write(served.served(&name), bytes).expect("a file");
    for pip in pips() {
        let said = environment.fails(&pip, &["install", "--index-url", &served.simple(), "oarlock"]);
        assert!(said.contains("DO NOT MATCH THE HASHES"), "{said}");
    }
    assert!(environment.installed().is_empty());
}
