//! What goes along of the matrix where this crate cannot: rows for `scripts/install.sh`, which runs before anything is
//! installed, and names of wheels for the Python package, which says what is missing. Both lie in the tree, and a test says
//! when they are stale.

use std::fmt::Write as _;

use crate::error::Error;
use crate::matrix::{Axis, Matrix, Wheel};
use crate::select::DRIVERS;

/// Stands where a row has nothing.
const NOTHING: &str = "-";

const BEGIN: &str = "# of packaging/matrix.toml {\n";
const END: &str = "# }\n";

/// The script with the rows of a matrix in place of those that it has.
///
/// # Errors
///
/// When the script does not say where they stand.
pub fn script(old: &str, matrix: &Matrix) -> Result<String, Error> {
    let missing = |mark: &str| Error::new(format!("expected a line `{}`, found none", mark.trim_end()));
    let (before, rest) = old.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", shell(matrix)))
}

/// The rows as variables of a shell.
fn shell(matrix: &Matrix) -> String {
    let mut text = format!(
        "host={}\n# What it brings, Python, platform, what pip is asked for, and where it lies if the index has it not.\nrows='\n",
        matrix.host
    );
    for wheel in offered(matrix) {
        let Some((kind, value)) = kind(wheel) else { continue };
        let directory = if wheel.directory.is_empty() { NOTHING } else { &wheel.directory };
        let (python, platform, requirement) = (&wheel.name.python, &wheel.name.platform, wheel.requirement());
        let _ = writeln!(text, "{kind} {value} {python} {platform} {requirement} {directory}");
    }
    text += "'\n# Drivers of NVIDIA, the newest first: from which version on, and the CUDA that it runs.\ndrivers='\n";
    for (driver, cuda) in DRIVERS {
        let _ = writeln!(text, "{driver} {cuda}");
    }
    text + "'\n"
}

/// A module of Python that knows which wheels bring a device.
#[must_use]
pub fn python(matrix: &Matrix) -> String {
    let mut text = "\
\"\"\"The wheels that bring devices. `OARLOCK_WRITE=1 cargo test -p oarlock-pack` makes this of `packaging/matrix.toml`.\"\"\"

from __future__ import annotations

INDEX = \""
        .to_owned();
    text += &format!("{}/simple/\"\n\"\"\"Where they are.\"\"\"\n\nWHEELS = (\n", matrix.host);
    for wheel in offered(matrix) {
        if let Some(("device", _)) = kind(wheel) {
            let device = &wheel.combination[&Axis::Device];
            let accelerator = wheel.combination.get(&Axis::Accelerator);
            let cuda = accelerator.map_or_else(|| "None".to_owned(), |it| format!("\"{it}\""));
            let line = format!("    (\"{device}\", {cuda}, \"{}\"),\n", wheel.name.distribution);
            // A wheel for another platform has the same name.
            if !text.contains(&line) {
                text += &line;
            }
        }
    }
    text + ")\n\"\"\"What each is for: a type of device, and the version of what drives it.\"\"\"\n"
}

/// The wheels that are in the index, beside which there may be such as hold several of them in one file.
fn offered(matrix: &Matrix) -> impl Iterator<Item = &Wheel> {
    let channel = matrix.channels.first();
    matrix.wheels.iter().filter(move |it| Some(&it.channel) == channel && it.planned.is_none())
}

/// What a wheel is in the script, and which of those; nothing for one that holds several.
fn kind(wheel: &Wheel) -> Option<(&'static str, String)> {
    let on = |axis: Axis| wheel.combination.get(&axis).map_or(NOTHING, String::as_str);
    if wheel.parts == ["core"] {
        return Some(("core", on(Axis::Isa).to_owned()));
    }
    if wheel.is_whole() {
        return None;
    }
    if wheel.combination.contains_key(&Axis::Blas) {
        return Some(("blas", on(Axis::Blas).to_owned()));
    }
    let number = wheel.combination.get(&Axis::Accelerator).map_or_else(String::new, |it| format!(":{it}"));
    Some(("device", on(Axis::Device).to_owned() + &number))
}
