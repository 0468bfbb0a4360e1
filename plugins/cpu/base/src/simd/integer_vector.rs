//! Vectors of 32-bit sums of byte products. A step multiplies four bytes of inputs, shared by all sums, with four bytes of weights
//! per sum and adds the products to that sum. Sums wrap around, and no intermediate saturates.
//!
//! The four bytes are four factors if the instruction set multiplies bytes exactly. Otherwise bytes are widened to 16 bits first,
//! and the four bytes are two factors.

/// Bytes of inputs, and of weights per sum, in a step: a 32-bit lane.
pub const QUAD: usize = 4;

/// The sign bit of a byte. Flipping it adds 128 to a signed byte, which makes it unsigned.
pub const SIGN_BIT: u8 = 0x80;

/// A SIMD vector of sums.
pub trait IntegerVector: Copy + 'static {
    const LANES: usize;

    /// Bytes of a factor: 1, or 2 if bytes are widened before they are multiplied. Widened inputs are unsigned.
    const FACTOR_BYTES: usize = 1;

    /// The inputs of a step, broadcast to all sums.
    type Inputs: Copy;

    /// The weights of a step for each sum.
    type Weights: Copy;

    /// # Safety
    ///
    /// All lanes can be read, and the machine has the instructions of this type. The instructions are a condition of all functions
    /// here without `self`.
    unsafe fn load(place: *const i32) -> Self;

    /// # Safety
    ///
    /// All lanes can be written.
    unsafe fn store(self, place: *mut i32);

    /// Loads the inputs of a step. Signed bytes are made unsigned by flipping [`SIGN_BIT`].
    ///
    /// # Safety
    ///
    /// Four bytes can be read.
    unsafe fn load_inputs<const SIGNED: bool>(place: *const u8) -> Self::Inputs;

    /// # Safety
    ///
    /// Four bytes can be read for each sum.
    unsafe fn load_weights(place: *const i8) -> Self::Weights;

    /// Adds the products of each lane.
    fn add_products(self, inputs: Self::Inputs, weights: Self::Weights) -> Self;

    fn add(self, other: Self) -> Self;
}
