//! Pooling: what lies under each window becomes one element. Also `LRN`, whose windows slide over channels.

mod fold;
mod global;
mod lrn;
mod max;
mod mean;
#[cfg(test)]
mod tests;
mod unpool;

use oarlock_sdk::{Dtype, DtypeSet, Error, Kernel, Result, dtype_set};

use crate::device::Cpu;
use crate::kernels::conv::window::{Settings, Window};

/// What averages and norms take.
const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![max::kernel(), unpool::kernel(), lrn::kernel()];
    kernels.extend(mean::kernels());
    kernels.extend(global::kernels());
    kernels
}

/// Images and the windows over each of their planes.
struct Pool {
    planes: usize,
    window: Window,
}

impl Pool {
    fn new(settings: &Settings, x: &[i64], y: &[i64]) -> Result<Self> {
        let ([x_images, x_channels, input @ ..], [y_images, y_channels, output @ ..]) = (x, y) else {
            return Err(unfit(x, y));
        };
        if input.is_empty() || (x_images, x_channels) != (y_images, y_channels) {
            return Err(unfit(x, y));
        }
        let planes = usize::try_from(*x_images).ok().zip(usize::try_from(*x_channels).ok());
        let planes = planes.and_then(|(images, channels)| images.checked_mul(channels));
        Ok(Self {
            planes: planes.ok_or_else(|| unfit(x, y))?,
            window: settings.pooling_window(input, output)?,
        })
    }
}

fn unfit(x: &[i64], y: &[i64]) -> Error {
    Error::invalid_argument(format!(
        "expected images [N, C, …] and an output of as many dimensions and planes, found {x:?} and {y:?}"
    ))
}
