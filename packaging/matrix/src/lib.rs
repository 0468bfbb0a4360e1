//! The matrix of wheels and their names: device × accelerator × BLAS × instruction set × Python × platform.
//!
//! A [`WheelMatrix`] is read from a file of groups ([`mod@file`]). A group selects values on each axis and stands for all their
//! combinations except those that the file excludes. Names are given for each channel, field by field: label, directory, version
//! and distribution cannot be derived from each other in matrices that grew over years.

mod architecture;
mod axis;
pub mod checked_values;
mod compute_capabilities;
mod expand;
pub mod file;
pub mod generated_tables;
pub mod headers;
pub mod html;
pub mod link_page;
pub mod major_minor;
pub mod matrix_table;
pub mod options;
mod property;
pub mod select;
pub mod wheel_name;

use std::collections::BTreeMap;

use oarlock_formats::error::Error;

use self::wheel_name::WheelName;
pub use architecture::CpuArchitecture;
pub use axis::{Combination, MatrixAxis};
pub use compute_capabilities::ComputeCapabilities;
pub use file::MatrixPart;
pub use property::VariantProperty;

/// The matrices that other systems published, by version.
pub const HISTORICAL_MATRICES: &[(&str, &str)] = &[
    ("1.5", include_str!("../../eras/1.5.toml")),
    ("2.2.1", include_str!("../../eras/2.2.1.toml")),
    ("2.3.2", include_str!("../../eras/2.3.2.toml")),
];

/// Oarlock's own matrix.
pub const OWN_MATRIX: &str = include_str!("../../matrix.toml");

/// All wheels of a file in order, and the pages that list them.
#[derive(Debug)]
pub struct WheelMatrix {
    /// The base address of the directories, without a trailing slash.
    pub host: String,
    /// The base address of the pages.
    pub pages_host: String,
    /// The declared values of each axis, in the order of the file.
    pub axes: BTreeMap<MatrixAxis, Vec<String>>,
    /// Compute capabilities that each accelerator version supports, if limited.
    pub accelerators: BTreeMap<String, ComputeCapabilities>,
    /// The release channels, in the order of the file.
    pub channels: Vec<String>,
    /// The parts of wheels, by name.
    pub parts: BTreeMap<String, MatrixPart>,
    /// All wheels of all channels.
    pub wheels: Vec<MatrixRow>,
    /// Pages of links to wheels.
    pub pages: Vec<LinkPage>,
    /// The namespaces of machine requirements, most important first.
    pub namespaces: Vec<String>,
}

/// One wheel in one channel.
#[derive(Clone, Debug)]
pub struct MatrixRow {
    /// The channel that publishes it.
    pub channel: String,
    /// Its name in tables.
    pub label: String,
    /// The directory below the host: empty, or a path with a leading slash.
    pub directory: String,
    /// Its value on each axis that applies.
    pub combination: Combination,
    /// Its file name.
    pub name: WheelName,
    /// The names of its parts.
    pub parts: Vec<String>,
    /// The obstacle to building it; `None` if it is built today.
    pub planned: Option<String>,
    /// A remark for users.
    pub note: Option<String>,
    /// The limit on the file size, in bytes.
    pub budget: Option<u64>,
    /// The limit on the installed size, in bytes.
    pub installed_budget: Option<u64>,
    /// Its requirements on a machine.
    pub properties: Vec<VariantProperty>,
}

impl MatrixRow {
    /// True if it works without another wheel.
    pub fn is_standalone(&self) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part == "core")
    }

    /// True for the core without additional plugins.
    pub fn is_core_alone(&self) -> bool {
        self.parts == ["core", "cpu"]
    }

    /// The architecture that it is for; `None` if nothing is built for that.
    #[must_use]
    pub fn architecture(&self) -> Option<CpuArchitecture> {
        CpuArchitecture::from_platform_tag(&self.name.platform)
    }

    /// The pip requirement for exactly this wheel.
    pub fn requirement(&self) -> String {
        self.requirement_with(&[])
    }

    /// The pip requirement with extras.
    pub fn requirement_with(&self, extras: &[String]) -> String {
        let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
        format!("{}{extras}=={}", self.name.distribution, self.name.version)
    }

    /// The extra of the core that installs it, such as `cuda12` in `oarlock[cuda12]`.
    pub fn extra_name(&self) -> &str {
        let distribution = &self.name.distribution;
        distribution.strip_prefix("oarlock-").unwrap_or(distribution)
    }

    /// The path of the file below the host.
    #[must_use]
    pub fn file_path(&self) -> String {
        format!("{}/{}", self.directory, self.name)
    }
}

/// A page of links to some wheels, for `pip install --find-links`.
#[derive(Debug)]
pub struct LinkPage {
    /// The path below the host.
    pub path: String,
    /// Indices into [`WheelMatrix::wheels`].
    pub wheels: Vec<usize>,
}

impl WheelMatrix {
    /// Parses a matrix; `source` names it in errors.
    ///
    /// # Errors
    ///
    /// When the text is not a matrix, or its wheels are ambiguous or cannot be installed.
    pub fn from_toml(source: &str, text: &str) -> Result<Self, Error> {
        let file = toml::from_str(text).map_err(|error| Error::from_toml(source, text, &error))?;
        expand::expand_matrix(file).map_err(|error| error.in_file(source))
    }

    /// The row of the core alone for an architecture, either the default one or the one without AVX.
    pub fn core_row(&self, architecture: CpuArchitecture, without_avx: bool) -> Result<&MatrixRow, Error> {
        let is_it = |row: &&MatrixRow| {
            row.is_core_alone()
                && row.architecture() == Some(architecture)
                && row.combination.get(&MatrixAxis::Isa).is_some_and(|it| it == "noavx") == without_avx
        };
        self.wheels.iter().find(is_it).ok_or_else(|| {
            let which = if without_avx { " without AVX" } else { "" };
            let name = architecture.name();
            Error::new(format!("expected a core alone{which} for {name} in the matrix, found none"))
        })
    }

    /// Python packages that provide the libraries that a wheel opens.
    pub fn library_requirements(&self, wheel: &MatrixRow) -> Vec<String> {
        let parts = wheel.parts.iter().filter_map(|part| self.parts.get(part));
        parts.flat_map(|part| part.libraries.clone()).collect()
    }

    /// The historical matrix of a version.
    ///
    /// # Errors
    ///
    /// When there is none for that version.
    pub fn historical(version: &str) -> Result<Self, Error> {
        let known = || HISTORICAL_MATRICES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (_, text) = HISTORICAL_MATRICES
            .iter()
            .find(|(name, _)| *name == version)
            .ok_or_else(|| Error::new(format!("expected an era, one of {}; found `{version}`", known())))?;
        Self::from_toml(&format!("eras/{version}.toml"), text)
    }
}
