//! The kernels of the CPU device, by family. A family only exports a function that returns its rows.

mod activation;
mod attention;
mod attributes;
mod channels_last;
mod conv;
mod elementwise;
mod linear_algebra;
mod matmul;
mod movement;
mod normalize;
mod order;
mod pool;
mod precision;
mod quantized;
mod random;
mod recurrent;
mod reduce;
mod rows;
mod signal;
mod spatial;
mod text;
mod traditional_ml;
mod training;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

pub(crate) fn all_kernels() -> Vec<Kernel<Cpu>> {
    let families: &[fn() -> Vec<Kernel<Cpu>>] = &[
        movement::movement_kernels,
        elementwise::elementwise_kernels,
        reduce::reduce_kernels,
        normalize::normalize_kernels,
        order::order_kernels,
        random::random_kernels,
        recurrent::recurrent_kernels,
        signal::signal_kernels,
        spatial::spatial_kernels,
        traditional_ml::traditional_ml_kernels,
        text::text_kernels,
        training::training_kernels,
        linear_algebra::linear_algebra_kernels,
        matmul::matmul_kernels,
        attention::attention_kernels,
        conv::conv_kernels,
        pool::pool_kernels,
        channels_last::channels_last_kernels,
        quantized::quantized_kernels,
    ];
    families.iter().flat_map(|family| family()).collect()
}
