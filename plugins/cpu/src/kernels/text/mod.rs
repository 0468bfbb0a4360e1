//! Ops on text, and those that count pieces of it.

mod equal;
mod hash;
mod n_grams;
mod normalize;
mod numbers;
pub(crate) mod operand;
mod regex;
mod split;

use oarlock_sdk::{Kernel, KernelFlags};

use crate::device::Cpu;

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        equal::kernels(),
        hash::kernels(),
        n_grams::kernels(),
        normalize::kernels(),
        numbers::kernels(),
        regex::kernels(),
        split::kernels(),
    ];
    kernels.into_iter().flatten().map(|kernel| kernel.flags(KernelFlags::DETERMINISTIC)).collect()
}
