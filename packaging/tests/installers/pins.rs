//! Installs each wheel of our matrix by its exact version, and the core without a version.

use std::path::Path;

use oarlock_matrix::{CpuArchitecture, MatrixRow};

use crate::served_index::{ServedIndex, VERSION, buildable_rows, pinned_requirement};
use crate::tools::{PythonEnvironment, PythonInstaller, newest_pip, pip_versions, wheel_file_names};

/// Installer arguments for a wheel: the index, and the page of the wheel if it has a separate one.
fn index_arguments(served: &ServedIndex, row: &MatrixRow) -> Vec<String> {
    let mut sources = vec!["--index-url".to_owned(), served.simple_address()];
    if !row.directory.is_empty() {
        sources.extend(["--find-links".to_owned(), served.page_address(&row.directory)]);
    }
    sources
}

/// The rows that the Python of the tests can install.
fn installable_rows() -> Vec<MatrixRow> {
    let is_installable = |row: &MatrixRow| {
        row.name.python != "cp314-cp314t" && row.architecture() == Some(CpuArchitecture::X86_64)
    };
    buildable_rows().into_iter().filter(is_installable).collect()
}

/// Asserts that a directory contains exactly one wheel, byte for byte, and removes it.
fn assert_holds_only(directory: &Path, served: &ServedIndex, name: &str) {
    let entries = std::fs::read_dir(directory).expect("what was downloaded");
    let found: Vec<String> =
        entries.map(|it| it.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, [name]);
    let read = |path: &Path| std::fs::read(path).expect("a wheel");
    assert!(read(&directory.join(name)) == read(&served.built_wheel_path(name)), "{name}");
    std::fs::remove_dir_all(directory).expect("a directory");
}

fn assert_downloads_pin(
    installer: &PythonInstaller,
    environment: &PythonEnvironment,
    row: &MatrixRow,
    sources: &[String],
    served: &ServedIndex,
) {
    let requirement = pinned_requirement(row);
    let mut arguments = vec!["download", "--only-binary=:all:", "--no-deps", "--dest", "got", &requirement];
    arguments.extend(sources.iter().map(String::as_str));
    environment.run_successfully(installer, &arguments);
    assert_holds_only(&environment.path().join("got"), served, &row.name.to_string());
}

pub(crate) fn pip_downloads_the_wheel_of_each_pin() {
    let (served, environment) = (ServedIndex::own_matrix(), PythonEnvironment::new());
    for row in installable_rows() {
        for pip in pip_versions() {
            assert_downloads_pin(&pip, &environment, &row, &index_arguments(&served, &row), &served);
        }
    }
    // Every version of pip reads JSON; a wheel with a separate page is on no other page.
    assert!(
        served.request_log().contains("GET /simple/oarlock/ 200")
            && served.request_log().contains("GET /cpu-mkl/ 200")
    );
}

pub(crate) fn pip_downloads_from_the_pages_without_a_server() {
    let (served, environment) = (ServedIndex::own_matrix(), PythonEnvironment::new());
    for row in installable_rows().iter().filter(|row| row.directory.is_empty()) {
        let sources = ["--index-url".to_owned(), served.simple_file_address()];
        for pip in pip_versions() {
            assert_downloads_pin(&pip, &environment, row, &sources, &served);
        }
    }
    assert_eq!(served.request_log(), "");
}

pub(crate) fn uv_installs_the_wheel_of_each_pin_and_nothing_else() {
    let served = ServedIndex::own_matrix();
    for row in installable_rows() {
        assert_installs_row(&PythonInstaller::Uv, &served, &row);
    }
}

pub(crate) fn pip_installs_the_wheel_of_each_pin_and_nothing_else() {
    let served = ServedIndex::own_matrix();
    for row in installable_rows() {
        assert_installs_row(&newest_pip(), &served, &row);
    }
}

/// Asserts that a wheel is installed into a new environment with exactly its files.
fn assert_installs_row(installer: &PythonInstaller, served: &ServedIndex, row: &MatrixRow) {
    let environment = PythonEnvironment::new();
    let (requirement, sources) = (pinned_requirement(row), index_arguments(served, row));
    let mut arguments = vec![requirement.as_str()];
    arguments.extend(sources.iter().map(String::as_str));
    environment.install_requirements(installer, &arguments);
    let wheel = wheel_file_names(&served.built_wheel_path(&row.name.to_string()));
    assert_eq!(environment.installed_files(), wheel, "{requirement}");
}

