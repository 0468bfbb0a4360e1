//! Pooling, which reduces the elements under each window to one, and `LRN`, whose windows slide over channels.

mod global;
mod lrn;
mod max;
mod mean;
#[cfg(test)]
mod tests;
mod unpool;
mod window_reduce;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::window::{SlidingWindow, WindowAttributes};
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, PluginError, Result, dtype_set};

/// The dtypes of averages and norms.
const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

pub(crate) fn pool_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![max::max_pool_kernel(), unpool::max_unpool_kernel(), lrn::lrn_kernel()];
    kernels.extend(mean::average_pool_kernels());
    kernels.extend(global::global_pool_kernels());
    kernels
}

struct PoolShape {
    planes: usize,
    window: SlidingWindow,
}

impl PoolShape {
    fn new(settings: &WindowAttributes, call: &KernelCall<'_>) -> Result<Self> {
        let (x, y) = (call.input(0)?.dims(), call.output(0)?.dims());
        let ([x_images, x_channels, input @ ..], [y_images, y_channels, output @ ..]) = (x, y) else {
            return Err(pool_shape_error(x, y));
        };
        if input.is_empty() || (x_images, x_channels) != (y_images, y_channels) {
            return Err(pool_shape_error(x, y));
        }
        let planes = usize::try_from(*x_images).ok().zip(usize::try_from(*x_channels).ok());
        let planes = planes.and_then(|(images, channels)| images.checked_mul(channels));
        Ok(Self {
            planes: planes.ok_or_else(|| pool_shape_error(x, y))?,
            window: settings.pooling_window(input, output)?,
        })
    }
}

fn pool_shape_error(x: &[i64], y: &[i64]) -> PluginError {
    PluginError::invalid_argument(format!(
        "expected images [N, C, …] and an output of as many dimensions and planes, found {x:?} and {y:?}"
    ))
}
