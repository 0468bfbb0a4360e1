//! Holds wheels to the matrix, wherever they come from: that each is whole, and is what its name says.

use std::collections::BTreeSet;
use std::path::Path;

use oarlock_abi::Versions;

use crate::assemble::file_of;
use crate::build::{CORE, CORE_LIBRARY, is_without_avx};
use crate::error::Error;
use crate::headers::Headers;
use crate::library::{self, Limits};
use crate::matrix::wheel_name::WheelName;
use crate::matrix::{Matrix, Part, Wheel as Row};
use crate::wheel::{Wheel, sha256};

/// Checks wheels of a matrix.
///
/// # Errors
///
/// When one is none of the matrix, is not whole, or holds something else than its row says.
pub fn wheels(matrix: &Matrix, files: &[impl AsRef<Path>]) -> Result<(), Error> {
    files
        .iter()
        .map(AsRef::as_ref)
        .try_for_each(|file| wheel(matrix, file).map_err(|error| error.of_file(file.display())))
}

fn wheel(matrix: &Matrix, file: &Path) -> Result<(), Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let row = matrix.wheels.iter().find(|row| row.name.to_string() == name);
    let row = row.ok_or_else(|| Error::new("expected a wheel of the matrix, found none of that name"))?;
    let size = std::fs::metadata(file)?.len();
    let wheel = Wheel::read(file)?;
    Headers::read(wheel.information("METADATA")?)?.check(&row.name)?;
    contents(matrix, row, &row.name, &wheel, size)
}

/// Holds what is in a wheel to its name and to the row of its distribution. Of another release it is not known which libraries
/// it opens, nor with which host it goes together; and how large it may be is known of just what the row names.
pub(crate) fn contents(
    matrix: &Matrix,
    row: &Row,
    name: &WheelName,
    wheel: &Wheel,
    size: u64,
) -> Result<(), Error> {
    check_tags(name, wheel)?;
    if row.name == *name {
        check_size(row, size)?;
    }
    // What nobody here builds, nobody here knows the parts of.
    if row.parts.is_empty() || row.planned.is_some() {
        return Ok(());
    }
    let is_of_release = row.name.version == name.version;
    let mut left: Vec<(&str, &Part)> =
        row.parts.iter().filter_map(|part| Some((part.as_str(), matrix.parts.get(part)?))).collect();
    for path in wheel.paths().filter(|path| path.ends_with(".so")) {
        let place = left.iter().position(|(part, about)| is_library_of(path, part, about));
        let place = place.ok_or_else(|| {
            Error::new(format!("expected the libraries of {}, found `{path}`", row.parts.join(", ")))
        })?;
        let (part, about) = left.swap_remove(place);
        let limits = Limits {
            platform: &name.platform,
            part: is_of_release.then_some(about),
            without_avx: is_without_avx(row, about) && name.platform.ends_with("x86_64"),
        };
        let library = wheel.file(path)?;
        let judged = library::check(library, library, limits).and_then(|_| match part {
            CORE => check_python(name, path),
            _ => check_manifest(wheel, path, library, is_of_release),
        });
        judged.map_err(|error| Error::new(format!("`{path}`: {error}")))?;
    }
    match left.first() {
        Some((missing, _)) => Err(Error::new(format!("expected a library of `{missing}`, found none"))),
        None => Ok(()),
    }
}

/// The part of a row whose library a path is.
pub(crate) fn part_of<'r>(matrix: &Matrix, row: &'r Row, path: &str) -> Option<&'r str> {
    let is_it =
        |part: &&String| matrix.parts.get(*part).is_some_and(|about| is_library_of(path, part, about));
    row.parts.iter().find(is_it).map(String::as_str)
}

/// That a wheel is no larger than its row allows.
pub(crate) fn check_size(row: &Row, found: u64) -> Result<(), Error> {
    match row.budget {
        Some(budget) if found > budget => Err(Error::new(format!(
            "expected at most {budget} bytes for `{}`, its `budget_mb` in the matrix, found {found}; leave something out, or allow it more",
            row.label
        ))),
        _ => Ok(()),
    }
}

/// That a wheel says in itself for which Pythons and platforms it is as its name does, where several stand in one field.
fn check_tags(name: &WheelName, wheel: &Wheel) -> Result<(), Error> {
    let about = String::from_utf8_lossy(wheel.information("WHEEL")?);
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

fn is_library_of(path: &str, part: &str, about: &Part) -> bool {
    if part == CORE {
        return path.starts_with(CORE_LIBRARY);
    }
    path.rsplit('/').next().is_some_and(|file| file == file_of(&about.package))
}

/// That a Python which the name of a wheel promises finds the module of the core.
fn check_python(name: &WheelName, path: &str) -> Result<(), Error> {
    let abi = name.python.split_once('-').map_or("", |(_, abi)| abi);
    let wanted = match abi.strip_prefix("cp") {
        // Before the name of the machine.
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

/// That a host which reads what stands beside a plugin takes it.
fn check_manifest(wheel: &Wheel, path: &str, library: &[u8], is_of_release: bool) -> Result<(), Error> {
    let place = path.replace(".so", ".oarlock.toml");
    let text = wheel.file(&place).map_err(|_| {
        Error::new(format!(
            "expected its manifest `{place}`, by which a host knows a plugin without starting it; found none"
        ))
    })?;
    let text = String::from_utf8_lossy(text);
    let manifest: toml::Table =
        toml::from_str(&text).map_err(|error| Error::of_syntax("the manifest", &text, &error))?;
    let said = |name: &str| manifest.get(name).and_then(toml::Value::as_str);
    let hash = sha256(library);
    if let Some(other) = said("sha256").filter(|it| !it.eq_ignore_ascii_case(&hash)) {
        return Err(Error::new(format!(
            "expected a library with the hash {other} of its manifest, found {hash}"
        )));
    }
    let contract = said("contract").unwrap_or_default();
    let spoken = versions(contract).ok_or_else(|| {
        Error::new(format!(
            "expected versions of one major such as `1.0..1.3` for `contract` in the manifest, found `{contract}`"
        ))
    })?;
    if is_of_release && !Versions::OURS.meet(spoken) {
        return Err(Error::new(format!(
            "expected a plugin that speaks contract {}, found one that speaks {spoken}, by its manifest; \
             build it with the same release of `oarlock-sdk`",
            Versions::OURS
        )));
    }
    Ok(())
}

/// Versions of the contract as manifests have them: both ends, or one version.
fn versions(text: &str) -> Option<Versions> {
    let ends: Option<Vec<(u32, u32)>> = text
        .splitn(2, "..")
        .map(|end| {
            end.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
        })
        .collect();
    let ends = ends?;
    let (oldest, newest) = (ends.first()?, ends.last()?);
    (oldest.0 == newest.0 && oldest.1 <= newest.1).then_some(Versions {
        major: oldest.0,
        oldest_minor: oldest.1,
        newest_minor: newest.1,
    })
}