pub(crate) fn a_python_without_a_lock_gets_the_wheel_that_is_built_for_it() {
    let (served, environment) = (ServedIndex::own_matrix(), PythonEnvironment::new());
    let index = served.simple_address();
    let requirement = format!("oarlock=={VERSION}");
    for (abi, name) in [("cp314t", "cp314-cp314t"), ("abi3", "cp311-abi3")] {
        let message = ["--python-version", "3.14", "--implementation", "cp", "--abi", abi];
        let from = ["--platform", "manylinux_2_28_x86_64", "--index-url", &index, &requirement];
        let how = ["download", "--only-binary=:all:", "--no-deps", "--dest", "got"];
        environment.run_successfully(&newest_pip(), &[&how[..], &message, &from].concat());
        let name = format!("oarlock-{VERSION}-{name}-manylinux_2_28_x86_64.whl");
        assert_holds_only(&environment.path().join("got"), &served, &name);
    }
    let old = ["--python-version", "3.10", "--implementation", "cp", "--platform", "manylinux_2_28_x86_64"];
    let from = ["download", "--only-binary=:all:", "--no-deps", "--index-url", &index, &requirement];
    let message = environment.run_to_failure(&newest_pip(), &[&from[..], &old].concat());
    assert!(message.contains("No matching distribution found for oarlock"), "{message}");
}

pub(crate) fn who_names_no_version_gets_the_plain_core() {
    let served = ServedIndex::own_matrix();
    let index = served.simple_address();
    let plain = wheel_file_names(&served.built_wheel_path(&buildable_rows()[0].name.to_string()));
    for installer in pip_versions().iter().chain([&PythonInstaller::Uv]) {
        // The public version alone also matches local versions, so it is no safer than no version.
        for requirement in ["oarlock".to_owned(), format!("oarlock=={VERSION}")] {
            let environment = PythonEnvironment::new();
            environment.install_requirements(installer, &["--index-url", &index, &requirement]);
            assert_eq!(environment.installed_files(), plain, "{installer:?} {requirement}");
        }
    }
}

pub(crate) fn a_local_version_beside_the_plain_one_would_be_preferred() {
    // The reason why they are on pages of their own.
    let served = ServedIndex::own_matrix();
    let (index, page) = (served.simple_address(), served.page_address("/noavx"));
    for installer in [newest_pip(), PythonInstaller::Uv] {
        let environment = PythonEnvironment::new();
        environment
            .install_requirements(&installer, &["--index-url", &index, "--find-links", &page, "oarlock"]);
        let without = format!("oarlock-{VERSION}+noavx.dist-info/METADATA");
        assert!(environment.installed_files().contains(&without), "{:?}", environment.installed_files());
    }
}

pub(crate) fn what_a_wheel_needs_is_known_without_fetching_it() {
    let served = ServedIndex::own_matrix();
    let environment = PythonEnvironment::new();
    let index = served.simple_address();
    std::fs::write(environment.path().join("wanted"), "oarlock-cuda12\noarlock\n").expect("a file");
    let compiled = environment
        .run_successfully(&PythonInstaller::Uv, &["pip", "compile", "--index-url", &index, "wanted"]);
    assert!(compiled.contains(&format!("oarlock-cuda12=={VERSION}")), "{compiled}");
    environment.install_requirements(
        &newest_pip(),
        &["--dry-run", "--index-url", &index, "oarlock", "oarlock-cuda12"],
    );
    let log = served.request_log();
    assert!(log.contains(".whl.metadata 200"), "{log}");
    assert!(!log.contains(".whl 200") && !log.contains(".whl 206"), "{log}");
}

pub(crate) fn a_wheel_that_was_changed_is_refused() {
    let (served, environment) = (ServedIndex::own_matrix(), PythonEnvironment::new());
    let name = buildable_rows()[0].name.to_string();
    let mut bytes = std::fs::read(served.served_wheel_path(&name)).expect("a wheel");
    *bytes.last_mut().expect("a wheel that is not empty") ^= 1;
    std::fs::remove_file(served.served_wheel_path(&name)).expect("a file");
    std::fs::write(served.served_wheel_path(&name), bytes).expect("a file");
    for pip in pip_versions() {
        let message = environment
            .run_to_failure(&pip, &["install", "--index-url", &served.simple_address(), "oarlock"]);
        assert!(message.contains("DO NOT MATCH THE HASHES"), "{message}");
    }
    assert!(environment.installed_files().is_empty());
}
