//! Normalizations: along one axis, over the last axes, over groups of channels, and over a batch.

mod batch_norm;
mod group_norm;
mod layer_norm;
mod mean_variance;
mod moments;
mod parameters;
mod skip_layer_norm;
mod softmax;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{DtypeSet, Kernel, OperandSpec, family};

pub(crate) use self::softmax::{LogSoftmaxLine, normalize_axis};

/// Elements of lines normalized together: 8 KiB of f32, which stay in L1 over all passes.
const L1_ELEMENTS: usize = 2048;

/// The dtypes of all normalizations.
const REALS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

const fn real_operand(name: &'static str) -> OperandSpec {
    OperandSpec::new(REALS).with_dtype_group(1).with_name(name)
}

pub(crate) fn normalize_kernels() -> Vec<Kernel<Cpu>> {
    [
        softmax::axis_normalization_kernels(),
        layer_norm::layer_normalization_kernels(),
        group_norm::group_normalization_kernels(),
        batch_norm::batch_normalization_kernels(),
        mean_variance::mean_variance_kernels(),
        skip_layer_norm::skip_layer_norm_kernels(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
