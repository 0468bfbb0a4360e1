//! Classical models: the ops of the domain `ai.onnx.ml`, for features, linear models, trees and support vectors.

mod decision_tree;
mod feature_matrix;
mod feature_scaling;
mod features;
mod forest;
mod label_encoder;
mod linear_model;
mod post_transform;
mod svm;
mod traversal;
mod trees;
mod weight_matrix;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{DtypeSet, Kernel, KernelFlags, family};

const ML_DOMAIN: &str = "ai.onnx.ml";
const FEATURE_DTYPES: DtypeSet = family::FLOATING.union(DtypeSet::I32).union(DtypeSet::I64);

pub(crate) fn traditional_ml_kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        feature_scaling::feature_scaling_kernels(),
        features::feature_kernels(),
        label_encoder::label_encoder_kernels(),
        linear_model::linear_model_kernels(),
        svm::svm_kernels(),
        trees::tree_kernels(),
    ];
    let finish = |kernel: Kernel<Cpu>| kernel.with_domain(ML_DOMAIN).with_flags(KernelFlags::DETERMINISTIC);
    kernels.into_iter().flatten().map(finish).collect()
}
