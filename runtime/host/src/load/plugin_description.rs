//! The description of a plugin, copied out of its memory into safe values.

use std::fmt;

use oarlock_abi as abi;
use serde::{Deserialize, Serialize};

use crate::{ContractRange, PluginKind};

/// The evidence that a device plugin works, as claimed by its vendor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupportLevel {
    /// No claim, or one that this host does not know.
    #[default]
    Unspecified,
    /// It passed its tests against an emulation of the vendor's documented interface.
    EmulatorVerified,
    /// It passed its tests with the real compiler or driver, without the chip.
    DriverVerified,
    /// It passed its tests on the chip.
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

/// The identity and contents of a plugin. All texts are UTF-8 of limited length and safe to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginInfo {
    /// The name that identifies the plugin.
    pub name: String,
    /// The version of the plugin itself.
    pub version: String,
    /// The name of the vendor.
    pub vendor: String,
    /// The package that users install to update the plugin.
    pub package: String,
    /// The role of the plugin: device, kernels or layer.
    pub kind: PluginKind,
    /// The device type that it provides, as users type it.
    pub device_type: Option<String>,
    /// A variant of the device type, such as `V1`.
    pub device_subtype: Option<String>,
    /// The environment variable that lists the visible devices.
    pub visible_devices_variable: Option<String>,
    /// The evidence that the plugin works.
    pub support_level: SupportLevel,
    /// Details of the evidence: chip, driver, date.
    pub support_note: String,
    /// The versions of the contract that it understands.
    pub contract: ContractRange,
    /// The locked profiles that it implements.
    pub profiles: Vec<String>,
    /// The drafts of profiles that it provides.
    pub drafts: Vec<DraftInfo>,
    /// The number of its kernels.
    pub kernel_count: usize,
    /// True if it may be unloaded while the program runs.
    pub unloadable: bool,
    /// True if several hosts in one process may use it.
    pub several_hosts: bool,
}

/// A draft of a profile that a plugin provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftInfo {
    /// The name of the profile, such as `graph`.
    pub profile: String,
    /// The number of the draft; 0 for a table from before the profile was a draft.
    pub number: u32,
    /// True if this host implements the draft with this number.
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

/// The op that a kernel implements, and its requirements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// The name of the op in its schema.
    pub op: String,
    /// The domain of the op; empty means ONNX.
    pub domain: String,
    /// The device type that it runs on.
    pub device_type: String,
    /// The first version of the op that it implements.
    pub version_min: u32,
    /// The last version of the op that it implements; `None` means all later ones.
    pub version_max: Option<u32>,
    /// The priority: if several kernels match, the one with the highest score runs.
    pub score: i32,
    /// True if the same inputs always produce bit-identical outputs.
    pub deterministic: bool,
    /// True if it may return before its work in the stream is done.
    pub asynchronous: bool,
    /// True if it sets the shape of some output itself, during the run.
    pub allocates_outputs: bool,
    /// The requirements on its inputs.
    pub inputs: Vec<OperandInfo>,
    /// The requirements on its outputs.
    pub outputs: Vec<OperandInfo>,
    /// Pairs of output and input that may share memory.
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

/// A kernel's requirements on one operand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperandInfo {
    /// The name of the operand in the schema of the op, or empty.
    pub name: String,
    /// The permitted dtypes: bit n stands for the dtype with the number n.
    pub dtypes: u64,
    /// Operands with the same nonzero group must have the same dtype.
    pub dtype_group: u32,
    /// The smallest number of dimensions.
    pub rank_min: u32,
    /// The largest number of dimensions.
    pub rank_max: u32,
    /// The kind of memory, by its number in the contract.
    pub place: u32,
    /// The layout, by its number in the contract.
    pub layout: u32,
    /// True if the operand may be left out.
    pub optional: bool,
    /// True if it stands for all further operands.
    pub variadic: bool,
    /// True if it may be non-contiguous.
    pub strided: bool,
    /// True if a constant may be unaligned.
    #[serde(default)]
    pub unaligned: bool,
    /// True if the kernel asks for the elements of a constant.
    #[serde(default)]
    pub on_demand: bool,
}

impl OperandInfo {
    /// True if the operand may have this dtype.
    pub fn accepts_dtype(&self, dtype: abi::Dtype) -> bool {
        dtype.0 < u64::BITS && self.dtypes & (1 << dtype.0) != 0
    }
}
