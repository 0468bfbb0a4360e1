//! The axes of the matrix.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A property in which wheels differ. Combinations are listed in this order, with the last axis changing fastest.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MatrixAxis {
    /// The operating system and architecture.
    Platform,
    /// The kind of device that the wheel has kernels for.
    Device,
    /// The version of the device's software stack, such as CUDA.
    Accelerator,
    /// The library for matrix products.
    Blas,
    /// The instruction set of the CPU.
    Isa,
    /// Interpreter and ABI, such as `cp311-abi3`.
    Python,
}

impl MatrixAxis {
    /// All axes, in order.
    pub const ALL: [Self; 6] =
        [Self::Platform, Self::Device, Self::Accelerator, Self::Blas, Self::Isa, Self::Python];

    /// The name in files and tables.
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

/// A value on each axis that applies: a wheel for the CPU has no accelerator version.
pub type Combination = BTreeMap<MatrixAxis, String>;
