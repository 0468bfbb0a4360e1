//! Which wheels there are, and what each is called: device × accelerator × BLAS × instruction set × Python × platform.
//!
//! A [`WheelMatrix`] is read from a file of groups ([`mod@file`]). A group takes some values of each axis, and stands for all their
//! combinations but those that the file excludes. What a wheel is called is given for each channel, field by field, because
//! label, directory, version and distribution do not follow from each other: they never did where they grew over years.

mod axis;
pub(crate) mod checked_values;
mod expand;
pub mod file;
mod property;
pub mod wheel_name;

use std::collections::BTreeMap;

pub use axis::{Combination, MatrixAxis};
pub use file::{ComputeCapabilities, MatrixPart};
pub use property::VariantProperty;

use self::wheel_name::WheelName;
use crate::error::Error;

/// The matrices of other systems, as they published them, by version.
pub const HISTORICAL_MATRICES: &[(&str, &str)] = &[
    ("1.5", include_str!("../../eras/1.5.toml")),
    ("2.2.1", include_str!("../../eras/2.2.1.toml")),
    ("2.3.2", include_str!("../../eras/2.3.2.toml")),
];

/// Oarlock's own matrix.
pub const OWN_MATRIX: &str = include_str!("../../matrix.toml");

/// All wheels of a file, in the order in which it names them, and the pages that list them.
#[derive(Debug)]
pub struct WheelMatrix {
    /// The address below which the directories lie, without a slash at its end.
    pub host: String,
    /// The address below which the pages lie.
    pub pages_host: String,
    /// The values that each axis may take, in the order of the file.
    pub axes: BTreeMap<MatrixAxis, Vec<String>>,
    /// Which GPUs each version of what drives a device is for, where that is not all.
    pub accelerators: BTreeMap<String, ComputeCapabilities>,
    /// What is published: channels in the order of the file.
    pub channels: Vec<String>,
    /// What wheels are put together of, by name.
    pub parts: BTreeMap<String, MatrixPart>,
    /// All wheels of all channels.
    pub wheels: Vec<MatrixRow>,
    /// Pages of links to them.
    pub pages: Vec<LinkPage>,
    /// The namespaces of what wheels need of a machine, the one that matters most first.
    pub namespaces: Vec<String>,
}

/// One wheel in one channel.
#[derive(Clone, Debug)]
pub struct MatrixRow {
    /// Where it is published.
    pub channel: String,
    /// What the row is called where people read it.
    pub label: String,
    /// Where the file lies below the host: empty, or a path that begins with a slash.
    pub directory: String,
    /// What it is on each axis that means something for it.
    pub combination: Combination,
    /// What the file is called.
    pub name: WheelName,
    /// What is in it, by the names of what is built.
    pub parts: Vec<String>,
    /// What has to happen before it can be built; nothing for what is built today.
    pub planned: Option<String>,
    /// What has to be known of it.
    pub note: Option<String>,
    /// How large the file may be.
    pub budget: Option<u64>,
    /// How large its files may be together once they are installed.
    pub installed_budget: Option<u64>,
    /// What it needs of a machine.
    pub properties: Vec<VariantProperty>,
}

impl MatrixRow {
    /// Whether it works without another wheel.
    pub(crate) fn is_standalone(&self) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part == "core")
    }

    /// Whether it is the core and brings no more than every core does.
    pub(crate) fn is_core_alone(&self) -> bool {
        self.parts == ["core", "cpu"]
    }

    /// What asks pip for just this wheel.
    pub(crate) fn requirement(&self) -> String {
        self.requirement_with(&[])
    }

    /// The same with extras.
    pub(crate) fn requirement_with(&self, extras: &[String]) -> String {
        let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
        format!("{}{extras}=={}", self.name.distribution, self.name.version)
    }

    /// What brings it where the core is asked for, as in `oarlock[cuda12]`.
    pub(crate) fn extra_name(&self) -> &str {
        let distribution = &self.name.distribution;
        distribution.strip_prefix("oarlock-").unwrap_or(distribution)
    }

    /// Where the file lies below the host.
    #[must_use]
    pub fn file_path(&self) -> String {
        format!("{}/{}", self.directory, self.name)
    }
}

/// A page of links to some of the wheels, such as `pip install --find-links` reads.
#[derive(Debug)]
pub struct LinkPage {
    /// Where it lies below the host.
    pub path: String,
    /// The wheels it lists, as places in [`WheelMatrix::wheels`].
    pub wheels: Vec<usize>,
}

impl WheelMatrix {
    /// Reads a matrix; `source` is what errors call it.
    ///
    /// # Errors
    ///
    /// When the text is no matrix, or one whose wheels cannot all be told apart or installed.
    pub fn from_toml(source: &str, text: &str) -> Result<Self, Error> {
        let file = toml::from_str(text).map_err(|error| Error::from_toml(source, text, &error))?;
        expand::expand_matrix(file).map_err(|error| error.in_file(source))
    }

    /// The core alone, as most take it, or without AVX.
    pub(crate) fn core_row(&self, without_avx: bool) -> Result<&MatrixRow, Error> {
        let isa = if without_avx { "noavx" } else { "any" };
        let is_it = |row: &&MatrixRow| {
            row.is_core_alone() && row.combination.get(&MatrixAxis::Isa).is_some_and(|it| it == isa)
        };
        let core = self.wheels.iter().find(is_it);
        core.ok_or_else(|| {
            Error::new(format!("expected a core alone with `isa = \"{isa}\"` in the matrix, found none"))
        })
    }

    /// The packages of Python that bring what a wheel opens.
    pub(crate) fn library_requirements(&self, wheel: &MatrixRow) -> Vec<String> {
        let parts = wheel.parts.iter().filter_map(|part| self.parts.get(part));
        parts.flat_map(|part| part.libraries.clone()).collect()
    }

    /// The matrix of an era, by its version.
    ///
    /// # Errors
    ///
    /// When there is none of that version.
    pub fn historical(version: &str) -> Result<Self, Error> {
        let known = || HISTORICAL_MATRICES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (_, text) = HISTORICAL_MATRICES
            .iter()
            .find(|(name, _)| *name == version)
            .ok_or_else(|| Error::new(format!("expected an era, one of {}; found `{version}`", known())))?;
        Self::from_toml(&format!("eras/{version}.toml"), text)
    }
}
