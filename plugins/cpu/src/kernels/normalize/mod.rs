//! Normalisations: along one axis, over the last axes, over groups of channels, and over a batch.

mod along_axis;
mod batch;
mod channels;
mod last_axes;
mod mean_variance;
mod moments;
mod parameters;
mod skip;

pub(crate) use self::along_axis::{LogSoftmax, apply};

use oarlock_sdk::{DtypeSet, Kernel, Operand, family};

use crate::device::Cpu;

/// What all of them take.
const REALS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

/// An operand of the same dtype as the others.
const fn real(name: &'static str) -> Operand {
    Operand::new(REALS).group(1).named(name)
}

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    [
        along_axis::kernels(),
        last_axes::kernels(),
        channels::kernels(),
        batch::kernels(),
        mean_variance::kernels(),
        skip::kernels(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
