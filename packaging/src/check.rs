//! Holds wheels that are built to the matrix, wherever they come from: that each is whole, is what its name says, and goes together
//! with the others.

use std::path::Path;

use crate::assemble::Plugin;
use crate::build::Recipe;
use crate::error::Error;
use crate::library::{self, Limits};
use crate::matrix::{Matrix, Wheel as Row};
use crate::wheel::Wheel;

/// The versions of the contract that a plugin speaks, and the wheel it is in.
#[derive(Debug)]
struct Spoken {
    wheel: String,
    oldest: (u32, u32),
    newest: (u32, u32),
}

/// Checks wheels of a matrix.
///
/// # Errors
///
/// When one is none of the matrix, is not whole, or holds something else than its row says; or when there are plugins that no
/// host takes together.
pub fn wheels(matrix: &Matrix, files: &[impl AsRef<Path>]) -> Result<(), Error> {
    let mut spoken: Vec<Spoken> = Vec::new();
    for file in files {
        let file = file.as_ref();
        spoken.extend(wheel(matrix, file).map_err(|error| error.of_file(file.display()))?);
    }
    let newest_begin = spoken.iter().max_by_key(|it| it.oldest);
    let oldest_end = spoken.iter().min_by_key(|it| it.newest);
    match (newest_begin, oldest_end) {
        (Some(one), Some(other)) if one.oldest > other.newest => Err(Error::new(format!(
            "expected plugins that one host takes together; `{}` needs the contract {}.{} or newer, `{}` speaks none after {}.{}",
            one.wheel, one.oldest.0, one.oldest.1, other.wheel, other.newest.0, other.newest.1
        ))),
        _ => Ok(()),
    }
}

/// Checks a wheel; gives what its plugins speak.
fn wheel(matrix: &Matrix, file: &Path) -> Result<Vec<Spoken>, Error> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let row = matrix.wheels.iter().find(|row| row.name.to_string() == name);
    let row = row.ok_or_else(|| Error::new("expected a wheel of the matrix, found none of that name"))?;
    size(row, std::fs::metadata(file)?.len())?;
    let wheel = Wheel::read(file)?;
    let recipes = crate::build::recipes(matrix, row)?;
    let mut left: Vec<&Recipe> = recipes.iter().collect();
    let mut spoken = Vec::new();
    for path in wheel.paths().filter(|path| path.ends_with(".so")) {
        let place = left.iter().position(|recipe| is_library_of(path, recipe));
        let place = place.ok_or_else(|| {
            Error::new(format!("expected the libraries of {}, found `{path}`", row.parts.join(", ")))
        })?;
        let Recipe { part, without_avx, glibc, .. } = left.swap_remove(place);
        let limits = Limits { glibc, opens: &part.opens, names: &part.names, without_avx: *without_avx };
        let library = wheel.file(path)?;
        library::check(library, library, limits).map_err(|error| Error::new(format!("`{path}`: {error}")))?;
        if let Ok(manifest) = wheel.file(&path.replace(".so", ".oarlock.toml")) {
            spoken.push(spoken_by(row, manifest)?);
        }
    }
    match left.first() {
        Some(missing) => Err(Error::new(format!("expected a library of `{}`, found none", missing.name))),
        None => Ok(spoken),
    }
}

/// That a wheel is no larger than its row allows.
pub(crate) fn size(row: &Row, found: u64) -> Result<(), Error> {
    match row.budget {
        Some(budget) if found > budget => Err(Error::new(format!(
            "expected at most {budget} bytes for `{}`, its `budget_mb` in the matrix, found {found}; leave something out, or allow it more",
            row.label
        ))),
        _ => Ok(()),
    }
}

fn is_library_of(path: &str, recipe: &Recipe) -> bool {
    if recipe.python.is_some() {
        return path.starts_with("oarlock/");
    }
    path.rsplit('/').next().is_some_and(|file| file == Plugin::file(&recipe.part.package))
}

/// What a manifest says of the contract, such as `1.0..1.1` or `1.0`.
fn spoken_by(row: &Row, manifest: &[u8]) -> Result<Spoken, Error> {
    let text = String::from_utf8_lossy(manifest);
    let manifest: toml::Table =
        toml::from_str(&text).map_err(|error| Error::of_syntax("the manifest", &text, &error))?;
    let contract = manifest.get("contract").and_then(toml::Value::as_str).unwrap_or_default();
    let (oldest, newest) = contract.split_once("..").unwrap_or((contract, contract));
    let version = |text: &str| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    match (version(oldest), version(newest)) {
        (Some(oldest), Some(newest)) => Ok(Spoken { wheel: row.name.to_string(), oldest, newest }),
        _ => {
            Err(Error::new(format!("expected versions of the contract in the manifest, found `{contract}`")))
        }
    }
}
