//! The file format of a matrix.
//!
//! ```toml
//! host = "https://example.org/wheels"
//!
//! [axes]                                   # all values that an axis may take
//! platform = ["linux"]
//! device = ["cpu", "cuda"]
//! python = ["cp311-abi3"]
//!
//! [tags]                                   # the platform tag in wheel names
//! linux = "manylinux_2_28_x86_64"
//!
//! [[channels]]
//! name = "release"
//! version = "1.0.0"
//!
//! [[wheels]]                               # all combinations of these values; "*" selects every value of an axis
//! platform = "linux"
//! device = "*"
//! python = "*"
//! names.release = { label = "{device}", directory = "/1.0.0/{device}", distribution = "example-{device}" }
//! ```

use std::collections::BTreeMap;

use super::axis::MatrixAxis;
use super::checked_values;
use crate::compute_capabilities::ComputeCapabilities;
use serde::Deserialize;

/// A matrix file before expansion.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixFile {
    /// The address under which wheels are published.
    #[serde(deserialize_with = "checked_values::deserialize_address")]
    pub host: String,
    /// The address of the pages, if it differs from `host`.
    #[serde(default, deserialize_with = "checked_values::deserialize_optional_address")]
    pub pages_host: Option<String>,
    /// Where file names must be unique.
    #[serde(default)]
    pub file_names: FileNameScope,
    /// All values that each axis may take, in the order in which rows are listed.
    pub axes: BTreeMap<MatrixAxis, Vec<String>>,
    /// The wheel platform tag of each platform.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Compute capabilities that each accelerator version supports, if limited.
    #[serde(default)]
    pub accelerators: BTreeMap<String, ComputeCapabilities>,
    /// The release channels, each with its version.
    pub channels: Vec<ReleaseChannel>,
    /// The parts of wheels.
    #[serde(default)]
    pub parts: BTreeMap<String, MatrixPart>,
    /// The groups of wheels.
    pub wheels: Vec<MatrixGroup>,
    /// Combinations to exclude from all groups.
    #[serde(default)]
    pub exclude: Vec<ExcludedCombination>,
    /// Pages that list wheels.
    #[serde(default)]
    pub pages: Vec<PageGroup>,
    /// Requirements of wheels on a machine, most important first.
    #[serde(default)]
    pub properties: Vec<PropertyRule>,
}

/// The scope in which file names of wheels must be unique.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub enum FileNameScope {
    /// No two wheels of a channel share a name.
    #[default]
    #[serde(rename = "unique")]
    Unique,
    /// Historical: wheels with the same name are in different directories, so no index can contain them all.
    #[serde(rename = "unique in a directory")]
    UniqueInDirectory,
}

/// A release channel with its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseChannel {
    /// Its name, which `names` of a group refers to.
    pub name: String,
    /// The version of its wheels.
    pub version: Option<String>,
    /// A historical word in place of a version; pip rejects such names.
    pub no_version: Option<String>,
}

/// A compiled part, and its requirements at run time.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MatrixPart {
    /// Its cargo package.
    pub package: String,
    /// The name of the compiled file, if it is neither the Python package nor a plugin.
    pub file: Option<String>,
    /// The cargo features to enable; default features are off.
    #[serde(default)]
    pub features: Vec<String>,
    /// True if it contains AVX code, selected at run time. Rows without AVX use a build that omits it.
    #[serde(default)]
    pub has_avx: bool,
    /// The minimum percentage of SIMD instructions in its `f32` arithmetic. Kernels that the compiler failed to vectorize still
    /// give correct results, so no other test detects them.
    pub vectorized_percent: Option<u8>,
    /// Libraries that it opens at run time, which do not show in its ELF headers.
    #[serde(default, deserialize_with = "checked_values::deserialize_sonames")]
    pub opens: Vec<String>,
    /// Library names that its data contains for other reasons.
    #[serde(default, deserialize_with = "checked_values::deserialize_sonames")]
    pub names: Vec<String>,
    /// Python packages that provide these libraries on a machine without them.
    #[serde(default, deserialize_with = "checked_values::deserialize_requirements")]
    pub libraries: Vec<String>,
}

/// One value of an axis, a list, or all with `"*"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AxisSelector {
    /// One value, or all for `*`.
    One(String),
    /// Several values.
    Some(Vec<String>),
}

/// Selected values on some axes.
pub type AxisSelection = BTreeMap<MatrixAxis, AxisSelector>;

/// A group of similar wheels: all combinations of the selected values. An axis without selection does not apply to them.
#[derive(Debug, Deserialize)]
pub struct MatrixGroup {
    /// The naming rule in each channel that has the wheels.
    pub names: BTreeMap<String, NamingRule>,
    /// Overrides the platform tag.
    pub tag: Option<String>,
    /// The parts that its wheels contain.
    #[serde(default)]
    pub parts: Vec<String>,
    /// Why the wheels cannot be built yet.
    pub planned: Option<String>,
    /// A remark for users.
    pub note: Option<String>,
    /// The limit on the file size.
    pub budget_mb: Option<u32>,
    /// The limit on the installed size.
    pub installed_budget_mb: Option<u32>,
    /// The selected values.
    #[serde(flatten)]
    pub selection: AxisSelection,
}

/// Wheel names in a channel, with placeholders such as `{device}` for axis values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamingRule {
    /// The name of the row in tables.
    pub label: String,
    /// The directory under the host.
    #[serde(default)]
    pub directory: String,
    /// The name under which pip knows the wheel.
    pub distribution: String,
    /// A suffix for the channel's version.
    #[serde(default)]
    pub suffix: String,
}

/// Combinations to exclude from the groups.
#[derive(Debug, Deserialize)]
pub struct ExcludedCombination {
    /// The reason, which the list of exclusions shows.
    pub because: String,
    /// The selected values.
    #[serde(flatten)]
    pub selection: AxisSelection,
}

/// A group of similar pages, one for each combination of the selected values. An axis without selection may have any value.
#[derive(Debug, Deserialize)]
pub struct PageGroup {
    /// The channel whose wheels it lists.
    pub channel: String,
    /// The path of the page, with placeholders.
    pub path: String,
    /// The selected values.
    #[serde(flatten)]
    pub selection: AxisSelection,
}

/// A machine requirement of all wheels that match a selection.
#[derive(Debug, Deserialize)]
pub struct PropertyRule {
    /// In the form `namespace :: feature :: value`.
    pub property: String,
    /// The selected values.
    #[serde(flatten)]
    pub selection: AxisSelection,
}
