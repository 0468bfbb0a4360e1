//! What a wheel of this release says of itself: what its row does, word by word.

use serde_json::Value;

use crate::assemble::{self, FLAVOUR, PYTHONS, announcement, asked_for, bill_of, flavour};
use crate::error::Error;
use crate::headers::Headers;
use crate::matrix::{Matrix, Part, Wheel as Row};
use crate::wheel::Wheel;

/// The fields of METADATA that follow from the row. What installers do is in these.
const FIELDS: [&str; 6] = [
    "Requires-Python",
    "Requires-Dist",
    "Provides-Extra",
    "Requires-External",
    "License-File",
    "Project-URL",
];

/// The groups of entry points by which an installer makes commands.
const COMMANDS: [&str; 2] = ["console_scripts", "gui_scripts"];

/// That METADATA, entry points, bills of materials and what the doctor reads are those of the row.
pub(super) fn check(matrix: &Matrix, row: &Row, wheel: &Wheel) -> Result<(), Error> {
    let parts: Vec<&Part> = row.parts.iter().filter_map(|part| matrix.parts.get(part)).collect();
    check_metadata(matrix, row, &parts, wheel)?;
    check_entry_points(row, &parts, wheel)?;
    for part in parts {
        let path = wheel.information_path(&bill_of(&part.package));
        check_bill(part, wheel.file(&path)?).map_err(|error| Error::new(format!("`{path}`: {error}")))?;
    }
    if row.is_whole() && wheel.file(FLAVOUR)? != flavour(row).as_bytes() {
        return Err(Error::new(format!(
            "expected `{FLAVOUR}` to tell of `{}`, as `oarlock-pack build` writes it; found another text",
            row.label
        )));
    }
    Ok(())
}

fn check_metadata(matrix: &Matrix, row: &Row, parts: &[&Part], wheel: &Wheel) -> Result<(), Error> {
    let mut wanted = vec![format!("Requires-Python: {PYTHONS}")];
    wanted.extend(assemble::told(parts.iter().map(|it| (it.package.as_str(), it.opens.as_slice())))?);
    wanted.extend(asked_for(matrix, row));
    let headers = Headers::read(wheel.information("METADATA")?)?;
    let mut found: Vec<String> = headers.all(&FIELDS).collect();
    wanted.retain(|line| match found.iter().position(|it| it == line) {
        Some(place) => {
            found.remove(place);
            false
        }
        None => true,
    });
    let field = |line: &str| line.split_once(": ").map(|(field, _)| field.to_owned());
    match (wanted.first(), found.first()) {
        (None, None) => Ok(()),
        (None, Some(other)) => Err(Error::new(format!(
            "expected in METADATA what follows from `{}` of the matrix, found `{other}` beside it",
            row.label
        ))),
        (Some(line), _) => {
            let other = found.iter().find(|it| field(it) == field(line));
            let other = other.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
            Err(Error::new(format!("expected `{line}` in METADATA, found {other}")))
        }
    }
}

/// That a plugin is announced and nothing is made a command.
fn check_entry_points(row: &Row, parts: &[&Part], wheel: &Wheel) -> Result<(), Error> {
    let found = wheel.information("entry_points.txt").unwrap_or_default();
    let found = String::from_utf8_lossy(found);
    if let ([part], false) = (parts, row.is_whole()) {
        let wanted = announcement(row, &part.package);
        if found != wanted {
            return Err(Error::new(format!(
                "expected `{}` in `entry_points.txt`, found `{}`",
                wanted.trim_end().escape_debug(),
                found.trim_end().escape_debug()
            )));
        }
    }
    match found.lines().find(|line| COMMANDS.iter().any(|group| line.contains(group))) {
        Some(group) => Err(Error::new(format!("expected no command in `entry_points.txt`, found `{group}`"))),
        None => Ok(()),
    }
}

/// That a bill of materials is one, and that of a part.
fn check_bill(part: &Part, bytes: &[u8]) -> Result<(), Error> {
    let bill: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::new(format!("expected a bill of materials as JSON: {error}")))?;
    let about = &bill["metadata"]["component"];
    for (found, wanted, what) in [
        (&bill["bomFormat"], "CycloneDX", "`bomFormat`"),
        (&about["name"], part.package.as_str(), "what it is of"),
        (&about["version"], env!("CARGO_PKG_VERSION"), "the version of that"),
    ] {
        if found != wanted {
            return Err(Error::new(format!("expected `{wanted}` as {what}, found {found}")));
        }
    }
    let has = |name: &str| {
        bill["components"].as_array().is_some_and(|all| all.iter().any(|component| component["name"] == name))
    };
    match part.opens.iter().find(|soname| !has(soname)) {
        Some(missing) => Err(Error::new(format!(
            "expected `{missing}`, which the part opens, among what it lists; found none"
        ))),
        None => Ok(()),
    }
}
