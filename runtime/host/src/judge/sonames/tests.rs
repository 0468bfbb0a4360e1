//! Searches in directories with libraries from a real compiler.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::*;

/// Compiles an empty library; `arguments` are passed to the linker.
fn compile_library(path: &Path, arguments: &[&str]) {
    let source = path.with_extension("c");
    fs::write(&source, "int nothing;").unwrap();
    let soname = format!("-Wl,--no-as-needed,-soname,{}", path.file_name().unwrap().to_str().unwrap());
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-nostdlib", "-o"]).arg(path).arg(source).arg(soname).args(arguments);
    assert!(command.status().unwrap().success());
}

fn libraries_in(library_path: &[&Path]) -> LibrarySearch {
    LibrarySearch {
        library_path: library_path.iter().map(|path| path.to_path_buf()).collect(),
        cache: LdCache::default(),
        defaults: Vec::new(),
        loaded: OnceLock::new(),
    }
}

fn check_plugin(
    libraries: &LibrarySearch,
    plugin: &Path,
    requires: &[RequiredLibrary],
) -> Result<Vec<String>, Refusal> {
    let links = OpenLibrary::open_file(plugin).unwrap().links;
    let findings = libraries.find_libraries(plugin, &links, requires)?;
    findings.missing.map_or(Ok(findings.notes), Err)
}

fn make_requirement(soname: &str, version: Option<&str>) -> RequiredLibrary {
    RequiredLibrary {
        soname: soname.to_owned(),
        version: version.map(|range| range.parse().unwrap()),
        package: Some("foo-runtime".to_owned()),
        optional: false,
    }
}

#[test]
fn a_needed_library_is_found_by_every_way_the_linker_has_and_missed_without() {
    let root = tempfile::tempdir().unwrap();
    let library_directory = root.path().join("lib");
    fs::create_dir(&library_directory).unwrap();
    compile_library(&library_directory.join("libdep.so"), &[]);
    let search = format!("-L{}", library_directory.display());
    let link = |name: &str, extra: &str| {
        let plugin = root.path().join(name);
        compile_library(&plugin, &[&search, "-ldep", extra]);
        plugin
    };
    let plain = link("plain.so", "-Wl,-z,now");
    let refusal = check_plugin(&libraries_in(&[]), &plain, &[]).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::SonameMissing);
    assert!(refusal.to_string().contains("the library `libdep.so`"), "{refusal}");
    assert!(check_plugin(&libraries_in(&[&library_directory]), &plain, &[]).is_ok());
    let by_runpath = link("runpath.so", "-Wl,--enable-new-dtags,-rpath,$ORIGIN/lib");
    assert!(check_plugin(&libraries_in(&[]), &by_runpath, &[]).is_ok());
    let by_rpath = link("rpath.so", "-Wl,--disable-new-dtags,-rpath,/none:${ORIGIN}/lib");
    assert!(check_plugin(&libraries_in(&[]), &by_rpath, &[]).is_ok());
    fs::write(library_directory.join("libdep.so"), "not a library").unwrap();
    assert!(check_plugin(&libraries_in(&[]), &by_runpath, &[]).is_err());
}

#[test]
fn a_library_that_a_library_needs_is_looked_for_too() {
    let root = tempfile::tempdir().unwrap();
    let search = format!("-L{}", root.path().display());
    compile_library(&root.path().join("libinner.so"), &[]);
    compile_library(&root.path().join("libouter.so"), &[&search, "-linner"]);
    compile_library(&root.path().join("plugin.so"), &[&search, "-louter"]);
    let plugin = root.path().join("plugin.so");
    assert!(check_plugin(&libraries_in(&[root.path()]), &plugin, &[]).is_ok());
    fs::remove_file(root.path().join("libinner.so")).unwrap();
    let refusal = check_plugin(&libraries_in(&[root.path()]), &plugin, &[]).unwrap_err();
    assert!(refusal.expected.contains("`libinner.so`, which `"), "{refusal}");
    assert!(refusal.found.contains(&root.path().display().to_string()), "{refusal}");
}

#[test]
fn a_required_library_is_judged_by_the_version_of_its_real_file() {
    let root = tempfile::tempdir().unwrap();
    compile_library(&root.path().join("libfoo.so.12.3.1"), &[]);
    symlink("libfoo.so.12.3.1", root.path().join("libfoo.so.12")).unwrap();
    compile_library(&root.path().join("plugin.so"), &[]);
    let check = |row: RequiredLibrary| {
        check_plugin(&libraries_in(&[root.path()]), &root.path().join("plugin.so"), &[row])
    };
    assert_eq!(check(make_requirement("libfoo.so.12", Some(">=12.2"))), Ok(vec![]));
    let refusal = check(make_requirement("libfoo.so.12", Some(">=12.4"))).unwrap_err();
    assert!(
        refusal.to_string().contains("`libfoo.so.12` of version `>=12.4`, found version 12.3.1"),
        "{refusal}"
    );
    assert_eq!(refusal.remedy, "install or update the package `foo-runtime`");
    assert!(check(make_requirement("libbar.so.1", None)).is_err());
    let optional = RequiredLibrary { optional: true, ..make_requirement("libbar.so.1", None) };
    assert_eq!(check(optional).unwrap().len(), 1);
}

#[test]
fn only_libraries_that_the_plugin_finds_itself_are_its_own() {
    let root = tempfile::tempdir().unwrap();
    let system = tempfile::tempdir().unwrap();
    let search = format!("-L{}", root.path().display());
    for name in ["libinner.so", "libouter.so", "libsystem.so"] {
        let needed: &[&str] =
            if name == "libouter.so" { &[&search, "-linner", "-Wl,-rpath,$ORIGIN"] } else { &[] };
        compile_library(&root.path().join(name), needed);
    }
    let plugin = root.path().join("plugin.so");
    compile_library(&plugin, &[&search, "-louter", "-lsystem", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"]);
    fs::rename(root.path().join("libsystem.so"), system.path().join("libsystem.so")).unwrap();
    let links = OpenLibrary::open_file(&plugin).unwrap().links;
    let findings = libraries_in(&[system.path()]).find_libraries(&plugin, &links, &[]).unwrap();
    let names: Vec<_> = findings.of_plugin.iter().map(|file| file.path.file_name().unwrap()).collect();
    assert_eq!(names, ["libouter.so", "libinner.so"]);
    assert!(findings.of_plugin.iter().all(|file| file.origin == LibraryOrigin::Beside));
}

#[test]
fn the_libraries_of_this_very_program_are_found() {
    let environment = HostEnvironment::new(|_| None, false, crate::ProcessIdentity::of_process());
    let system = LibrarySearch::of_system(&environment);
    let program = std::env::current_exe().unwrap();
    let links = LinkedLibraries {
        needed: vec!["libc.so.6".to_owned(), "libm.so.6".to_owned()],
        ..LinkedLibraries::default()
    };
    let findings = system.find_libraries(&program, &links, &[]).unwrap();
    assert!(findings.notes.is_empty() && findings.of_plugin.is_empty() && findings.missing.is_none());
    assert!(system.loaded_libraries().iter().any(|name| name.starts_with("libc")));
}
