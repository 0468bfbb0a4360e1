//! Kernels that compute each element of the output from the elements at the same place in the inputs.
//!
//! All of them are a [`Pass`](pass::Pass): a loop over elements that lie side by side ([`inner`]), and for each operand a way
//! into that loop and back ([`port`]). A pass brings the operands of a call to as few dimensions as possible ([`plan`]) and walks
//! over them in tiles ([`tile`]), which copies and converts only what the loop cannot take as it lies. So an op is written once,
//! for the types it is computed in; strides, broadcasting, floats of 8 and 16 bits and instruction sets are none of its business.

mod activation;
mod aligned;
mod arrays;
mod binary;
mod bits;
mod cast;
mod complex;
mod conversion;
mod inner;
pub(crate) mod math;
mod number;
mod pass;
mod plan;
mod port;
mod power;
mod quantize;
mod row;
mod select;
mod small_floats;
mod tile;
mod unary;
mod variadic;

use oarlock_sdk::Kernel;

pub(crate) use self::quantize::quantize_by_range;
pub(crate) use self::small_floats::halves;
use crate::device::Cpu;

/// The rows of all element-wise kernels.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = unary::kernels();
    kernels.extend(activation::kernels());
    kernels.extend(arrays::kernels());
    kernels.extend(binary::kernels());
    kernels.extend(complex::kernels());
    kernels.extend(bits::kernels());
    kernels.extend(power::kernels());
    kernels.extend(variadic::kernels());
    kernels.extend(select::kernels());
    kernels.extend(cast::kernels());
    kernels.extend(quantize::kernels());
    kernels
}

#[cfg(test)]
mod tests;
