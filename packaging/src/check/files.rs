//! Checks the list of files in a wheel: exactly the files of its row.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::wheel_name::{WheelName, WheelVersion, normalize_distribution};
use oarlock_matrix::{MatrixRow, WheelMatrix};

use crate::assemble::{
    FLAVOR_FILE, LICENSE_FILE, plugin_directory, plugin_file_name, python_package, sbom_path,
    third_party_license_path,
};
use crate::build_plan::CORE_PART;
use pep440_rs::Version;

/// Checks that the `dist-info` directory has the name that the wheel's file name implies.
pub(super) fn check_dist_info(name: &WheelName, wheel: &Wheel) -> Result<(), Error> {
    let found = wheel.metadata_directory();
    let parts = found.strip_suffix(".dist-info").and_then(|it| it.split_once('-'));
    let is_it = parts.is_some_and(|(distribution, version)| {
        normalize_distribution(distribution) == name.distribution
            && match &name.version {
                WheelVersion::Valid(wanted) => Version::from_str(version).is_ok_and(|it| it == *wanted),
                WheelVersion::Word(word) => version == word,
            }
    });
    if is_it {
        return Ok(());
    }
    Err(Error::new(format!(
        "expected the directory `{}-{}.dist-info`, found `{found}`",
        name.distribution.replace('-', "_"),
        name.version
    )))
}

/// Checks that a wheel installs nothing into directories of other packages and can be imported.
pub(super) fn check_file_locations(row: &MatrixRow, wheel: &Wheel) -> Result<(), Error> {
    let package = format!("{}/", python_package(row));
    let information = wheel.metadata_path("");
    let is_foreign = |path: &&str| !path.starts_with(&package) && !path.starts_with(&information);
    if let Some(foreign) = wheel.paths().find(is_foreign) {
        return Err(Error::new(format!(
            "expected nothing beside `{package}` and `{information}`, found `{foreign}`"
        )));
    }
    wheel.file_bytes(&format!("{package}__init__.py")).map(drop)
}

/// Checks that a wheel of this release has every file of its row. The core's package may contain further Python files; nothing
/// else may be anywhere.
pub(super) fn check_release_files(matrix: &WheelMatrix, row: &MatrixRow, wheel: &Wheel) -> Result<(), Error> {
    let mut wanted: BTreeSet<String> = ["METADATA", "WHEEL"].map(|name| wheel.metadata_path(name)).into();
    let plugins = plugin_directory(row);
    let is_core = row.is_standalone();
    for (name, part) in row.parts.iter().filter_map(|name| Some((name, matrix.parts.get(name)?))) {
        for (file, kind) in [
            (LICENSE_FILE.to_owned(), "licenses/"),
            (third_party_license_path(&part.package), "licenses/"),
            (sbom_path(&part.package), ""),
        ] {
            wanted.insert(wheel.metadata_path(&format!("{kind}{file}")));
        }
        if name != CORE_PART {
            let library = format!("{plugins}/{}", plugin_file_name(&part.package));
            wanted.insert(library.replace(".so", ".oarlock.toml"));
            wanted.insert(library);
        }
    }
    let entry_points = wheel.metadata_path("entry_points.txt");
    if is_core {
        wanted.insert(FLAVOR_FILE.to_owned());
    } else {
        wanted.insert(format!("{plugins}/__init__.py"));
        wanted.insert(entry_points.clone());
    }
    for path in &wanted {
        if wheel.file_bytes(path)?.is_empty() {
            return Err(Error::new(format!("expected a text in `{path}`, found nothing")));
        }
    }
    let (plugins, information) = (format!("{plugins}/"), wheel.metadata_path(""));
    let is_listed = |path: &str| path.starts_with(&plugins) || path.starts_with(&information);
    let is_foreign =
        |path: &&str| is_listed(path) && !wanted.contains(*path) && !(is_core && **path == entry_points);
    match wheel.paths().find(is_foreign) {
        Some(foreign) => {
            Err(Error::new(format!("expected no file that `{}` does not have, found `{foreign}`", row.label)))
        }
        None => Ok(()),
    }
}
