//! The precision of products, which ops of the domain `oarlock` set by their attribute `precision`.

use oarlock_sdk::{KernelCall, PluginError, Result};

/// The type to which the factors of a product are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductPrecision {
    /// Factors are not rounded.
    F32,
    /// Factors are rounded to bf16; sums stay f32.
    Bf16,
}

impl ProductPrecision {
    pub fn from_attribute(call: &KernelCall<'_>) -> Result<Self> {
        match call.string_attribute("precision")?.unwrap_or("") {
            "" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            other => Err(PluginError::invalid_argument(format!(
                "expected `precision` to be empty or `bf16`, found `{other}`"
            ))),
        }
    }
}
