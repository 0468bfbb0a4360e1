//! Spatial ops, which sample between pixels, reassemble blocks into images, or compute where to sample.
//!
//! A sample between pixels is a weighted sum of a few pixels. Their positions and weights depend only on the sampling position, so
//! they are computed once for all channels.

mod affine;
mod block_settings;
mod col2im;
mod deform_conv;
mod determinant;
mod grid_sample;
mod max_roi_pool;
mod roi_align;
mod taps;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, family};

const SPATIAL_FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

pub(crate) fn spatial_kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        affine::affine_grid_kernels(),
        col2im::col2im_kernels(),
        deform_conv::deform_conv_kernels(),
        determinant::determinant_kernels(),
        grid_sample::grid_sample_kernels(),
        max_roi_pool::max_roi_pool_kernels(),
        roi_align::roi_align_kernels(),
    ];
    kernels.into_iter().flatten().map(|kernel| kernel.with_flags(KernelFlags::DETERMINISTIC)).collect()
}
