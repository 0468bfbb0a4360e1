//! All kernels, by family. Each family exports one function that returns its kernel records.

mod binary;
mod clip;
mod create;
mod elementwise;
mod gather;
mod images;
mod matmul;
mod movement;
mod reduce;
mod registration;
mod rowwise;
mod slice_and_pad;
mod unary;
mod window;

use oarlock_sdk::Kernel;

use crate::device::GpuDevices;
use crate::gpu::Gpu;

/// From this length on a work-group of 256 work-items shares one row and combines in a tree. A shorter row would keep less than
/// a quarter of them busy, so there each work-item has a row of its own.
const MIN_COOPERATIVE_ROW: i64 = 64;

type KernelFamily<G> = fn() -> Vec<Kernel<GpuDevices<G>>>;

/// Every kernel of this crate, for a plugin whose device is a [`Gpu`].
pub fn all_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let families: [KernelFamily<G>; 11] = [
        binary::binary_kernels,
        clip::clip_kernels,
        create::creation_kernels,
        gather::gather_kernels,
        images::image_kernels,
        matmul::matmul_kernels,
        movement::movement_kernels,
        reduce::reduction_kernels,
        rowwise::rowwise_kernels,
        slice_and_pad::slice_and_pad_kernels,
        unary::unary_kernels,
    ];
    families.into_iter().flat_map(|family| family()).collect()
}
