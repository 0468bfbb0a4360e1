//! What a plugin says of itself, copied out of its memory into values that need no trust.

use std::fmt;

use oarlock_abi as abi;
use serde::{Deserialize, Serialize};

use crate::{ContractRange, PluginKind};

/// What stands behind a device plugin's claim to work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportLevel {
    /// Nothing is claimed, or something this host does not know.
    #[default]
    Unspecified,
    /// It passed against an emulation of the vendor's documented interface.
    EmulatorVerified,
    /// It passed with the real compiler or driver, without the chip.
    DriverVerified,
    /// It passed on the chip.
    HardwareVerified,
}

impl SupportLevel {
    pub(crate) fn from_abi(level: abi::SupportLevel) -> Self {
        match level {
            abi::SupportLevel::EMULATOR_VERIFIED => Self::EmulatorVerified,
            abi::SupportLevel::DRIVER_VERIFIED => Self::DriverVerified,
            abi::SupportLevel::HARDWARE_VERIFIED => Self::HardwareVerified,
            _ => Self::Unspecified,
        }
    }
}

impl fmt::Display for SupportLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "unspecified",
            Self::EmulatorVerified => "emulator-verified",
            Self::DriverVerified => "driver-verified",
            Self::HardwareVerified => "hardware-verified",
        })
    }
}

/// What a plugin says of itself. Every text is UTF-8, of limited length and fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// The name.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// Who made it.
    pub vendor: String,
    /// The package that a user installs to update it.
    pub package: String,
    /// What it is for.
    pub kind: PluginKind,
    /// The device type it provides.
    pub device_type: Option<String>,
    /// A variant of the device type, such as `V1`.
    pub device_subtype: Option<String>,
    /// The environment variable that lists the devices to show.
    pub visible_devices_variable: Option<String>,
    /// What proves that it works.
    pub support_level: SupportLevel,
    /// What stands behind the support level: chip, driver, date.
    pub support_note: String,
    /// The versions of the contract it speaks.
    pub contract: ContractRange,
    /// The profiles it implements, of those that are locked.
    pub profiles: Vec<String>,
    /// The drafts of profiles that it brings.
    pub drafts: Vec<DraftInfo>,
    /// How many kernels it brings.
    pub kernel_count: usize,
    /// Whether it may be unloaded while the program runs.
    pub unloadable: bool,
    /// Whether several hosts in one process may load it.
    pub several_hosts: bool,
}

/// A draft of a profile that a plugin brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftInfo {
    /// The name of the profile.
    pub profile: String,
    /// The number of the draft; 0 for a table from before the profile was a draft.
    pub number: u32,
    /// Whether this host has code for the draft of this number.
    pub used: bool,
}

impl fmt::Display for DraftInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, number, used } = self;
        match (number, used) {
            (0, _) => write!(f, "{profile} from before it was a draft (not used)"),
            (_, true) => write!(f, "{profile} {number}"),
            (_, false) => write!(f, "{profile} {number} (not used)"),
        }
    }
}

/// What a kernel does and demands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// The op as its schema names it.
    pub op: String,
    /// The op's domain; empty is the domain of ONNX.
    pub domain: String,
    /// The device type it runs on.
    pub device_type: String,
    /// The first version of the op that it implements.
    pub version_min: u32,
    /// The last one; `None` means all later ones.
    pub version_max: Option<u32>,
    /// Of several kernels that fit, the one with the highest score runs.
    pub score: i32,
    /// Whether the same inputs give the same bits each time.
    pub deterministic: bool,
    /// Whether it returns before its work in the stream is done.
    pub asynchronous: bool,
    /// Whether it sets the shape of some output itself.
    pub allocates_outputs: bool,
    /// What it demands of its inputs.
    pub inputs: Vec<OperandInfo>,
    /// What its outputs are like.
    pub outputs: Vec<OperandInfo>,
    /// The outputs that may use the memory of an input, as pairs of output and input.
    pub in_place: Vec<(u32, u32)>,
}

impl KernelInfo {
    /// The versions of the op that it implements, such as `7-13`, or `14+` for all from 14 on.
    pub fn version_range(&self) -> String {
        match self.version_max {
            None => format!("{}+", self.version_min),
            Some(max) if max == self.version_min => max.to_string(),
            Some(max) => format!("{}-{max}", self.version_min),
        }
    }
}

/// What a kernel demands of one operand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperandInfo {
    /// The operand's name in the schema of the op, or empty.
    pub name: String,
    /// The dtypes it may have: bit n stands for the dtype with the number n.
    pub dtypes: u64,
    /// Operands with the same number, other than 0, must have the same dtype.
    pub dtype_group: u32,
    /// The least number of dimensions.
    pub rank_min: u32,
    /// The greatest number of dimensions.
    pub rank_max: u32,
    /// The number of the kind of memory it lies in, as the contract counts them.
    pub place: u32,
    /// The number of the order its dimensions are in, as the contract counts them.
    pub layout: u32,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether it stands for all further ones.
    pub variadic: bool,
    /// Whether strides other than contiguous are welcome.
    pub strided: bool,
    /// Whether a constant may lie at any address.
    #[serde(default)]
    pub unaligned: bool,
}

impl OperandInfo {
    /// Whether an operand may have this dtype.
    pub fn accepts_dtype(&self, dtype: abi::Dtype) -> bool {
        dtype.0 < u64::BITS && self.dtypes & (1 << dtype.0) != 0
    }
}
