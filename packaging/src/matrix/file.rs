//! A matrix as it is written down.
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

/// A file that describes a matrix.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixFile {
    #[serde(deserialize_with = "checked_values::deserialize_address")]
    pub(crate) host: String,
    /// Where the pages are, if not there.
    #[serde(default, deserialize_with = "checked_values::deserialize_optional_address")]
    pub(crate) pages_host: Option<String>,
    #[serde(default)]
    pub(crate) file_names: FileNameScope,
    pub(crate) axes: BTreeMap<MatrixAxis, Vec<String>>,
    /// What each platform is called in the name of a wheel.
    #[serde(default)]
    pub(crate) tags: BTreeMap<String, String>,
    /// Which GPUs each version of what drives a device is for, where that is not all.
    #[serde(default)]
    pub(crate) accelerators: BTreeMap<String, ComputeCapabilities>,
    pub(crate) channels: Vec<ReleaseChannel>,
    /// What wheels are put together of.
    #[serde(default)]
    pub(crate) parts: BTreeMap<String, MatrixPart>,
    pub(crate) wheels: Vec<MatrixGroup>,
    #[serde(default)]
    pub(crate) exclude: Vec<ExcludedCombination>,
    #[serde(default)]
    pub(crate) pages: Vec<PageGroup>,
    /// What wheels need of a machine; what matters most comes first.
    #[serde(default)]
    pub(crate) properties: Vec<PropertyRule>,
}

/// What NVIDIA calls compute capability: from which on it compiles for a GPU, and up to which where that is known.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "checked_values::CapabilityRange")]
pub struct ComputeCapabilities {
    /// The first.
    pub lowest: MajorMinor,
    /// The last; nothing for what may yet learn more.
    pub highest: Option<MajorMinor>,
}

impl ComputeCapabilities {
    /// Whether a GPU of this one is among them.
    #[must_use]
    pub fn includes_capability(&self, capability: MajorMinor) -> bool {
        self.lowest <= capability && self.highest.is_none_or(|highest| capability <= highest)
    }
}

/// Among which wheels a file name must stand for one alone.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub(crate) enum FileNameScope {
    #[default]
    #[serde(rename = "unique")]
    Unique,
    /// Told apart by their directories alone, as wheels once were. An index cannot hold them.
    #[serde(rename = "unique in a directory")]
    UniqueInDirectory,
}

/// Where wheels are published, and as which version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseChannel {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// What stood where a version should; pip refuses such names.
    pub(crate) no_version: Option<String>,
}

/// Something that is compiled, and what it needs where it runs.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MatrixPart {
    /// The package of cargo that it is.
    pub package: String,
    /// What the file is called that comes of it, where it is neither the Python package nor a plugin.
    pub file: Option<String>,
    /// Features of that package; it has no others.
    #[serde(default)]
    pub features: Vec<String>,
    /// Whether it has instructions of AVX for processors that have them. Rows without AVX take a build that leaves them out.
    #[serde(default)]
    pub has_avx: bool,
    /// The least share, in percent, that vector instructions must have of its arithmetic of 32-bit floats. Kernels that a compiler
    /// did not vectorize give the right numbers, so that no test of results finds them.
    pub vectorized_percent: Option<u8>,
    /// Libraries that it opens while it runs, which nothing that reads its header can see.
    #[serde(default, deserialize_with = "checked_values::deserialize_sonames")]
    pub opens: Vec<String>,
    /// Libraries that its text names for another reason.
    #[serde(default, deserialize_with = "checked_values::deserialize_sonames")]
    pub names: Vec<String>,
    /// Packages of Python that bring such libraries to a machine that has none.
    #[serde(default, deserialize_with = "checked_values::deserialize_requirements")]
    pub libraries: Vec<String>,
}

/// One value of an axis, some, or with `"*"` all.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AxisSelector {
    One(String),
    Some(Vec<String>),
}

/// Some values of some axes.
pub(crate) type AxisSelection = BTreeMap<MatrixAxis, AxisSelector>;

/// Wheels that are alike: all combinations of the values that are selected. An axis that is not selected means nothing for
/// them.
#[derive(Debug, Deserialize)]
pub(crate) struct MatrixGroup {
    /// What they are called in each channel that has them.
    pub(crate) names: BTreeMap<String, NamingRule>,
    /// Stands in place of the tag of the platform.
    pub(crate) tag: Option<String>,
    #[serde(default)]
    pub(crate) parts: Vec<String>,
    pub(crate) planned: Option<String>,
    /// What has to be known of it.
    pub(crate) note: Option<String>,
    /// How large the file may be.
    pub(crate) budget_mb: Option<u32>,
    /// How large its files may be together once they are installed.
    pub(crate) installed_budget_mb: Option<u32>,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// What wheels are called in a channel. `{device}` and the like stand for the value on an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamingRule {
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) directory: String,
    pub(crate) distribution: String,
    /// What follows the version of the channel.
    #[serde(default)]
    pub(crate) suffix: String,
}

/// Combinations that there are no wheels for, though groups stand for them.
#[derive(Debug, Deserialize)]
pub(crate) struct ExcludedCombination {
    pub(crate) because: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// Pages that are alike, one for all combinations of the values that are selected. An axis that is not selected may have
/// any value.
#[derive(Debug, Deserialize)]
pub(crate) struct PageGroup {
    pub(crate) channel: String,
    pub(crate) path: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}

/// What all wheels need of a machine that have one of the values that are selected on each axis.
#[derive(Debug, Deserialize)]
pub(crate) struct PropertyRule {
    /// As `namespace :: feature :: value`.
    pub(crate) property: String,
    #[serde(flatten)]
    pub(crate) selection: AxisSelection,
}
