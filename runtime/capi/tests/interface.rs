//! Checks that the committed `oarlock.h` and `abi.lock` match the types that Rust compiles.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use oarlock_capi::{codegen, interface};

fn crate_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares a file with its expected contents, or rewrites it.
fn check_generated_file(name: &str, expected: &str) {
    let file = crate_file(name);
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        fs::write(&file, expected).expect("the file can be written");
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == expected,
        "`{name}` is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-capi`"
    );
}

#[test]
fn the_header_says_what_the_library_does() {
    check_generated_file("include/oarlock.h", &codegen::render_header());
}

#[test]
fn the_lock_has_lost_nothing_and_lacks_nothing() {
    let (old, new) =
        (fs::read_to_string(crate_file("abi.lock")).unwrap_or_default(), codegen::render_abi_lock());
    let kept: HashSet<&str> = new.lines().collect();
    let lost: Vec<&str> = old.lines().filter(|line| !line.starts_with('#') && !kept.contains(line)).collect();
    assert!(lost.is_empty(), "programs rely on these lines, which would be lost: {lost:#?}");
    check_generated_file("abi.lock", &new);
}

#[test]
fn a_struct_that_grows_begins_with_its_size() {
    for structure in interface::structures().iter().filter(|structure| structure.grows) {
        let first = &structure.fields[0];
        assert_eq!((first.declared.name, first.offset, first.size), ("size", 0, 8), "{}", structure.name);
    }
}

#[test]
fn every_name_is_unique_and_has_the_prefix() {
    let mut seen = HashSet::new();
    let functions = codegen::list_functions().into_iter().map(|function| function.name.to_owned());
    let types = interface::opaques().into_iter().map(|opaque| opaque.name);
    let types = types.chain(interface::enumerations().into_iter().map(|it| it.name));
    let types = types.chain(interface::callbacks().into_iter().map(|it| it.name));
    let types = types.chain(interface::structures().into_iter().map(|it| it.name));
    for name in functions.chain(types) {
        assert!(name.starts_with("oarlock_"), "{name}");
        assert!(seen.insert(name.clone()), "{name} is there twice");
    }
}

#[test]
fn whatever_is_made_can_be_freed() {
    let functions = codegen::list_functions();
    let names: HashSet<&str> = functions.iter().map(|function| function.name).collect();
    for function in &functions {
        for parameter in &function.parameters {
            let Some(result) = parameter.kind.strip_suffix(" **") else { continue };
            if !result.starts_with("const ") {
                assert!(names.contains(format!("{result}_free").as_str()), "{}: {result}", function.name);
            }
        }
    }
}
