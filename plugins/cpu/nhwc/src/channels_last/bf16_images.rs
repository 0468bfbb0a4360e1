//! Images whose elements are bf16, in pairs.

/// Which images are bf16. In these, each word of an `f32` is a pair of channels of one pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bf16Images {
    pub(super) input: bool,
    pub(super) residual: bool,
    pub(super) output: bool,
}

impl Bf16Images {
    pub(super) const NONE: Self = Self { input: false, residual: false, output: false };
}

/// The size in words of an `f32`: half as many if the numbers are pairs of bf16.
pub(super) fn word_count(numbers: usize, are_paired: bool) -> usize {
    if are_paired { numbers / 2 } else { numbers }
}
