//! Copies of matrix data for code that cannot use this crate: rows for `scripts/install.sh`, which runs before anything is
//! installed, and wheel names for the Python package, which reports missing wheels. Both are checked in, and a test fails when
//! they are stale.

use std::fmt::Write as _;

use oarlock_formats::error::Error;

use crate::major_minor::MajorMinor;
use crate::select::CUDA_DRIVERS;
use crate::{MatrixAxis, MatrixRow, WheelMatrix};

/// Fills empty columns.
const NO_VALUE: &str = "-";

const ROWS_BEGIN: &str = "# of packaging/matrix.toml {\n";
const ROWS_END: &str = "# }\n";

/// Replaces the rows in the install script with those of a matrix.
///
/// # Errors
///
/// When the script lacks the marks around the rows.
pub fn render_install_script(old: &str, matrix: &WheelMatrix) -> Result<String, Error> {
    let missing = |mark: &str| Error::new(format!("expected a line `{}`, found none", mark.trim_end()));
    let (before, rest) = old.split_once(ROWS_BEGIN).ok_or_else(|| missing(ROWS_BEGIN))?;
    let (_, after) = rest.split_once(ROWS_END).ok_or_else(|| missing(ROWS_END))?;
    Ok(format!("{before}{ROWS_BEGIN}{}{ROWS_END}{after}", render_shell_rows(matrix)))
}

/// Replaces the host in the install script, for wheels published elsewhere.
pub fn set_script_host(script: &str, host: &str) -> Result<String, Error> {
    let line = |line: &&str| line.starts_with("host=");
    let old = script.lines().find(line).ok_or_else(|| Error::new("expected a line `host=`, found none"))?;
    Ok(script.replacen(&format!("\n{old}\n"), &format!("\nhost='{host}'\n"), 1))
}

/// The rows as shell variables.
fn render_shell_rows(matrix: &WheelMatrix) -> String {
    let mut text = format!(
        "host={}\n\
# Kind, value, Python tag, platform tag. Then for a core its requirement for pip, and its directory if the index lacks it; for others\n\
# the extra, and whether it includes vendor libraries.\nrows='\n",
        matrix.host
    );
    for wheel in offered_rows(matrix) {
        let Some((kind, value)) = script_kind(wheel) else { continue };
        let (asked, more) = match kind {
            "core" => (wheel.requirement(), wheel.directory.as_str()),
            _ => (
                wheel.extra_name().to_owned(),
                if matrix.library_requirements(wheel).is_empty() { "" } else { "libraries" },
            ),
        };
        let more = if more.is_empty() { NO_VALUE } else { more };
        let (python, platform) = (&wheel.name.python, &wheel.name.platform);
        let _ = writeln!(text, "{kind} {value} {python} {platform} {asked} {more}");
    }
    text += "'\n# Planned wheels, and why they are missing.\nplanned='\n";
    for wheel in matrix.wheels.iter().filter(|it| Some(&it.channel) == matrix.channels.first()) {
        if let (Some(why), Some((kind, value))) = (&wheel.planned, script_kind(wheel)) {
            let _ = writeln!(text, "{kind} {value} {why}");
        }
    }
    text += "'\n# Notes about cores: instructions, Python, text.\nnotes='\n";
    for wheel in offered_rows(matrix) {
        if let (Some(note), Some(("core", value))) = (&wheel.note, script_kind(wheel)) {
            let _ = writeln!(text, "{value} {} {note}", wheel.name.python);
        }
    }
    text += "'\n# The lowest and the highest compute capability that each CUDA version supports.\ncapabilities='\n";
    for (cuda, capabilities) in &matrix.accelerators {
        let highest = capabilities.highest.map_or_else(|| NO_VALUE.to_owned(), |it| it.to_string());
        let _ = writeln!(text, "{cuda} {} {highest}", capabilities.lowest);
    }
    text += "'\n# NVIDIA drivers, the newest first: the first version, and the CUDA version that it supports.\ndrivers='\n";
    for (driver, cuda) in CUDA_DRIVERS {
        let _ = writeln!(text, "{driver} {cuda}");
    }
    text + "'\n"
}

