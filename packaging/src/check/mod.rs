//! Checks wheels from any source against the matrix: each must be complete and match its name.

mod files;
mod manifest;
mod metadata;

use std::collections::BTreeSet;
use std::path::Path;

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::headers::MetadataHeaders;
use oarlock_matrix::wheel_name::WheelName;
use oarlock_matrix::{MatrixPart, MatrixRow, WheelMatrix};

use crate::assemble::plugin_file_name;
use crate::build_plan::{CORE_LIBRARY_PREFIX, CORE_PART, is_without_avx};
use oarlock_formats::library_needs::is_compiled;

use crate::library_requirements::{self, LibraryLimits};

/// Checks wheels of a matrix, each once even if it is named twice, and returns their number.
///
/// # Errors
///
/// When a wheel is not in the matrix, is incomplete, or differs from its row.
pub fn check_wheels(matrix: &WheelMatrix, files: &[impl AsRef<Path>]) -> Result<usize, Error> {
    let mut seen = BTreeSet::new();
    for file in files.iter().map(AsRef::as_ref) {
        let of_file = |error: Error| error.in_file(file.display());
        if seen.insert(file.canonicalize().map_err(Error::from).map_err(of_file)?) {
            check_wheel_file(matrix, file).map_err(of_file)?;
        }
    }
    Ok(seen.len())
}

fn check_wheel_file(matrix: &WheelMatrix, file: &Path) -> Result<(), Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let row = matrix.wheels.iter().find(|row| row.name.to_string() == name);
    let row = row.ok_or_else(|| Error::new("expected a wheel of the matrix, found none of that name"))?;
    let size = std::fs::metadata(file)?.len();
    let wheel = Wheel::read_file(file)?;
    MetadataHeaders::parse_metadata(wheel.metadata_file("METADATA")?)?.check_wheel_name(&row.name)?;
    check_wheel_contents(matrix, row, &row.name, &wheel, size)
}

/// Checks the contents of a wheel against its name and the row of its distribution. For other releases, the libraries that it
/// opens and the matching host version are unknown. The size budget only applies to the exact name of the row.
pub(crate) fn check_wheel_contents(
    matrix: &WheelMatrix,
    row: &MatrixRow,
    name: &WheelName,
    wheel: &Wheel,
    size: u64,
) -> Result<(), Error> {
    check_tags(name, wheel)?;
    if row.name == *name {
        check_size(row, wheel, size)?;
    }
    files::check_dist_info(name, wheel)?;
    // The matrix does not list the parts of wheels that are not built here.
    if row.parts.is_empty() || row.planned.is_some() {
        return Ok(());
    }
    let is_of_release = row.name.version == name.version;
    files::check_file_locations(row, wheel)?;
    let mut left: Vec<(&str, &MatrixPart)> =
        row.parts.iter().filter_map(|part| Some((part.as_str(), matrix.parts.get(part)?))).collect();
    let is_library = |(path, bytes): &(&str, &[u8])| path.ends_with(".so") || is_compiled(bytes);
    for (path, library) in wheel.files().filter(is_library) {
        let place = left.iter().position(|(part, about)| is_part_library(path, part, about));
        let place = place.ok_or_else(|| {
            Error::new(format!("expected the libraries of {}, found `{path}`", row.parts.join(", ")))
        })?;
        let (part, about) = left.swap_remove(place);
        let limits = LibraryLimits {
            platform: &name.platform,
            part: is_of_release.then_some(about),
            without_avx: is_without_avx(row, about) && name.platform.ends_with("x86_64"),
        };
        let judged = library_requirements::check_library(library, library, limits).and_then(|_| match part {
            CORE_PART => check_python_module(name, path),
            _ if is_of_release => manifest::read_checked_manifest(wheel, path, library)
                .and_then(|it| it.check_release_manifest(matrix, row, about, &name.platform)),
            _ => manifest::read_checked_manifest(wheel, path, library).map(drop),
        });
        judged.map_err(|error| Error::new(format!("`{path}`: {error}")))?;
    }
    if let Some((missing, _)) = left.first() {
        return Err(Error::new(format!("expected a library of `{missing}`, found none")));
    }
    if is_of_release {
        files::check_release_files(matrix, row, wheel)?;
        metadata::check_wheel_metadata(matrix, row, wheel)?;
    }
    Ok(())
}

/// The part of a row that the library at `path` belongs to.
pub(crate) fn part_of_library<'r>(matrix: &WheelMatrix, row: &'r MatrixRow, path: &str) -> Option<&'r str> {
    let is_it =
        |part: &&String| matrix.parts.get(*part).is_some_and(|about| is_part_library(path, part, about));
    row.parts.iter().find(is_it).map(String::as_str)
}

/// Checks both size budgets of a row: `packed` bytes as a file, and the installed size.
pub(crate) fn check_size(row: &MatrixRow, wheel: &Wheel, packed: u64) -> Result<(), Error> {
    let installed = wheel.installed_size();
    for (budget, found, words, key) in [
        (row.budget, packed, "", "budget_mb"),
        (row.installed_budget, installed, " once it is installed", "installed_budget_mb"),
    ] {
        if let Some(budget) = budget.filter(|budget| found > *budget) {
            return Err(Error::new(format!(
                "expected at most {budget} bytes for `{}`{words}, its `{key}` in the matrix, found {found}; leave something out, or allow it more",
                row.label
            )));
        }
    }
    Ok(())
}

/// Checks the tags in the WHEEL file against the file name, in which a field may have several tags.
fn check_tags(name: &WheelName, wheel: &Wheel) -> Result<(), Error> {
    let about = String::from_utf8_lossy(wheel.metadata_file("WHEEL")?);
    let found: BTreeSet<&str> =
        about.lines().filter_map(|line| line.strip_prefix("Tag: ")).map(str::trim).collect();
    let (interpreters, abis) = name.python.split_once('-').unwrap_or((&name.python, ""));
    let mut wanted = BTreeSet::new();
    for interpreter in interpreters.split('.') {
        for abi in abis.split('.') {
            wanted.extend(name.platform.split('.').map(|platform| format!("{interpreter}-{abi}-{platform}")));
        }
    }
    if found.iter().copied().eq(wanted.iter()) {
        return Ok(());
    }
    let listed = |tags: Vec<&str>| if tags.is_empty() { "none".to_owned() } else { tags.join(", ") };
    Err(Error::new(format!(
        "expected the tags of its name in its WHEEL, {}; found {}",
        listed(wanted.iter().map(String::as_str).collect()),
        listed(found.into_iter().collect())
    )))
}

fn is_part_library(path: &str, part: &str, about: &MatrixPart) -> bool {
    if part == CORE_PART {
        return path.starts_with(CORE_LIBRARY_PREFIX);
    }
    path.rsplit('/').next().is_some_and(|file| file == plugin_file_name(&about.package))
}

/// Checks that the Python versions in the wheel's name can find the core's module.
fn check_python_module(name: &WheelName, path: &str) -> Result<(), Error> {
    let abi = name.python.split_once('-').map_or("", |(_, abi)| abi);
    let wanted = match abi.strip_prefix("cp") {
        // Followed by the name of the machine.
        Some(version) => format!("oarlock/_oarlock.cpython-{version}-"),
        None => format!("oarlock/_oarlock.{abi}.so"),
    };
    if path.starts_with(&wanted) {
        return Ok(());
    }
    Err(Error::new(format!(
        "expected `{wanted}`, which alone a Python of `{}` loads; found another",
        name.python
    )))
}
