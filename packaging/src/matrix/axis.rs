//! What wheels can differ in.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What wheels can differ in. Combinations are listed in this order, the last changing first.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixAxis {
    /// The machine: operating system and architecture.
    Platform,
    /// What computes.
    Device,
    /// The version of what drives the device, such as that of CUDA.
    Accelerator,
    /// The library that multiplies matrices.
    Blas,
    /// The instruction set of the CPU.
    Isa,
    /// Interpreter and ABI, such as `cp311-abi3`.
    Python,
}

impl MatrixAxis {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Platform, Self::Device, Self::Accelerator, Self::Blas, Self::Isa, Self::Python];

    /// What files and tables call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Platform => "platform",
            Self::Device => "device",
            Self::Accelerator => "accelerator",
            Self::Blas => "blas",
            Self::Isa => "isa",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for MatrixAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value on each axis that means something: a wheel for the CPU has no version of an accelerator.
pub type Combination = BTreeMap<MatrixAxis, String>;
