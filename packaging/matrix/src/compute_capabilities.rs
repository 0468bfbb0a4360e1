//! Ranges of NVIDIA compute capabilities.

use oarlock_formats::error::Error;
use serde::Deserialize;

use crate::major_minor::MajorMinor;

/// A range of NVIDIA compute capabilities that a CUDA version compiles for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "CapabilityRange")]
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

/// A range of compute capabilities as the file writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CapabilityRange {
    lowest: MajorMinor,
    highest: Option<MajorMinor>,
}

impl TryFrom<CapabilityRange> for ComputeCapabilities {
    type Error = Error;

    fn try_from(CapabilityRange { lowest, highest }: CapabilityRange) -> Result<Self, Error> {
        match highest.filter(|highest| *highest < lowest) {
            Some(highest) => Err(Error::new(format!(
                "expected a `highest` that is not below `lowest`, which is {lowest}; found {highest}"
            ))),
            None => Ok(Self { lowest, highest }),
        }
    }
}
