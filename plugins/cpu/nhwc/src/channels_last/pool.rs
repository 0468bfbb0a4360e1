//! The kernels `oarlock.MaxPool` and `oarlock.AveragePool`, which compute vectors of channels, one output pixel at a time.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, and operands are memory that the call vouches for"
)]

use std::ops::Range;
use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::window::{WindowAttributes, WindowAxis};
use oarlock_cpu_gemm::DisjointSlice;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, KernelFlags, OperandSpec, Result};

use super::depthwise::steps_inside;
use super::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};

/// Elements that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 14;
/// The most vectors of channels that are reduced at a time: four independent chains cover the 4 cycles of latency of an addition or
/// maximum.
const VECTORS_AT_ONCE: usize = 4;

pub(super) fn nhwc_pool_kernels() -> [Kernel<Cpu>; 2] {
    [
        nhwc_pool_kernel("MaxPool", |_| Ok(PoolReduction::Greatest)),
        nhwc_pool_kernel("AveragePool", average_reduction),
    ]
}

fn average_reduction(call: &KernelCall<'_>) -> Result<PoolReduction> {
    Ok(PoolReduction::Mean { with_padding: call.int_attribute("count_include_pad")?.unwrap_or(0) != 0 })
}

fn nhwc_pool_kernel(op: &'static str, fold: fn(&KernelCall<'_>) -> Result<PoolReduction>) -> Kernel<Cpu> {
    let image = OperandSpec::new(DtypeSet::F32).with_rank(3, 4);
    Kernel::new_prepared(op, move |_: &Cpu, call| {
        let (fold, settings) = (fold(call)?, WindowAttributes::new(call)?);
        let (x, y) = (call.input(0)?, call.output(0)?);
        let prepared = NhwcGeometry::for_pooling(&settings, x.dims(), y.dims())?;
        let dims = [x.dims().to_vec(), y.dims().to_vec()];
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
            let (x, y) = (call.input(0)?, call.output(0)?);
            super::expect_prepared(x.dims() == dims[0] && y.dims() == dims[1])?;
            // SAFETY: device memory is host memory, and the call guarantees its operands.
            let (x, y) = unsafe { (x.elements()?, y.elements_mut()?) };
            compute_pool(cpu, &prepared, fold, x, y);
            Ok(())
        }))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(|_, call| {
        NhwcGeometry::for_pooling(
            &WindowAttributes::new(call)?,
            call.input(0)?.dims(),
            call.output(0)?.dims(),
        )
        .map(drop)
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([image.with_name("X")])
    .with_outputs([image.with_name("Y")])
}

/// The reduction of the elements under a window.
#[derive(Clone, Copy, Debug)]
pub(super) enum PoolReduction {
    /// The maximum. Comparisons with NaN are false, so NaN is ignored.
    Greatest,
    /// The mean, with or without the elements in the padding.
    Mean { with_padding: bool },
}

pub(super) fn compute_pool(
    team: &dyn ThreadTeam,
    geometry: &NhwcGeometry,
    fold: PoolReduction,
    x: &[f32],
    y: &mut [f32],
) {
    // If the output is empty, its other sizes need not fit.
    if y.is_empty() {
        return;
    }
    let rows = geometry.images * geometry.vertical.output;
    let row_size = geometry.horizontal.output * geometry.channels;
    let work = row_size.saturating_mul(geometry.tap_count()).saturating_mul(rows);
    let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
    // Several pieces per thread balance the load if other work runs on the machine.
    let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
    let y = DisjointSlice::new(y);
    team.parallel_for_each(rows.div_ceil(share), &|piece| {
        let rows = piece * share..rows.min((piece + 1) * share);
        // SAFETY: no two pieces share rows.
        let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
        run_with_vectors(team.isa(), NhwcPoolRows { geometry, fold, x, rows, y });
    });
}

struct NhwcPoolRows<'a> {
    geometry: &'a NhwcGeometry,
    fold: PoolReduction,
    x: &'a [f32],
    rows: Range<usize>,
    y: &'a mut [f32],
}

