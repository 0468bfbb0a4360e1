//! Options of a build by the names that they had where wheels were one for each combination, such as `WITH_GPU=ON`, and the
//! rows of the matrix that they stand for.
//!
//! They choose rows and nothing else. What is built is named by its row, so that options which are given anew can never mean
//! what was built for others.

mod gpus;
mod known;

use serde::Serialize;

use self::known::{Known, LISTED, Means, OTHERS};
use crate::error::{Error, nearest};
use crate::matrix::{Axis, Matrix, Wheel};
use crate::number::Number;
use crate::select::Python;

/// What some options come to.
#[derive(Debug, Serialize)]
pub struct Resolved {
    /// Every option that there is a word for, whether it was given or not.
    pub options: Vec<Chosen>,
    /// The rows of the matrix that are to be built.
    pub rows: Vec<String>,
    /// The wheels in them.
    pub wheels: Vec<String>,
}

/// An option with its value.
#[derive(Debug, Serialize)]
pub struct Chosen {
    /// Its name.
    pub name: &'static str,
    /// Its value, `ON` and `OFF` for a switch.
    pub value: String,
    /// Whether somebody gave it, or it is the default.
    pub is_given: bool,
    /// Whether wheels differ in it.
    pub has_meaning: bool,
    /// What it comes to, or what holds instead.
    pub means: String,
}

/// Finds the rows of a matrix that options stand for, each such as `WITH_GPU=ON`. Of an option that is given several times
/// the last counts. `here` finds the compute capabilities of the GPUs of this machine, which is asked for `CUDA_ARCH_NAME=Auto`
/// alone.
///
/// # Errors
///
/// When one is unknown or has a value that it cannot have, or when there is no such wheel.
pub fn resolve(matrix: &Matrix, given: &[String], here: &dyn Fn() -> Vec<Number>) -> Result<Resolved, Error> {
    let given: Vec<(&Known, String)> = given.iter().map(|text| read(text)).collect::<Result<_, _>>()?;
    let of = |known: &Known| {
        given.iter().rev().find(|(other, _)| other.name == known.name).map(|(_, value)| value)
    };
    let value = |known: &Known| of(known).map_or(known.default, String::as_str);
    let device = device(&given, &value)?;
    let mut wanted = vec![(Axis::Device, vec![Some(device)])];
    let (mut python, mut gpus, mut numbers) = (None, gpus::ALL, None);
    for known in all() {
        match known.means {
            Means::Avx if value(known) == ON => {
                wanted.push((Axis::Isa, vec![Some("any"), Some("avx"), None]));
            }
            Means::Avx => wanted.push((Axis::Isa, vec![Some("noavx")])),
            Means::Mkl => {
                let library = if value(known) == ON { "mkl" } else { "openblas" };
                wanted.push((Axis::Blas, vec![Some(library)]));
            }
            Means::Gpus => gpus = value(known),
            Means::Capabilities => numbers = of(known).map(String::as_str),
            Means::Python => python = of(known).map(|text| python_of(text)).transpose()?,
            Means::Machine if value(known) == ON => return Err(other_machine(matrix, known)),
            _ => {}
        }
    }
    let mut wheels = wheels(matrix, &wanted, python)?;
    let for_gpus = if device == "cuda" {
        let chosen = gpus::choose(matrix, &wheels, gpus, numbers, here)?;
        if let Some(versions) = &chosen.versions {
            wheels
                .retain(|it| it.combination.get(&Axis::Accelerator).is_some_and(|it| versions.contains(it)));
        }
        chosen.reason
    } else {
        format!("wheels with {device} are for no GPU of NVIDIA")
    };
    let mut rows: Vec<String> = wheels.iter().map(|wheel| wheel.label.clone()).collect();
    rows.dedup();
    let is_shown =
        |known: &&Known| of(known).is_some() || LISTED.iter().any(|listed| listed.name == known.name);
    let chosen = |known: &'static Known| {
        // A device that was asked for takes the place of the one that otherwise were.
        let is_displaced = of(known).is_none() && matches!(known.means, Means::Device(it) if it != device);
        let value = if is_displaced { OFF } else { value(known) };
        Chosen {
            name: known.name,
            value: value.to_owned(),
            is_given: of(known).is_some(),
            has_meaning: match known.means {
                Means::Nothing(_) => false,
                Means::Gpus | Means::Capabilities => device == "cuda",
                _ => true,
            },
            means: known.means.in_words(value, &for_gpus),
        }
    };
    Ok(Resolved {
        options: all().filter(is_shown).map(chosen).collect(),
        rows,
        wheels: wheels.iter().map(|wheel| wheel.name.to_string()).collect(),
    })
}

