//! Checks the metadata of a wheel of this release, word for word, against its row.

use oarlock_formats::error::Error;
use oarlock_formats::wheel::Wheel;
use oarlock_matrix::headers::MetadataHeaders;
use oarlock_matrix::{MatrixPart, MatrixRow, WheelMatrix};

use crate::assemble::{
    self, FLAVOR_FILE, REQUIRES_PYTHON, dependency_headers, entry_points_text, flavor_json, sbom_path,
};
use serde_json::Value;

/// The METADATA fields that follow from the row. Installers act on these.
const METADATA_FIELDS: [&str; 6] = [
    "Requires-Python",
    "Requires-Dist",
    "Provides-Extra",
    "Requires-External",
    "License-File",
    "Project-URL",
];

/// The groups of entry points from which an installer creates commands.
const SCRIPT_GROUPS: [&str; 2] = ["console_scripts", "gui_scripts"];

/// Checks METADATA, entry points, SBOMs and the file for `doctor` against the row.
pub(super) fn check_wheel_metadata(
    matrix: &WheelMatrix,
    row: &MatrixRow,
    wheel: &Wheel,
) -> Result<(), Error> {
    let parts: Vec<&MatrixPart> = row.parts.iter().filter_map(|part| matrix.parts.get(part)).collect();
    check_core_metadata(matrix, row, &parts, wheel)?;
    check_entry_points(row, &parts, wheel)?;
    for part in parts {
        let path = wheel.metadata_path(&sbom_path(&part.package));
        check_sbom(part, wheel.file_bytes(&path)?)
            .map_err(|error| Error::new(format!("`{path}`: {error}")))?;
    }
    if row.is_standalone() && wheel.file_bytes(FLAVOR_FILE)? != flavor_json(row).as_bytes() {
        return Err(Error::new(format!(
            "expected `{FLAVOR_FILE}` to tell of `{}`, as `oarlock-pack build` writes it; found another text",
            row.label
        )));
    }
    Ok(())
}

fn check_core_metadata(
    matrix: &WheelMatrix,
    row: &MatrixRow,
    parts: &[&MatrixPart],
    wheel: &Wheel,
) -> Result<(), Error> {
    let mut wanted = vec![format!("Requires-Python: {REQUIRES_PYTHON}")];
    wanted.extend(assemble::license_headers(
        parts.iter().map(|it| (it.package.as_str(), it.opens.as_slice())),
    )?);
    wanted.extend(dependency_headers(matrix, row));
    let headers = MetadataHeaders::parse_metadata(wheel.metadata_file("METADATA")?)?;
    let mut found: Vec<String> = headers.lines_named(&METADATA_FIELDS).collect();
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
            "expected METADATA to match `{}` of the matrix, found `{other}` as well",
            row.label
        ))),
        (Some(line), _) => {
            let other = found.iter().find(|it| field(it) == field(line));
            let other = other.map_or_else(|| "none".to_owned(), |it| format!("`{it}`"));
            Err(Error::new(format!("expected `{line}` in METADATA, found {other}")))
        }
    }
}

/// Checks that a plugin is registered and that the wheel installs no command.
fn check_entry_points(row: &MatrixRow, parts: &[&MatrixPart], wheel: &Wheel) -> Result<(), Error> {
    let found = wheel.metadata_file("entry_points.txt").unwrap_or_default();
    let found = String::from_utf8_lossy(found);
    if let ([part], false) = (parts, row.is_standalone()) {
        let wanted = entry_points_text(row, &part.package);
        if found != wanted {
            return Err(Error::new(format!(
                "expected `{}` in `entry_points.txt`, found `{}`",
                wanted.trim_end().escape_debug(),
                found.trim_end().escape_debug()
            )));
        }
    }
    match found.lines().find(|line| SCRIPT_GROUPS.iter().any(|group| line.contains(group))) {
        Some(group) => Err(Error::new(format!("expected no command in `entry_points.txt`, found `{group}`"))),
        None => Ok(()),
    }
}

/// Checks that a file is an SBOM, and the SBOM of this part.
fn check_sbom(part: &MatrixPart, bytes: &[u8]) -> Result<(), Error> {
    let sbom: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::new(format!("expected an SBOM as JSON: {error}")))?;
    let about = &sbom["metadata"]["component"];
    for (found, wanted, what) in [
        (&sbom["bomFormat"], "CycloneDX", "`bomFormat`"),
        (&about["name"], part.package.as_str(), "what it is of"),
        (&about["version"], env!("CARGO_PKG_VERSION"), "the version of that"),
    ] {
        if found != wanted {
            return Err(Error::new(format!("expected `{wanted}` as {what}, found {found}")));
        }
    }
    let has = |name: &str| {
        sbom["components"].as_array().is_some_and(|all| all.iter().any(|component| component["name"] == name))
    };
    match part.opens.iter().find(|soname| !has(soname)) {
        Some(missing) => {
            Err(Error::new(format!("expected it to list `{missing}`, which the part opens; found none")))
        }
        None => Ok(()),
    }
}
