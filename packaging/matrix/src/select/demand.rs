//! Requirements on the wheel to install, and errors if no wheel meets them.

use std::collections::BTreeSet;

use oarlock_formats::error::Error;

use super::{InstallPreferences, OperatingSystem, PythonInterpreter, TargetMachine};
use crate::{CpuArchitecture, MatrixAxis, MatrixRow};

/// Stands for a missing value in errors.
const NO_VALUE: &str = "none";

/// A requirement on a wheel.
pub(super) struct WheelDemand<'a> {
    /// The property of the machine, or the user's request.
    found: String,
    is_met: Box<dyn Fn(&MatrixRow) -> bool + 'a>,
    /// The corresponding property of a wheel.
    value: Box<dyn Fn(&MatrixRow) -> String + 'a>,
    /// The machine, for the requirement of its platform.
    machine: Option<&'a TargetMachine>,
}

impl<'a> WheelDemand<'a> {
    fn new(
        found: String,
        is_met: impl Fn(&MatrixRow) -> bool + 'a,
        value: impl Fn(&MatrixRow) -> String + 'a,
    ) -> Self {
        Self { found, is_met: Box::new(is_met), value: Box::new(value), machine: None }
    }

    /// The wheel must support the platform.
    pub(super) fn for_platform(machine: &'a TargetMachine) -> Self {
        let demand = Self::new(
            machine.to_string(),
            |it| machine.runs_platform(&it.name.platform),
            |it| describe_platform(&it.name.platform),
        );
        Self { machine: Some(machine), ..demand }
    }

    /// The wheel must support the Python.
    pub(super) fn for_python(python: PythonInterpreter) -> Self {
        Self::new(
            python.to_string(),
            move |it| python.loads_tag(&it.name.python),
            |it| describe_python(&it.name.python),
        )
    }

    /// The wheel must have this value on an axis, or none.
    pub(super) fn for_axis(axis: MatrixAxis, wanted: Option<String>) -> Self {
        let has = move |wheel: &MatrixRow| wheel.combination.get(&axis).cloned();
        let name = move |value: Option<String>| {
            value.map_or_else(|| NO_VALUE.to_owned(), |it| format!("{axis} {it}"))
        };
        Self::new(name(wanted.clone()), move |it| has(it) == wanted, move |it| name(has(it)))
    }

    /// The wheel must only use instructions of the processor. No wheel for ARM has AVX instructions.
    pub(super) fn for_isa(machine: &TargetMachine, wish: &InstallPreferences) -> Self {
        let isa = |wheel: &MatrixRow| wheel.combination.get(&MatrixAxis::Isa).cloned().unwrap_or_default();
        let (avx, without) = (machine.avx, wish.without_avx);
        let found = match &*machine.architecture {
            "aarch64" => NO_VALUE,
            _ if avx && !without => "a processor with AVX",
            _ => "a processor without AVX",
        };
        let is_met = move |wheel: &MatrixRow| match &*isa(wheel) {
            _ if wheel.architecture() == Some(CpuArchitecture::Aarch64) => true,
            "avx" => avx && !without,
            "noavx" => !avx || without,
            _ => !without,
        };
        let value = move |wheel: &MatrixRow| match &*isa(wheel) {
            "avx" => "a processor with AVX".to_owned(),
            "noavx" => "a processor without AVX".to_owned(),
            _ => "every processor".to_owned(),
        };
        Self::new(found.to_owned(), is_met, value)
    }
}

/// The first wheel that meets all requirements. If there is none, the error names a requirement without which one would match.
pub(super) fn first_match<'w>(
    wheels: &[&'w MatrixRow],
    demands: &[WheelDemand<'_>],
) -> Result<&'w MatrixRow, Error> {
    let meets = |wheel: &MatrixRow, but: Option<usize>| {
        demands.iter().enumerate().all(|(place, demand)| Some(place) == but || (demand.is_met)(wheel))
    };
    if let Some(wheel) = wheels.iter().find(|wheel| meets(wheel, None)) {
        return Ok(wheel);
    }
    let mut advice = None;
    let mut would_do = Vec::new();
    for (place, demand) in demands.iter().enumerate() {
        let others = wheels.iter().filter(|wheel| meets(wheel, Some(place)));
        let mut others: Vec<String> =
            others.map(|wheel| (demand.value)(wheel)).filter(|it| it != NO_VALUE).collect();
        let mut seen = BTreeSet::new();
        others.retain(|it| seen.insert(it.clone()));
        if !others.is_empty() {
            advice = advice.or_else(|| self::platform_advice(demand.machine?, wheels));
        }
        would_do.extend(others);
    }
    let found: Vec<&str> = demands.iter().map(|it| it.found.as_str()).filter(|it| *it != NO_VALUE).collect();
    let instead = match &would_do[..] {
        [] => String::new(),
        _ => format!("; there would be one for {}", would_do.join(" or ")),
    };
    let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
    Err(Error::new(format!("expected a wheel for {}, found none{instead}{advice}", found.join(", "))))
}

/// Advice if no wheel supports the platform.
fn platform_advice(machine: &TargetMachine, wheels: &[&MatrixRow]) -> Option<String> {
    if machine.is_32_bit_system() {
        return Some("Oarlock needs a 64-bit system; install one, if the processor can run it".to_owned());
    }
    if machine.python.is_some_and(|python| python.bits_32) {
        return Some("use a Python of 64 bits".to_owned());
    }
    let architecture = &machine.architecture;
    let is_for_processor =
        wheels.iter().any(|wheel| wheel.name.platform.ends_with(&format!("_{architecture}")));
    let words = match machine.system {
        OperatingSystem::Linux if is_for_processor => {
            "use a newer distribution, or build Oarlock from its source tree"
        }
        OperatingSystem::Linux => {
            return Some(format!(
                "there are no wheels for {architecture} yet, so build Oarlock from its source tree"
            ));
        }
        OperatingSystem::Musl => "use a distribution with glibc, such as Debian in a container",
        OperatingSystem::Macos | OperatingSystem::Windows => {
            "use Linux, such as in a container or a virtual machine"
        }
    };
    // Historical wheels of others cannot be built here.
    wheels.iter().any(|wheel| !wheel.parts.is_empty()).then(|| words.to_owned())
}

/// Describes a platform tag, if it is known.
fn describe_platform(tag: &str) -> String {
    let of = |family: &str, words: &str| {
        let mut parts = tag.strip_prefix(family)?.splitn(3, '_');
        let (major, minor, architecture) = (parts.next()?, parts.next()?, parts.next()?);
        Some(format!("{words} {major}.{minor} or newer on {architecture}"))
    };
    of("manylinux_", "Linux with glibc")
        .or_else(|| of("musllinux_", "Linux with musl"))
        .or_else(|| of("macosx_", "macOS"))
        .unwrap_or_else(|| tag.to_owned())
}

/// Describes a Python tag, if it is known.
fn describe_python(tag: &str) -> String {
    let words = || {
        let (interpreter, abi) = tag.split_once('-')?;
        let digits = interpreter.strip_prefix("cp").filter(|it| it.len() > 1 && it.is_ascii())?;
        let (major, minor) = digits.split_at(1);
        let behind = match abi {
            "abi3" => " or newer",
            _ if abi.ends_with('t') => " without a lock around the interpreter",
            _ => "",
        };
        Some(format!("CPython {major}.{minor}{behind}"))
    };
    words().unwrap_or_else(|| tag.to_owned())
}