const ON: &str = "ON";
const OFF: &str = "OFF";

fn all() -> impl Iterator<Item = &'static Known> {
    LISTED.iter().chain(OTHERS)
}

/// An option and its value, of `NAME=VALUE` or `NAME:TYPE=VALUE`.
fn read(text: &str) -> Result<(&'static Known, String), Error> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Error::new(format!("expected an option such as `WITH_GPU=ON`, found `{text}`")))?;
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let known = all().find(|known| known.name == name).ok_or_else(|| unknown(name))?;
    let wrong = |expected: &str| Error::new(format!("expected {expected} for `{name}`, found `{value}`"));
    let value = match (&known.means, known.default) {
        (Means::Gpus, _) => {
            let words = || gpus::words().collect::<Vec<_>>().join(", ");
            gpus::word(value).ok_or_else(|| wrong(&format!("one of {}", words())))?.to_owned()
        }
        (_, ON | OFF) => match &*value.to_ascii_uppercase() {
            "ON" | "YES" | "TRUE" | "1" => ON.to_owned(),
            "OFF" | "NO" | "FALSE" | "0" => OFF.to_owned(),
            _ => return Err(wrong("ON or OFF")),
        },
        _ if value.is_empty() => return Err(wrong("a value")),
        _ => value.to_owned(),
    };
    Ok((known, value))
}

/// Of a name that no option has, with those that look like it.
fn unknown(name: &str) -> Error {
    let upper = name.to_ascii_uppercase();
    let near = nearest(&upper, all().map(|known| (known.name.to_owned(), known.name)));
    let hint = if near.is_empty() {
        "; without options the command lists them".to_owned()
    } else {
        format!("; did you mean {}", near.join(" or "))
    };
    Error::new(format!("expected an option that there is, found `{name}`{hint}"))
}

/// The device that the options ask for. The default stands back where another is asked for.
fn device<'v>(
    given: &[(&Known, String)],
    value: &impl Fn(&'static Known) -> &'v str,
) -> Result<&'static str, Error> {
    let is_given = |known: &Known| given.iter().any(|(other, _)| other.name == known.name);
    let on: Vec<(&Known, &'static str)> = all()
        .filter(|known| value(known) == ON)
        .filter_map(|known| match known.means {
            Means::Device(device) => Some((known, device)),
            _ => None,
        })
        .collect();
    let asked: Vec<_> = on.iter().filter(|(known, _)| is_given(known)).collect();
    match asked[..] {
        [] => Ok(on.first().map_or("cpu", |(_, device)| device)),
        [(first, device), ref more @ ..] => match more.iter().find(|(_, it)| it != device) {
            // A device may have had several options that were given together.
            None => Ok(device),
            Some((other, _)) => Err(Error::new(format!(
                "expected one device, found `{}=ON` and `{}=ON`",
                first.name, other.name
            ))),
        },
    }
}

/// A Python such as `3.12`, or `3.14t` without a lock around the interpreter.
fn python_of(text: &str) -> Result<Python, Error> {
    let (number, free_threaded) = text.strip_suffix('t').map_or((text, false), |number| (number, true));
    let version: Number = number.parse().map_err(|_| {
        Error::new(format!("expected a version such as `3.12` for `PY_VERSION`, found `{text}`"))
    })?;
    Ok(Python { version, free_threaded, cpython: true, bits_32: false })
}

