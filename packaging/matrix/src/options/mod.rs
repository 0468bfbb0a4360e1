//! Historical build options, such as `WITH_GPU=ON`, from the time of one wheel per combination, mapped to rows of the matrix.
//!
//! Options only select rows. Build output is named after its row, so changed options can never reuse output that was built for
//! others.

mod gpus;
mod known_options;

use oarlock_formats::error::{Error, nearest_names};

use self::known_options::{KnownOption, LISTED_OPTIONS, OTHER_OPTIONS, OptionMeaning};
use crate::major_minor::MajorMinor;
use crate::select::PythonInterpreter;
use crate::{MatrixAxis, MatrixRow, WheelMatrix};
use serde::Serialize;

/// The outcome of a set of options.
#[derive(Debug, Serialize)]
pub struct ResolvedOptions {
    /// Every option, given or not.
    pub options: Vec<ResolvedOption>,
    /// The selected rows of the matrix.
    pub rows: Vec<String>,
    /// The wheels of these rows.
    pub wheels: Vec<String>,
}

/// An option with its value.
#[derive(Debug, Serialize)]
pub struct ResolvedOption {
    /// The name of the option.
    pub name: &'static str,
    /// Its value; `ON` or `OFF` for a switch.
    pub value: String,
    /// True if the user gave it, false for a default.
    pub is_given: bool,
    /// True if wheels differ in it.
    pub has_meaning: bool,
    /// Its effect, or what applies instead.
    pub means: String,
}

/// Resolves options such as `WITH_GPU=ON` to rows of a matrix. The last value of a repeated option counts. `here` probes the
/// compute capabilities of this machine's GPUs; it is only called for `CUDA_ARCH_NAME=Auto`.
///
/// # Errors
///
/// When an option or a value is unknown, or no wheel matches.
pub fn resolve_options(
    matrix: &WheelMatrix,
    given: &[String],
    here: &dyn Fn() -> Vec<MajorMinor>,
) -> Result<ResolvedOptions, Error> {
    let given: Vec<(&KnownOption, String)> =
        given.iter().map(|text| parse_option(text)).collect::<Result<_, _>>()?;
    let of = |known: &KnownOption| {
        given.iter().rev().find(|(other, _)| other.name == known.name).map(|(_, value)| value)
    };
    let value = |known: &KnownOption| of(known).map_or(known.default, String::as_str);
    let device = selected_device(&given, &value)?;
    let mut wanted = vec![(MatrixAxis::Device, vec![Some(device)])];
    let (mut python, mut gpus, mut numbers) = (None, gpus::ALL_GPUS, None);
    for known in all_options() {
        match known.means {
            OptionMeaning::Avx if value(known) == SWITCH_ON => {
                wanted.push((MatrixAxis::Isa, vec![Some("any"), Some("avx"), None]));
            }
            OptionMeaning::Avx => wanted.push((MatrixAxis::Isa, vec![Some("noavx")])),
            OptionMeaning::Mkl => {
                let library = if value(known) == SWITCH_ON { "mkl" } else { "openblas" };
                wanted.push((MatrixAxis::Blas, vec![Some(library)]));
            }
            OptionMeaning::Gpus => gpus = value(known),
            OptionMeaning::Capabilities => numbers = of(known).map(String::as_str),
            OptionMeaning::Python => python = of(known).map(|text| parse_python(text)).transpose()?,
            OptionMeaning::Machine if value(known) == SWITCH_ON => {
                return Err(unsupported_machine(matrix, known));
            }
            _ => {}
        }
    }
    let mut wheels = select_wheels(matrix, &wanted, python)?;
    let for_gpus = if device == "cuda" {
        let chosen = gpus::select_cuda_versions(matrix, &wheels, gpus, numbers, here)?;
        if let Some(versions) = &chosen.versions {
            wheels.retain(|it| {
                it.combination.get(&MatrixAxis::Accelerator).is_some_and(|it| versions.contains(it))
            });
        }
        chosen.reason
    } else {
        format!("wheels with {device} are for no NVIDIA GPU")
    };
    let mut rows: Vec<String> = wheels.iter().map(|wheel| wheel.label.clone()).collect();
    rows.dedup();
    let is_shown = |known: &&KnownOption| {
        of(known).is_some() || LISTED_OPTIONS.iter().any(|listed| listed.name == known.name)
    };
    let chosen = |known: &'static KnownOption| {
        // A requested device displaces the default one.
        let is_displaced =
            of(known).is_none() && matches!(known.means, OptionMeaning::Device(it) if it != device);
        let value = if is_displaced { SWITCH_OFF } else { value(known) };
        ResolvedOption {
            name: known.name,
            value: value.to_owned(),
            is_given: of(known).is_some(),
            has_meaning: match known.means {
                OptionMeaning::Nothing(_) => false,
                OptionMeaning::Gpus | OptionMeaning::Capabilities => device == "cuda",
                _ => true,
            },
            means: known.means.describe_value(value, &for_gpus),
        }
    };
    Ok(ResolvedOptions {
        options: all_options().filter(is_shown).map(chosen).collect(),
        rows,
        wheels: wheels.iter().map(|wheel| wheel.name.to_string()).collect(),
    })
}

