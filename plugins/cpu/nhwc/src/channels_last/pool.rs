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
/// Vectors of channels that are reduced at a time: four independent chains cover the 4 cycles of latency of an addition or maximum.
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
        for (row, output) in rows.zip(y.chunks_exact_mut(horizontal.output * channels)) {
            let (image, window) = (row / vertical.output, row % vertical.output);
            let lines = steps_inside(&vertical, window);
            for (pixel, output) in output.chunks_exact_mut(channels).enumerate() {
                let steps = steps_inside(&horizontal, pixel);
                let under = NhwcPoolWindow {
                    x: &x[image * vertical.input * horizontal.input * channels..],
                    channels,
                    line: horizontal.input * channels,
                    lines: step_positions(&vertical, window, lines.clone()),
                    steps: step_positions(&horizontal, pixel, steps.clone()),
                    count: match fold {
                        PoolReduction::Mean { with_padding: true } => {
                            (counted_steps(&vertical, window) * counted_steps(&horizontal, pixel)) as f32
                        }
                        // Without the padding, only elements inside the image count.
                        _ => (lines.len() * steps.len()) as f32,
                    },
                };
                for channel in (0..channels).step_by(VECTORS_AT_ONCE * V::LANES) {
                    let output = &mut output[channel..channels.min(channel + VECTORS_AT_ONCE * V::LANES)];
                    // SAFETY: the caller guarantees the instructions.
                    unsafe {
                        match fold {
                            PoolReduction::Greatest => under.reduce_channels::<V, true>(channel, output),
                            PoolReduction::Mean { .. } => under.reduce_channels::<V, false>(channel, output),
                        }
                    }
                }
            }
        }
    }
}

/// The positions of some steps of a window in the input: the first one, the distance, and the count.
fn step_positions(axis: &WindowAxis, window: usize, steps: Range<usize>) -> (usize, usize, usize) {
    let first = (window * axis.stride + steps.start * axis.dilation).saturating_sub(axis.pad.0);
    (first, axis.dilation, steps.len())
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
    /// The results of [`step_positions`], down the image and along its lines.
    lines: (usize, usize, usize),
    steps: (usize, usize, usize),
    /// The divisor of the sum.
    count: f32,
}

impl NhwcPoolWindow<'_> {
    /// Reduces some channels.
    #[inline(always)]
    unsafe fn reduce_channels<V: F32Vector, const GREATEST: bool>(&self, channel: usize, output: &mut [f32]) {
        let (count, vectors) = (output.len(), output.len().div_ceil(V::LANES));
        let lanes = |vector: usize| (count - vector * V::LANES).min(V::LANES);
        let is_whole = count == VECTORS_AT_ONCE * V::LANES;
        // SAFETY: the window lies in the image and has these channels, and the caller guarantees the instructions.
        unsafe {
            // The results of a window that is entirely in the padding.
            let mut sums = [V::splat(if GREATEST { f32::NEG_INFINITY } else { 0.0 }); VECTORS_AT_ONCE];
            let add = |sum: V, element: V| if GREATEST { sum.max(element) } else { sum.add(element) };
            for line in 0..self.lines.2 {
                for step in 0..self.steps.2 {
                    let start = (self.lines.0 + line * self.lines.1) * self.line
                        + (self.steps.0 + step * self.steps.1) * self.channels
                        + channel;
                    let place = self.x[start..].as_ptr();
                    if is_whole {
                        for (vector, sum) in sums.iter_mut().enumerate() {
                            *sum = add(*sum, V::load(place.add(vector * V::LANES)));
                        }
                    } else {
                        for (vector, sum) in sums.iter_mut().enumerate().take(vectors) {
                            *sum = add(*sum, V::load_partial(place.add(vector * V::LANES), lanes(vector)));
                        }
                    }
                }
            }
            for (vector, sum) in sums.iter().enumerate().take(vectors) {
                let result = if GREATEST { *sum } else { sum.divide(V::splat(self.count.max(1.0))) };
                let place = output.as_mut_ptr().add(vector * V::LANES);
                if is_whole { result.store(place) } else { result.store_partial(place, lanes(vector)) }
            }
        }
    }
}