/// Renders the Python module that knows which wheel supports a device.
#[must_use]
pub fn render_python_module(matrix: &WheelMatrix) -> String {
    let index = format!("{}/simple/", matrix.host);
    let mut text = format!(
        r#""""The wheels that provide devices. `OARLOCK_WRITE=1 cargo test -p oarlock-pack` generates this from `packaging/matrix.toml`."""

from __future__ import annotations

from typing import NamedTuple

INDEX = "{index}"
"""The address of the package index."""


class Wheel(NamedTuple):
    """A wheel that provides a device."""

    device: str
    """The type of the device."""
    version: str | None
    """The version of the driver interface, such as that of CUDA."""
    distribution: str
    requirement: str
    """The requirement for pip: the core with the extra."""
    has_libraries: bool
    """Whether it includes vendor libraries."""
    lowest: tuple[int, int]
    """The lowest compute capability that it supports."""
    highest: tuple[int, int] | None
    """The highest one, if it is known."""
    machine: str
    """The processor that it is for."""


WHEELS = (
"#
    );
    let core = offered_rows(matrix).find(|wheel| wheel.is_core_alone());
    for wheel in offered_rows(matrix) {
        let Some((("device", _), core)) = script_kind(wheel).as_ref().map(|(kind, it)| (*kind, it)).zip(core)
        else {
            continue;
        };
        let device = &wheel.combination[&MatrixAxis::Device];
        let accelerator = wheel.combination.get(&MatrixAxis::Accelerator);
        let capabilities = accelerator.and_then(|it| matrix.accelerators.get(it));
        let none = || "None".to_owned();
        let number = |it: MajorMinor| format!("({}, {})", it.major, it.minor);
        let line = format!(
            "    Wheel(\"{device}\", {}, \"{}\", \"{}\", {}, {}, {}, \"{}\"),\n",
            accelerator.map_or_else(none, |it| format!("\"{it}\"")),
            wheel.name.distribution,
            core.requirement_with(&[wheel.extra_name().to_owned()]),
            if matrix.library_requirements(wheel).is_empty() { "False" } else { "True" },
            number(capabilities.map(|it| it.lowest).unwrap_or_default()),
            capabilities.and_then(|it| it.highest).map_or_else(none, number),
            wheel.architecture().unwrap_or_default().name(),
        );
        // Wheels for several versions of glibc share one line.
        if !text.contains(&line) {
            text += &line;
        }
    }
    text + ")\n"
}

/// The wheels of the index. Among them may be wheels that combine several parts.
fn offered_rows(matrix: &WheelMatrix) -> impl Iterator<Item = &MatrixRow> {
    let channel = matrix.channels.first();
    matrix.wheels.iter().filter(move |it| Some(&it.channel) == channel && it.planned.is_none())
}

/// The kind of a wheel in the script, and its value of that kind; `None` for a wheel of several parts.
fn script_kind(wheel: &MatrixRow) -> Option<(&'static str, String)> {
    let on = |axis: MatrixAxis| wheel.combination.get(&axis).map_or(NO_VALUE, String::as_str);
    if wheel.is_core_alone() {
        return Some(("core", on(MatrixAxis::Isa).to_owned()));
    }
    if wheel.is_standalone() {
        return None;
    }
    if wheel.combination.contains_key(&MatrixAxis::Blas) {
        return Some(("blas", on(MatrixAxis::Blas).to_owned()));
    }
    let number =
        wheel.combination.get(&MatrixAxis::Accelerator).map_or_else(String::new, |it| format!(":{it}"));
    Some(("device", on(MatrixAxis::Device).to_owned() + &number))
}
