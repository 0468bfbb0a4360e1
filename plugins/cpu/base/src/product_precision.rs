//! The precision of products, as the attribute `precision` of ops of the domain `oarlock` sets it.

use oarlock_sdk::{KernelCall, PluginError, Result};

/// The type of the factors of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductPrecision {
    /// Factors as they are.
    F32,
    /// Factors rounded to bf16; sums are f32 all the same.
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
