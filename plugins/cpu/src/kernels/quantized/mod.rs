//! Convolutions, products and poolings of eight-bit numbers, of which each stands for a real one: `scale · (number − zero)`.
//!
//! Products are summed exactly in 32 bits, by instructions that multiply and add four pairs of bytes at once where the
//! machine has them ([`vector`]). A sum becomes eight bits again while it is in the nearest cache ([`finish`]): times a
//! factor, plus what is to be added, rounded, within bounds, so that activations that only cut off cost nothing.
//!
//! Images have their channels last, as for [`super::channels_last`], and a convolution is computed as it is there: as a
//! product of matrices whose left rows are read through pointers ([`dense`]), or channel by channel ([`interleaved`], or
//! [`depthwise`] on machines without the instructions for it). A product of matrices is a convolution whose pixels are the
//! rows.
//!
//! No sum is shared between threads, so a result does not depend on how many there are.

mod conv;
mod dense;
mod depthwise;
pub(super) mod dequantized;
mod finish;
mod interleaved;
pub(super) mod layer;
pub(super) mod linear;
mod matmul;
pub(super) mod packed;
mod pool;
mod rows;
pub(super) mod sums;
#[cfg(test)]
mod tests;
mod tile;
mod vector;
mod windows;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![conv::kernel(), matmul::kernel(), pool::kernel(), linear::kernel()];
    kernels.extend(dequantized::kernels());
    kernels
}
