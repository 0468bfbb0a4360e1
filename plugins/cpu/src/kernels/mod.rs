//! The kernels of the CPU device, by family. A family's `kernels` returns its rows; nothing else of it is seen outside.

mod activation;
mod attention;
mod attributes;
mod channels_last;
mod classic;
mod conv;
mod elementwise;
mod linear;
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
mod training;

use oarlock_sdk::Kernel;

use crate::device::Cpu;

/// Every kernel of the device.
pub(crate) fn all() -> Vec<Kernel<Cpu>> {
    let families: &[fn() -> Vec<Kernel<Cpu>>] = &[
        movement::kernels,
        elementwise::kernels,
        reduce::kernels,
        normalize::kernels,
        order::kernels,
        random::kernels,
        recurrent::kernels,
        signal::kernels,
        spatial::kernels,
        classic::kernels,
        text::kernels,
        training::kernels,
        linear::kernels,
        matmul::kernels,
        attention::kernels,
        conv::kernels,
        pool::kernels,
        channels_last::kernels,
        quantized::kernels,
    ];
    families.iter().flat_map(|kernels| kernels()).collect()
}
