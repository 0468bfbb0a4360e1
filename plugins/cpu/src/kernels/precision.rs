//! How precisely products are computed, as the attribute `precision` of ops of the domain `oarlock` says.

use oarlock_sdk::{KernelCall, PluginError, Result};

/// What the factors of products are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProductPrecision {
    /// Numbers as they are.
    F32,
    /// Numbers rounded to bf16; sums are numbers of f32 all the same.
    Bf16,
}

impl ProductPrecision {
    /// What a call asks for.
    pub(crate) fn from_attribute(call: &KernelCall<'_>) -> Result<Self> {
        match call.string_attribute("precision")?.unwrap_or("") {
            "" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            other => Err(PluginError::invalid_argument(format!(
                "expected `precision` to be empty or `bf16`, found `{other}`"
            ))),
        }
    }
}
