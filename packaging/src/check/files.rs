//! Which files lie in a wheel: what its row has, and nothing else.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::Version;

use crate::assemble::{FLAVOUR, LICENCE, bill_of, directory_of_plugins, file_of, licences_of, package_of};
use crate::build::CORE;
use crate::error::Error;
use crate::matrix::wheel_name::{WheelName, WheelVersion, normal};
use crate::matrix::{Matrix, Wheel as Row};
use crate::wheel::Wheel;

/// That what is said about a wheel lies where its name says.
pub(super) fn check_information(name: &WheelName, wheel: &Wheel) -> Result<(), Error> {
    let found = wheel.directory_of_information();
    let parts = found.strip_suffix(".dist-info").and_then(|it| it.split_once('-'));
    let is_it = parts.is_some_and(|(distribution, version)| {
        normal(distribution) == name.distribution
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

/// That a wheel puts nothing into the directories of others, and can be imported.
pub(super) fn check_places(row: &Row, wheel: &Wheel) -> Result<(), Error> {
    let package = format!("{}/", package_of(row));
    let information = wheel.information_path("");
    let is_foreign = |path: &&str| !path.starts_with(&package) && !path.starts_with(&information);
    if let Some(foreign) = wheel.paths().find(is_foreign) {
        return Err(Error::new(format!(
            "expected nothing beside `{package}` and `{information}`, found `{foreign}`"
        )));
    }
    wheel.file(&format!("{package}__init__.py")).map(drop)
}

/// That a wheel of this release has each file that its row gives it. What else lies in the package of the core is Python's; in
/// all other places nothing else may.
pub(super) fn check_of_release(matrix: &Matrix, row: &Row, wheel: &Wheel) -> Result<(), Error> {
    let mut wanted: BTreeSet<String> = ["METADATA", "WHEEL"].map(|name| wheel.information_path(name)).into();
    let plugins = directory_of_plugins(row);
    let is_core = row.is_whole();
    for (name, part) in row.parts.iter().filter_map(|name| Some((name, matrix.parts.get(name)?))) {
        for (file, kind) in [
            (LICENCE.to_owned(), "licenses/"),
            (licences_of(&part.package), "licenses/"),
            (bill_of(&part.package), ""),
        ] {
            wanted.insert(wheel.information_path(&format!("{kind}{file}")));
        }
        if name != CORE {
            let library = format!("{plugins}/{}", file_of(&part.package));
            wanted.insert(library.replace(".so", ".oarlock.toml"));
            wanted.insert(library);
        }
    }
    let entry_points = wheel.information_path("entry_points.txt");
    if is_core {
        wanted.insert(FLAVOUR.to_owned());
    } else {
        wanted.insert(format!("{plugins}/__init__.py"));
        wanted.insert(entry_points.clone());
    }
    for path in &wanted {
        if wheel.file(path)?.is_empty() {
            return Err(Error::new(format!("expected a text in `{path}`, found nothing")));
        }
    }
    let (plugins, information) = (format!("{plugins}/"), wheel.information_path(""));
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
