//! The rounding that a session permits in products.

use std::fmt;

/// Rounding that a session permits in exchange for speed. It is a permission, not a duty: where rounding gains nothing, or a
/// device has no kernel for it, results are exact as usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrecisionMode {
    /// No rounding: products of f32 values are computed in f32.
    #[default]
    F32,
    /// Factors in f32 may be rounded to bf16 (two to three significant digits) before they are multiplied, and so may images
    /// that only convolutions read. Sums and all other values between ops stay f32.
    Bf16,
}

impl PrecisionMode {
    /// Every mode, the most precise first.
    pub const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// The name that options and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}

impl fmt::Display for PrecisionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
