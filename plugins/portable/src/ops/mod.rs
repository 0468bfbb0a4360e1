//! The kernels, by family. A family's `kernels` returns its rows; nothing else of it is seen outside.

mod binary;
mod clip;
mod create;
mod elementwise;
mod gather;
mod images;
mod matmul;
mod movement;
mod reduce;
mod row;
mod rows;
mod slice;
mod unary;
mod window;

use oarlock_sdk::Kernel;

use crate::device::Gpus;
use crate::gpu::Gpu;

/// What makes the rows of a family.
type Family<G> = fn() -> Vec<Kernel<Gpus<G>>>;

/// Every kernel of this crate, for a plugin whose device is a [`Gpu`].
pub fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let families: [Family<G>; 11] = [
        binary::kernels,
        clip::kernels,
        create::kernels,
        gather::kernels,
        images::kernels,
        matmul::kernels,
        movement::kernels,
        reduce::kernels,
        rows::kernels,
        slice::kernels,
        unary::kernels,
    ];
    families.into_iter().flat_map(|kernels| kernels()).collect()
}
