//! `LRN`: each element is divided by a power of the sum of the squares around it, over neighbouring channels.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, Error, Kernel, KernelFlags, Operand, Result, bf16, dispatch, ensure, f16};

use super::{FLOATS, unfit};
use crate::device::Cpu;
use crate::gemm::{Number, Parts, Stored};

pub(super) fn kernel() -> Kernel<Cpu> {
    let image = Operand::new(FLOATS).group(1).rank(2, u32::MAX);
    Kernel::prepared("LRN", |_: &Cpu, call| {
        let settings = Settings::new(call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => normalize::<T>(cpu, call, settings))
        }))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([image.named("X")])
    .outputs([image.named("Y")])
}

#[derive(Clone, Copy)]
struct Settings {
    /// Channels before and after.
    around: (usize, usize),
    /// What a sum of squares counts.
    factor: f64,
    bias: f64,
    exponent: f64,
}

impl Settings {
    fn new(call: &Call<'_>) -> Result<Self> {
        let size = call.int("size")?;
        let size = size.ok_or_else(|| Error::invalid_argument("expected an attribute `size`, found none"))?;
        ensure!(
            (1..=1 << 30).contains(&size),
            invalid_argument,
            "expected `size` from 1 to 2^30, found {size}"
        );
        let before = (size as usize - 1) / 2;
        Ok(Self {
            around: (before, size as usize - 1 - before),
            factor: call.float("alpha")?.unwrap_or(1e-4) / size as f64,
            bias: call.float("bias")?.unwrap_or(1.0),
            exponent: call.float("beta")?.unwrap_or(0.75),
        })
    }
}

/// An element that is normalized in another type.
trait Normalized: Stored {
    fn divided(self, sum: Self::Computed, settings: Settings) -> Self;
}

macro_rules! normalized {
    ($($element:ty => $computed:ty: $store:expr),*) => {
        $(impl Normalized for $element {
            fn divided(self, sum: $computed, settings: Settings) -> Self {
                let Settings { factor, bias, exponent, .. } = settings;
                let value: $computed = self.into();
                $store(value / (sum * factor as $computed + bias as $computed).powf(exponent as $computed))
            }
        })*
    };
}

normalized!(f32 => f32: |value| value, f64 => f64: |value| value, f16 => f32: f16::from_f32, bf16 => f32: bf16::from_f32);

fn normalize<E: Normalized>(cpu: &Cpu, call: &Call<'_>, settings: Settings) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    let dims = x.dims();
    let [_, channels, ..] = x.dims() else { return Err(unfit(x.dims(), y.dims())) };
    let channels = *channels as usize;
    ensure!(
        x.dims() == y.dims(),
        invalid_argument,
        "expected an output of shape {:?}, found {:?}",
        x.dims(),
        y.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let size: usize = dims[2..].iter().map(|dim| *dim as usize).product();
    let (before, after) = settings.around;
    let y = Parts::new(y);
    cpu.parallel_for(x.len() / size, 1, |begin, end| {
        let mut sums = vec![E::Computed::default(); size];
        for plane in begin..end {
            let (first, channel) = (plane - plane % channels, plane % channels);
            sums.fill(E::Computed::default());
            for other in channel.saturating_sub(before)..channels.min(channel + after + 1) {
                for (sum, element) in sums.iter_mut().zip(&x[(first + other) * size..][..size]) {
                    *sum = sum.plus_product::<false>(element.convert(), element.convert());
                }
            }
            // SAFETY: no two planes overlap, and each is one thread's.
            let output = unsafe { y.part(plane * size..(plane + 1) * size) };
            for ((output, element), sum) in output.iter_mut().zip(&x[plane * size..]).zip(&sums) {
                *output = element.divided(*sum, settings);
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, Attribute, run};

    #[test]
    fn elements_are_divided_by_their_neighbours_in_other_channels() {
        let x = Array::of(&[1, 3, 1, 1], &[1f32, 2., 3.]);
        let attributes = [
            ("size", Attribute::Int(2)),
            ("alpha", Attribute::Float(2.0)),
            ("beta", Attribute::Float(1.0)),
            ("bias", Attribute::Float(1.0)),
        ];
        let results = run("LRN", 13, &attributes, &[Some(&x)], &[Some((Dtype::F32, &[1, 3, 1, 1]))]).unwrap();
        assert_eq!(results[0].as_ref().unwrap().values::<f32>(), [1. / 6., 2. / 14., 0.3]);
    }
}