impl F32VectorTask for NhwcPoolRows<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        let Self { geometry, fold, x, rows, y } = self;
        let NhwcGeometry { channels, vertical, horizontal, .. } = *geometry;
        let with_padding = matches!(fold, PoolReduction::Mean { with_padding: true });
        // Once for all rows: finding them takes divisions.
        let columns: Vec<_> =
            (0..horizontal.output).map(|pixel| CoveredSteps::new(&horizontal, pixel, with_padding)).collect();
        for (row, output) in rows.zip(y.chunks_exact_mut(horizontal.output * channels)) {
            let (image, window) = (row / vertical.output, row % vertical.output);
            let lines = CoveredSteps::new(&vertical, window, with_padding);
            for (steps, output) in columns.iter().zip(output.chunks_exact_mut(channels)) {
                let under = NhwcPoolWindow {
                    x: &x[image * vertical.input * horizontal.input * channels..],
                    channels,
                    line: horizontal.input * channels,
                    lines: &lines,
                    steps,
                };
                // SAFETY: the caller guarantees the instructions.
                unsafe {
                    match fold {
                        PoolReduction::Greatest => under.reduce_pixel::<V, true>(output),
                        PoolReduction::Mean { .. } => under.reduce_pixel::<V, false>(output),
                    }
                }
            }
        }
    }
}

/// The steps of a window along an axis that are in the input.
struct CoveredSteps {
    /// The position of the first one, the distance to the next, and their number.
    first: usize,
    distance: usize,
    steps: usize,
    /// The number of steps for a mean.
    counted: usize,
}

impl CoveredSteps {
    fn new(axis: &WindowAxis, window: usize, with_padding: bool) -> Self {
        let steps = steps_inside(axis, window);
        let first = (window * axis.stride + steps.start * axis.dilation).saturating_sub(axis.pad.0);
        // Without the padding, only elements inside the image count.
        let counted = if with_padding { counted_steps(axis, window) } else { steps.len() };
        Self { first, distance: axis.dilation, steps: steps.len(), counted }
    }
}

/// The number of steps of a window that are in the input or its padding.
fn counted_steps(axis: &WindowAxis, window: usize) -> usize {
    let end = axis.input + axis.pad.0 + axis.pad.1;
    end.saturating_sub(window * axis.stride).div_ceil(axis.dilation).min(axis.kernel)
}

struct NhwcPoolWindow<'a> {
    x: &'a [f32],
    channels: usize,
    /// The distance between lines of the image, in elements.
    line: usize,
    /// The steps down the image and along its lines.
    lines: &'a CoveredSteps,
    steps: &'a CoveredSteps,
}

impl NhwcPoolWindow<'_> {
    /// Reduces all channels of a pixel: as many whole vectors at a time as there are, then what is left of one.
    #[inline(always)]
    unsafe fn reduce_pixel<V: F32Vector, const GREATEST: bool>(&self, output: &mut [f32]) {
        let (mut channel, lanes) = (0, V::LANES);
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            while output.len() - channel >= VECTORS_AT_ONCE * lanes {
                self.reduce_channels::<V, GREATEST, VECTORS_AT_ONCE>(channel, output, lanes);
                channel += VECTORS_AT_ONCE * lanes;
            }
            if output.len() - channel >= 2 * lanes {
                self.reduce_channels::<V, GREATEST, 2>(channel, output, lanes);
                channel += 2 * lanes;
            }
            while channel < output.len() {
                self.reduce_channels::<V, GREATEST, 1>(channel, output, lanes.min(output.len() - channel));
                channel += lanes;
            }
        }
    }

    /// Reduces some vectors of channels, of which this many lanes count.
    #[inline(always)]
    unsafe fn reduce_channels<V: F32Vector, const GREATEST: bool, const VECTORS: usize>(
        &self,
        channel: usize,
        output: &mut [f32],
        lanes: usize,
    ) {
        let is_whole = lanes == V::LANES;
        let (Self { lines, steps, .. }, output) =
            (self, &mut output[channel..][..(VECTORS - 1) * V::LANES + lanes]);
        // SAFETY: the window lies in the image and has these channels, and the caller guarantees the instructions.
        unsafe {
            // The results of a window that is entirely in the padding.
            let mut sums = [V::splat(if GREATEST { f32::NEG_INFINITY } else { 0.0 }); VECTORS];
            let add = |sum: V, element: V| if GREATEST { sum.max(element) } else { sum.add(element) };
            for line in 0..lines.steps {
                for step in 0..steps.steps {
                    let start = (lines.first + line * lines.distance) * self.line
                        + (steps.first + step * steps.distance) * self.channels
                        + channel;
                    let place = self.x[start..].as_ptr();
                    for (vector, sum) in sums.iter_mut().enumerate() {
                        let place = place.add(vector * V::LANES);
                        let element = if is_whole { V::load(place) } else { V::load_partial(place, lanes) };
                        *sum = add(*sum, element);
                    }
                }
            }
            for (vector, sum) in sums.iter().enumerate() {
                let count = (lines.counted * steps.counted) as f32;
                let result = if GREATEST { *sum } else { sum.divide(V::splat(count.max(1.0))) };
                let place = output.as_mut_ptr().add(vector * V::LANES);
                if is_whole { result.store(place) } else { result.store_partial(place, lanes) }
            }
        }
    }
}
