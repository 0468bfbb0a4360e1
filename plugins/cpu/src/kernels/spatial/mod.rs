//! Images seen as places: ops that read between pixels, put blocks back where they were cut out, or say where to look.
//!
//! What is read between pixels is a sum of a few of them. Where these lie and what they weigh depends on the place alone, so it
//! is worked out once for all channels.

mod affine;
mod blocks;
mod deformable;
mod determinant;
mod grid;
mod region_maxima;
mod regions;
mod taps;
mod window;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, family};

use crate::device::Cpu;

const FLOATS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        affine::kernels(),
        blocks::kernels(),
        deformable::kernels(),
        determinant::kernels(),
        grid::kernels(),
        region_maxima::kernels(),
        regions::kernels(),
    ];
    kernels.into_iter().flatten().map(|kernel| kernel.flags(KernelFlags::DETERMINISTIC)).collect()
}
