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
//! [tags]                                   # what a platform is called in the name of a wheel
//! linux = "manylinux_2_28_x86_64"
//!
//! [[channels]]
//! name = "release"
//! version = "1.0.0"
//!
//! [[wheels]]                               # all combinations of the values given; "*" stands for all of an axis
//! platform = "linux"
//! device = "*"
//! python = "*"
//! names.release = { label = "{device}", directory = "/1.0.0/{device}", distribution = "example-{device}" }
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;

use super::axis::MatrixAxis;
use super::checked_values;
use crate::major_minor::MajorMinor;

/// A matrix file before expansion.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixFile {
    #[serde(deserialize_with = "checked_values::deserialize_address")]
    pub(crate) host: String,
    /// The address of the pages, if it is not that of the wheels.
    #[serde(default, deserialize_with = "checked_values::deserialize_optional_address")]
    pub(crate) pages_host: Option<String>,
    #[serde(default)]
    pub(crate) file_names: FileNameScope,
    pub(crate) axes: BTreeMap<MatrixAxis, Vec<String>>,
    /// The wheel platform tag of each platform.
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// Compute capabilities that each accelerator version supports, if limited.
    #[serde(default)]
    pub(crate) accelerators: BTreeMap<String, ComputeCapabilities>,
    pub(crate) channels: Vec<ReleaseChannel>,
    /// The parts of wheels.
    #[serde(default)]
    pub(crate) parts: BTreeMap<String, MatrixPart>,
    pub(crate) wheels: Vec<MatrixGroup>,
    #[serde(default)]
    pub(crate) exclude: Vec<ExcludedCombination>,
    #[serde(default)]
    pub(crate) pages: Vec<PageGroup>,
    /// Requirements of wheels on a machine, most important first.
    #[serde(default)]
    pub(crate) properties: Vec<PropertyRule>,
}

/// A range of NVIDIA compute capabilities that a CUDA version compiles for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "checked_values::CapabilityRange")]
pub struct ComputeCapabilities {
    /// The lowest capability, inclusive.
    pub lowest: MajorMinor,
    /// The highest capability, inclusive; `None` if open-ended.
    pub highest: Option<MajorMinor>,
}

impl ComputeCapabilities {
    /// True if a capability is in the range.
    #[must_use]
    pub fn includes_capability(&self, capability: MajorMinor) -> bool {
        self.lowest <= capability && self.highest.is_none_or(|highest| capability <= highest)
    }
}

/// The scope in which file names of wheels must be unique.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub(crate) enum FileNameScope {
    #[default]
    #[serde(rename = "unique")]
    Unique,
    /// Historical: directories alone tell such wheels apart, and an index cannot hold them.
    #[serde(rename = "unique in a directory")]
    UniqueInDirectory,
}

/// A release channel with its version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseChannel {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// A historical word in place of a version; pip rejects such names.
    pub(crate) no_version: Option<String>,
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
    /// give correct results, so tests of results do not notice.
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
pub(crate) enum AxisSelector {
    One(String),
    Some(Vec<String>),
}

/// Selected values on some axes.
pub(crate) type AxisSelection = BTreeMap<MatrixAxis, AxisSelector>;

/// A group of similar wheels: all combinations of the selected values. An axis without selection does not apply to them.
#[derive(Debug, Deserialize)]
pub(crate) struct MatrixGroup {
    /// The naming rule in each channel that has the wheels.
    pub(crate) names: BTreeMap<String, NamingRule>,
    /// Overrides the platform tag.
    pub(crate) tag: Option<String>,
    #[serde(default)]
    pub(crate) parts: Vec<String>,
    pub(crate) planned: Option<String>,
    /// A remark for users.
    pub(crate) note: Option<String>,
    /// The limit on the file size.
    pub(crate) budget_mb: Option<u32>,
    /// The limit on the installed size.
    pub(crate) installed_budget_mb: Option<u32>,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// Wheel names in a channel, with placeholders such as `{device}` for axis values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamingRule {
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) directory: String,
    pub(crate) distribution: String,
    /// Follows the version of the channel.
    #[serde(default)]
    pub(crate) suffix: String,
}

/// Combinations to exclude from the groups.
#[derive(Debug, Deserialize)]
pub(crate) struct ExcludedCombination {
    pub(crate) because: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// A group of similar pages, one for each combination of the selected values. An axis without selection may have any value.
#[derive(Debug, Deserialize)]
pub(crate) struct PageGroup {
    pub(crate) channel: String,
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// A machine requirement of all wheels that match a selection.
#[derive(Debug, Deserialize)]
pub(crate) struct PropertyRule {
    /// In the form `namespace :: feature :: value`.
    pub(crate) property: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}