const SWITCH_ON: &str = "ON";
const SWITCH_OFF: &str = "OFF";

fn all_options() -> impl Iterator<Item = &'static KnownOption> {
    LISTED_OPTIONS.iter().chain(OTHER_OPTIONS)
}

/// Parses `NAME=VALUE` or `NAME:TYPE=VALUE`.
fn parse_option(text: &str) -> Result<(&'static KnownOption, String), Error> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::new(format!("expected an option such as `WITH_GPU=ON`, found `{text}`")))?;
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let known = all_options().find(|known| known.name == name).ok_or_else(|| unknown_option(name))?;
    let wrong = |expected: &str| Error::new(format!("expected {expected} for `{name}`, found `{value}`"));
    let value = match (&known.means, known.default) {
        (OptionMeaning::Gpus, _) => {
            let words = || gpus::arch_names().collect::<Vec<_>>().join(", ");
            gpus::parse_arch_name(value).ok_or_else(|| wrong(&format!("one of {}", words())))?.to_owned()
        }
        (_, SWITCH_ON | SWITCH_OFF) => match &*value.to_ascii_uppercase() {
            "ON" | "YES" | "TRUE" | "1" => SWITCH_ON.to_owned(),
            "OFF" | "NO" | "FALSE" | "0" => SWITCH_OFF.to_owned(),
            _ => return Err(wrong("ON or OFF")),
        },
        _ if value.is_empty() => return Err(wrong("a value")),
        _ => value.to_owned(),
    };
    Ok((known, value))
}

/// The error for an unknown option, with similar names.
fn unknown_option(name: &str) -> Error {
    let upper = name.to_ascii_uppercase();
    let near = nearest_names(&upper, all_options().map(|known| (known.name.to_owned(), known.name)));
    let hint = if near.is_empty() {
        "; without options the command lists them".to_owned()
    } else {
        format!("; did you mean {}", near.join(" or "))
    };
    Error::new(format!("expected an option that there is, found `{name}`{hint}"))
}

/// The requested device. A request displaces the default.
fn selected_device<'v>(
    given: &[(&KnownOption, String)],
    value: &impl Fn(&'static KnownOption) -> &'v str,
) -> Result<&'static str, Error> {
    let is_given = |known: &KnownOption| given.iter().any(|(other, _)| other.name == known.name);
    let on: Vec<(&KnownOption, &'static str)> = all_options()
        .filter(|known| value(known) == SWITCH_ON)
        .filter_map(|known| match known.means {
            OptionMeaning::Device(device) => Some((known, device)),
            _ => None,
        })
        .collect();
    let asked: Vec<_> = on.iter().filter(|(known, _)| is_given(known)).collect();
    match asked[..] {
        [] => Ok(on.first().map_or("cpu", |(_, device)| device)),
        [(first, device), ref more @ ..] => match more.iter().find(|(_, it)| it != device) {
            // One device may have had several options that were used together.
            None => Ok(device),
            Some((other, _)) => Err(Error::new(format!(
                "expected one device, found `{}=ON` and `{}=ON`",
                first.name, other.name
            ))),
        },
    }
}

/// Parses a Python version such as `3.12`, or `3.14t` for free-threaded.
fn parse_python(text: &str) -> Result<PythonInterpreter, Error> {
    let (number, free_threaded) = text.strip_suffix('t').map_or((text, false), |number| (number, true));
    let version: MajorMinor = number.parse().map_err(|_| {
        Error::new(format!("expected a version such as `3.12` for `PY_VERSION`, found `{text}`"))
    })?;
    Ok(PythonInterpreter { version, free_threaded, cpython: true, bits_32: false })
}

