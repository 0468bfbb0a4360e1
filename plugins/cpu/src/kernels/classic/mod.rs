//! Models that are no networks: the ops of the domain `ai.onnx.ml`, for features, linear models, trees and support
//! vectors.

mod features;
mod finish;
mod forest;
mod labels;
mod linear;
mod matrix;
mod svm;
mod trees;
mod walk;

use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, family};

use crate::device::Cpu;

const DOMAIN: &str = "ai.onnx.ml";
/// The numbers that these ops take.
const NUMBERS: DtypeSet = family::FLOATING.union(DtypeSet::I32).union(DtypeSet::I64);

/// The kernels of this family.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let kernels =
        [features::kernels(), labels::kernels(), linear::kernels(), svm::kernels(), trees::kernels()];
    let finish = |kernel: Kernel<Cpu>| kernel.domain(DOMAIN).flags(KernelFlags::DETERMINISTIC);
    kernels.into_iter().flatten().map(finish).collect()
}
