//! `GlobalAveragePool`, `GlobalMaxPool` and `GlobalLpPool`: each plane is reduced to one element.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{BaselineTarget, SimdTarget, SimdTask};
use oarlock_cpu_gemm::DisjointSlice;
use oarlock_sdk::{
    Element, Kernel, KernelCall, KernelFlags, OperandSpec, Result, TensorView, dispatch, ensure,
};

use super::max::MaxReduction;
use super::mean::{MeanReduction, NormReduction};
use super::window_reduce::WindowReduction;
use super::{FLOATS, pool_shape_error};

pub(super) fn global_pool_kernels() -> [Kernel<Cpu>; 3] {
    let image = OperandSpec::new(FLOATS).with_dtype_group(1).with_rank(2, u32::MAX);
    let mean = Kernel::new(
        "GlobalAveragePool",
        |cpu: &Cpu, call| dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => run_global_pool::<T, _>(cpu, call, &MeanReduction)),
    );
    let max = Kernel::new(
        "GlobalMaxPool",
        |cpu: &Cpu, call| dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => run_global_pool::<T, _>(cpu, call, &MaxReduction)),
    );
    let norm = Kernel::new_prepared("GlobalLpPool", |_: &Cpu, call| {
        let norm = NormReduction::new(call)?;
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => run_global_pool::<T, _>(cpu, call, &norm))
        }))
    })
    .since_version(2);
    [mean, max, norm].map(|kernel| {
        kernel
            .with_flags(KernelFlags::DETERMINISTIC)
            .with_inputs([image.with_name("X")])
            .with_outputs([image.with_name("Y")])
    })
}

/// Independent sums per plane: four zmm or eight ymm of f32, enough chains to hide the latency of an addition.
const SUMS_AT_ONCE: usize = 64;
/// Elements that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 15;

fn check_global_shape(x: &TensorView<'_>, y: &TensorView<'_>) -> Result<()> {
    let ([x_planes @ .., _], [y_planes @ .., _]) = (x.dims(), y.dims()) else {
        return Err(pool_shape_error(x.dims(), y.dims()));
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
    Ok(())
}

fn run_global_pool<E: Element, F: WindowReduction<E>>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    reduction: &F,
) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    check_global_shape(&x, &y)?;
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, y) = unsafe { (x.elements::<E>()?, y.elements_mut::<E>()?) };
    if y.is_empty() {
        return Ok(());
    }
    let (planes, size) = (y.len(), x.len() / y.len());
    let y = DisjointSlice::new(y);
    cpu.parallel_for(planes, MIN_WORK_PER_THREAD.div_ceil(size.max(1)), |begin, end| {
        // SAFETY: the pieces do not overlap.
        let y = unsafe { y.range_mut(begin..end) };
        let planes = GlobalPoolPlanes { x: &x[begin * size..end * size], y, size, reduction };
        if const { F::IS_VECTORIZED } {
            cpu.isa().vectorize(planes);
        } else {
            planes.run_on_target::<BaselineTarget>();
        }
    });
    Ok(())
}

struct GlobalPoolPlanes<'a, E, F> {
    x: &'a [E],
    y: &'a mut [E],
    size: usize,
    reduction: &'a F,
}

impl<E: Element, F: WindowReduction<E>> SimdTask for GlobalPoolPlanes<'_, E, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for (plane, y) in self.y.iter_mut().enumerate() {
            let (blocks, rest) = self.x[plane * self.size..][..self.size].as_chunks::<SUMS_AT_ONCE>();
            let mut sums = [self.reduction.initial_accumulator(); SUMS_AT_ONCE];
            let add = |(sum, element): (&mut F::Accumulator, &E)| {
                *sum = self.reduction.accumulate_element(*sum, *element);
            };
            for block in blocks {
                sums.iter_mut().zip(block).for_each(add);
            }
            // The remainder goes to the first sums, so the order of additions depends only on the size of the plane.
            sums.iter_mut().zip(rest).for_each(add);
            // Merged pairwise, which rounds less than merging one by one.
            let mut half = SUMS_AT_ONCE / 2;
            while half > 0 {
                for index in 0..half {
                    sums[index] = self.reduction.merge_accumulators(sums[index], sums[index + half]);
                }
                half /= 2;
            }
            *y = self.reduction.finish_window(sums[0], self.size);
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::TestArray;

    #[test]
    fn each_plane_becomes_one_element() {
        let values: Vec<f32> = (0..300).map(|value| value as f32).collect();
        let x = TestArray::from_values(&[1, 2, 150], &values);
        let pooled = |op| {
            let results =
                KERNELS.run_kernel(op, 2, &[], &[Some(&x)], &[Some((Dtype::F32, &[1, 2, 1]))]).unwrap();
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