/// The wheels of one file that have one of the wanted values on each axis.
fn wheels<'m>(
    matrix: &'m Matrix,
    wanted: &[(Axis, Vec<Option<&str>>)],
    python: Option<Python>,
) -> Result<Vec<&'m Wheel>, Error> {
    let has = |wheel: &Wheel, axis: Axis, values: &[Option<&str>]| {
        values.contains(&wheel.combination.get(&axis).map(String::as_str))
    };
    let channel = matrix.channels.first();
    let published: Vec<&Wheel> = matrix.wheels.iter().filter(|it| Some(&it.channel) == channel).collect();
    let fitting = published
        .iter()
        .copied()
        .filter(|wheel| wheel.is_whole() && wanted.iter().all(|(axis, values)| has(wheel, *axis, values)));
    let fitting: Vec<&Wheel> = fitting.collect();
    if let Some(wheel) = fitting.iter().find(|wheel| wheel.planned.is_some()) {
        return Err(planned(wheel));
    }
    if fitting.is_empty() {
        // The device may be planned by itself.
        let (axis, values) = &wanted[0];
        let of_device = published.iter().find(|wheel| wheel.planned.is_some() && has(wheel, *axis, values));
        let words: Vec<&str> = wanted.iter().filter_map(|(_, values)| values[0]).collect();
        return Err(of_device.map_or_else(
            || Error::new(format!("expected a wheel for {}, found none in the matrix", words.join(", "))),
            |wheel| planned(wheel),
        ));
    }
    let Some(python) = python else { return Ok(fitting) };
    let loaded: Vec<&Wheel> =
        fitting.iter().copied().filter(|wheel| python.loads(&wheel.name.python)).collect();
    if loaded.is_empty() {
        let mut tags: Vec<&str> = fitting.iter().map(|wheel| &*wheel.name.python).collect();
        tags.dedup();
        return Err(Error::new(format!("expected a Python for {}, found {python}", tags.join(" or "))));
    }
    Ok(loaded)
}

fn other_machine(matrix: &Matrix, known: &Known) -> Error {
    let mut platforms: Vec<&str> = matrix
        .wheels
        .iter()
        .filter_map(|wheel| wheel.combination.get(&Axis::Platform))
        .map(String::as_str)
        .collect();
    platforms.dedup();
    Error::new(format!(
        "expected a machine that there are wheels for ({}), found `{}=ON`; build Oarlock there from its source tree",
        platforms.join(", "),
        known.name
    ))
}

fn planned(wheel: &Wheel) -> Error {
    let why = wheel.planned.as_deref().unwrap_or_default();
    Error::new(format!(
        "expected a wheel that can be built, found `{}`, which is planned: {why}",
        wheel.label
    ))
}

impl Means {
    /// What a value comes to; `for_gpus` is what those of the GPUs do.
    fn in_words(&self, value: &str, for_gpus: &str) -> String {
        let is_on = value == ON;
        match self {
            Self::Device(device) => format!("{} {device}", if is_on { "with" } else { "without" }),
            Self::Avx if is_on => "instructions are chosen when a program starts".to_owned(),
            Self::Avx => "no instruction of AVX lies in the file".to_owned(),
            Self::Mkl => format!("products of matrices by {}", if is_on { "MKL" } else { "OpenBLAS" }),
            Self::Python => "the Python that loads the wheels".to_owned(),
            Self::Gpus => for_gpus.to_owned(),
            Self::Capabilities => "compute capabilities for `CUDA_ARCH_NAME=Manual`".to_owned(),
            Self::Machine => "the wheels are for other machines".to_owned(),
            Self::Nothing(instead) => (*instead).to_owned(),
        }
    }
}
