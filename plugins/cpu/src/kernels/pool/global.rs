//! `GlobalAveragePool`, `GlobalMaxPool` and `GlobalLpPool`: each plane becomes one element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, Element, Kernel, KernelFlags, Operand, Result, dispatch, ensure};

use super::fold::Fold;
use super::max::Greatest;
use super::mean::{Mean, Norm};
use super::{FLOATS, unfit};
use crate::device::Cpu;
use crate::gemm::Parts;
use crate::isa::{Target, Vectorized};

pub(super) fn kernels() -> [Kernel<Cpu>; 3] {
    let image = Operand::new(FLOATS).group(1).rank(2, u32::MAX);
    let mean = Kernel::new(
        "GlobalAveragePool",
        |cpu: &Cpu, call| dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => pool::<T, _>(cpu, call, &Mean)),
    );
    let max = Kernel::new(
        "GlobalMaxPool",
        |cpu: &Cpu, call| dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => pool::<T, _>(cpu, call, &Greatest)),
    );
    let norm = Kernel::prepared("GlobalLpPool", |_: &Cpu, call| {
        let norm = Norm::new(call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => pool::<T, _>(cpu, call, &norm))
        }))
    })
    .since(2);
    [mean, max, norm].map(|kernel| {
        kernel.flags(KernelFlags::DETERMINISTIC).inputs([image.named("X")]).outputs([image.named("Y")])
    })
}

/// Sums that are made at once: as many as fit into a few vectors.
const SUMS: usize = 64;
/// Elements that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 15;

fn pool<E: Element, F: Fold<E>>(cpu: &Cpu, call: &Call<'_>, how: &F) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    let ([x_planes @ .., _], [y_planes @ .., _]) = (x.dims(), y.dims()) else {
        return Err(unfit(x.dims(), y.dims()));
    };
    ensure!(
        x.dims().len() == y.dims().len()
            && x_planes.first() == y_planes.first()
            && x.dims().get(1) == y.dims().get(1)
            && y.dims().iter().skip(2).all(|dim| *dim == 1),
        invalid_argument,
        "expected an output of one element for each plane of {:?}, found {:?}",
        x.dims(),
        y.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let (planes, size) = (y.len(), x.len() / y.len());
    let y = Parts::new(y);
    cpu.parallel_for(planes, WORK_OF_A_THREAD.div_ceil(size.max(1)), |begin, end| {
        // SAFETY: the pieces do not overlap.
        let y = unsafe { y.part(begin..end) };
        cpu.isa().vectorize(Planes { x: &x[begin * size..end * size], y, size, how });
    });
    Ok(())
}

struct Planes<'a, E, F> {
    x: &'a [E],
    y: &'a mut [E],
    size: usize,
    how: &'a F,
}

impl<E: Element, F: Fold<E>> Vectorized for Planes<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        for (plane, y) in self.y.iter_mut().enumerate() {
            let (blocks, rest) = self.x[plane * self.size..][..self.size].as_chunks::<SUMS>();
            let mut sums = [self.how.start(); SUMS];
            let add = |(sum, element): (&mut F::Sum, &E)| *sum = self.how.add(*sum, *element);
            for block in blocks {
                sums.iter_mut().zip(block).for_each(add);
            }
            sums.iter_mut().zip(rest).for_each(add);
            let mut half = SUMS / 2;
            while half > 0 {
                for index in 0..half {
                    sums[index] = self.how.join(sums[index], sums[index + half]);
                }
                half /= 2;
            }
            *y = self.how.finish(sums[0], self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::testing::{Array, run};

    #[test]
    fn each_plane_becomes_one_element() {
        let values: Vec<f32> = (0..300).map(|value| value as f32).collect();
        let x = Array::of(&[1, 2, 150], &values);
        let pooled = |op| {
            let results = run(op, 2, &[], &[Some(&x)], &[Some((Dtype::F32, &[1, 2, 1]))]).unwrap();
            results[0].as_ref().unwrap().values::<f32>()
        };
        assert_eq!(pooled("GlobalAveragePool"), [74.5, 224.5]);
        assert_eq!(pooled("GlobalMaxPool"), [149., 299.]);
        let norms =
            [149f32 * 150. * 299. / 6., 299. * 300. * 599. / 6. - 149. * 150. * 299. / 6.].map(f32::sqrt);
        for (found, expected) in pooled("GlobalLpPool").iter().zip(norms) {
            assert!((found - expected).abs() < expected * 1e-6, "{found} and {expected}");
        }
    }
}