/// The wheels that have one of the wanted values on each axis.
fn select_wheels<'m>(
    matrix: &'m WheelMatrix,
    wanted: &[(MatrixAxis, Vec<Option<&str>>)],
    python: Option<PythonInterpreter>,
) -> Result<Vec<&'m MatrixRow>, Error> {
    let has = |wheel: &MatrixRow, axis: MatrixAxis, values: &[Option<&str>]| {
        values.contains(&wheel.combination.get(&axis).map(String::as_str))
    };
    let channel = matrix.channels.first();
    let published: Vec<&MatrixRow> = matrix.wheels.iter().filter(|it| Some(&it.channel) == channel).collect();
    let fitting = published.iter().copied().filter(|wheel| {
        wheel.is_standalone() && wanted.iter().all(|(axis, values)| has(wheel, *axis, values))
    });
    let fitting: Vec<&MatrixRow> = fitting.collect();
    if let Some(wheel) = fitting.iter().find(|wheel| wheel.planned.is_some()) {
        return Err(planned_wheel_error(wheel));
    }
    if fitting.is_empty() {
        // Perhaps every wheel for this device is still planned; that explains more than the whole combination.
        let (axis, values) = &wanted[0];
        let of_device = published.iter().find(|wheel| wheel.planned.is_some() && has(wheel, *axis, values));
        let words: Vec<&str> = wanted.iter().filter_map(|(_, values)| values[0]).collect();
        return Err(of_device.map_or_else(
            || Error::new(format!("expected a wheel for {}, found none in the matrix", words.join(", "))),
            |wheel| planned_wheel_error(wheel),
        ));
    }
    let Some(python) = python else { return Ok(fitting) };
    let loaded: Vec<&MatrixRow> =
        fitting.iter().copied().filter(|wheel| python.loads_tag(&wheel.name.python)).collect();
    if loaded.is_empty() {
        let mut tags: Vec<&str> = fitting.iter().map(|wheel| &*wheel.name.python).collect();
        tags.dedup();
        return Err(Error::new(format!("expected a Python for {}, found {python}", tags.join(" or "))));
    }
    Ok(loaded)
}

fn unsupported_machine(matrix: &WheelMatrix, known: &KnownOption) -> Error {
    // Options select wheels with a library for products of matrices.
    let has_blas = |it: &&MatrixRow| it.is_standalone() && it.combination.contains_key(&MatrixAxis::Blas);
    let mut platforms: Vec<&str> = matrix
        .wheels
        .iter()
        .filter(has_blas)
        .filter_map(|wheel| wheel.combination.get(&MatrixAxis::Platform))
        .map(String::as_str)
        .collect();
    platforms.dedup();
    Error::new(format!(
        "expected a machine that options select wheels for ({}), found `{}=ON`; name a row for it, or build Oarlock from its source tree",
        platforms.join(", "),
        known.name
    ))
}

fn planned_wheel_error(wheel: &MatrixRow) -> Error {
    let why = wheel.planned.as_deref().unwrap_or_default();
    Error::new(format!(
        "expected a wheel that can be built, found `{}`, which is planned: {why}",
        wheel.label
    ))
}

impl OptionMeaning {
    /// Describes the effect of a value; `for_gpus` describes the GPU options.
    fn describe_value(&self, value: &str, for_gpus: &str) -> String {
        let is_on = value == SWITCH_ON;
        match self {
            Self::Device(device) => format!("{} {device}", if is_on { "with" } else { "without" }),
            Self::Avx if is_on => "instructions are chosen when a program starts".to_owned(),
            Self::Avx => "the file has no AVX instructions".to_owned(),
            Self::Mkl => format!("products of matrices by {}", if is_on { "MKL" } else { "OpenBLAS" }),
            Self::Python => "the Python that loads the wheels".to_owned(),
            Self::Gpus => for_gpus.to_owned(),
            Self::Capabilities => "compute capabilities for `CUDA_ARCH_NAME=Manual`".to_owned(),
            Self::Machine => "the wheels are for other machines".to_owned(),
            Self::Nothing(instead) => (*instead).to_owned(),
        }
    }
}
