//! Generated tables in the tree match the matrix.

use std::path::Path;

use oarlock_matrix::generated_tables;

/// Compares a file of the tree with its expected text, or updates it.
fn assert_file_matches(path: &str, expected: impl Fn(&str) -> String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    let expected = expected(&found);
    if std::env::var_os("OARLOCK_WRITE").is_some() {
        std::fs::write(&file, &expected).expect("the file can be written");
    } else {
        assert!(
            found == expected,
            "`{path}` is stale; write it anew with `OARLOCK_WRITE=1 cargo test -p oarlock-pack`"
        );
    }
}

#[test]
fn the_script_has_the_rows_of_the_matrix() {
    assert_file_matches("scripts/install.sh", |old| {
        generated_tables::render_install_script(old, &super::own_matrix()).expect("a script with marks")
    });
    let error = generated_tables::render_install_script("#!/bin/sh\n", &super::own_matrix())
        .expect_err("no marks")
        .to_string();
    assert_eq!(error, "expected a line `# of packaging/matrix.toml {`, found none");
}

#[test]
fn the_package_knows_which_wheels_bring_devices() {
    assert_file_matches("runtime/python/python/oarlock/_wheels.py", |_| {
        generated_tables::render_python_module(&super::own_matrix())
    });
}
