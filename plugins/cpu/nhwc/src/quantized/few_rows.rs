//! Products of a few rows of bytes with constant weights, for recurrent networks. They compute one after the other, thousands of
//! times, so what is not a sum must cost next to nothing: nothing is planned or finished tile by tile.

#![expect(unsafe_code, reason = "rows and sums are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::simd::QUAD;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;

use super::dense::even_tile_size;
use super::dynamic_quantize::quantize_by_range;
use super::quantized_panels::QuantizedPanels;
use super::tile::{MAX_TILE_PIXELS, QuantizedMicroKernels, QuantizedTile, SumsTarget, TileOutcome};
use super::widened_rows::WidenedRows;

/// Multiply-adds that make it worth handing a share to another thread, which waits for it, spinning: a few microseconds.
const MIN_WORK_PER_THREAD: usize = 1 << 18;

/// Weights for products of a few rows of floats, which are quantized as in `DynamicQuantizeLinear`.
pub struct FewRowsWeights {
    panels: Arc<QuantizedPanels>,
    /// One scale, or one for each output.
    scales: Vec<f32>,
    depth: usize,
    outputs: usize,
}

/// Memory that consecutive products use again.
#[derive(Default)]
pub struct FewRowsBuffers {
    bytes: Vec<u8>,
    widened: Vec<u8>,
    /// The initial sums and the factors of all outputs.
    starts: Vec<i32>,
    factors: Vec<f32>,
}

impl FewRowsWeights {
    /// Weights without zero points, packed for products with unsigned rows.
    pub fn new(panels: Arc<QuantizedPanels>, scales: Vec<f32>, [depth, outputs]: [usize; 2]) -> Self {
        assert!(
            depth > 0 && panels.sums.len() == outputs && [1, outputs].contains(&scales.len()),
            "scales and sums of as many outputs"
        );
        Self { panels, scales, depth, outputs }
    }

    /// True if as many rows are multiplied sooner here than by a planned product.
    pub fn is_faster(&self, cpu: &Cpu, rows: usize) -> bool {
        let kernels = QuantizedMicroKernels::for_isa(cpu.isa());
        rows <= 2 * kernels.max_pixels()
    }

    /// Quantizes the rows with one scale, and multiplies them. If consecutive products alternate between forwards and backwards, each
    /// starts with the weights that the one before read last, which are still in the cache.
    pub fn multiply(
        &self,
        cpu: &Cpu,
        rows: &[f32],
        output: &mut [f32],
        is_backwards: bool,
        buffers: &mut FewRowsBuffers,
    ) {
        let count = rows.len() / self.depth;
        assert!(
            rows.len() == count * self.depth && output.len() == count * self.outputs,
            "whole rows, and an output of as many"
        );
        if output.is_empty() {
            return;
        }
        let kernels = QuantizedMicroKernels::for_isa(cpu.isa());
        let FewRowsBuffers { bytes, widened: widened_bytes, starts, factors } = buffers;
        // Micro-kernels read whole groups of four; past the end of a row, weights are 0.
        bytes.resize(rows.len() + QUAD, 0);
        let (scale, zero) = quantize_by_range(cpu, rows, &mut bytes[..rows.len()]);
        starts.resize(self.outputs.next_multiple_of(kernels.panel_format.lanes), 0);
        factors.resize(self.outputs, 0.0);
        let zero = kernels.zero_as_read(zero.into(), false);
        cpu.isa().vectorize(OutputConstants { weights: self, zero, scale, starts, factors });

        let widened = WidenedRows::for_tiles(kernels, (1, self.depth), count);
        if let Some(widened) = &widened {
            widened_bytes.resize(widened.size(), 0);
            for index in 0..count {
                let row = bytes[index * self.depth..].as_ptr();
                let target = widened.row_pointer(widened_bytes.as_mut_ptr(), index);
                // SAFETY: behind the last row there are bytes for a whole group of four, and the buffer has room for all rows.
                unsafe { widened.widen_rows(cpu.isa(), (&raw const row, 0, 0), 1, target) };
            }
        }
        let job = FewRowsJob {
            weights: self,
            kernels,
            starts,
            factors,
            steps: widened.as_ref().map_or(self.depth.div_ceil(QUAD), WidenedRows::steps),
            rows: match &widened {
                Some(widened) => (widened_bytes.as_ptr(), widened.row_distance()),
                None => (bytes.as_ptr(), self.depth),
            },
            count,
            output: DisjointSlice::new(output),
            is_backwards,
        };
        // The weights of a thread's share may fit into its L2, where those of all do not.
        let work = [count, self.depth, self.outputs].into_iter().fold(1usize, usize::saturating_mul);
        let panels = self.outputs.div_ceil(self.panels.panel_width());
        let threads = cpu.worker_count().min(work / MIN_WORK_PER_THREAD).clamp(1, panels);
        let share = panels.div_ceil(threads) * self.panels.panel_width();
        cpu.parallel_for_each(self.outputs.div_ceil(share), &|thread| {
            let outputs = thread * share..self.outputs.min((thread + 1) * share);
            job.multiply_outputs(outputs.clone());
            cpu.isa().vectorize(SumsToFloats { job: &job, outputs });
        });
    }
}

/// A product whose rows are quantized.
struct FewRowsJob<'a> {
    weights: &'a FewRowsWeights,
    kernels: &'static QuantizedMicroKernels,
    starts: &'a [i32],
    factors: &'a [f32],
    steps: usize,
    /// The address of the first row, and the bytes between rows.
    rows: (*const u8, usize),
    count: usize,
    output: DisjointSlice<'a, f32>,
    is_backwards: bool,
}

// SAFETY: no thread writes the rows behind the pointer during the product.
unsafe impl Sync for FewRowsJob<'_> {}

impl FewRowsJob<'_> {
    /// Computes the sums of some outputs, in whole panels, where their floats will be.
    fn multiply_outputs(&self, outputs: Range<usize>) {
        let FewRowsWeights { panels, outputs: width, .. } = self.weights;
        let tile = even_tile_size(self.count, self.kernels.max_pixels());
        let (rows, distance) = self.rows;
        let panel_count = outputs.len().div_ceil(panels.panel_width());
        for index in 0..panel_count {
            let index = if self.is_backwards { panel_count - 1 - index } else { index };
            let channel = outputs.start + index * panels.panel_width();
            let channels = panels.panel_width().min(outputs.end - channel);
            for first in (0..self.count).step_by(tile) {
                let pixels = tile.min(self.count - first);
                let inputs: [*const u8; MAX_TILE_PIXELS] =
                    std::array::from_fn(|row| rows.wrapping_add((first + row) * distance));
                let sums = self.output.element_pointer(first * width + channel).cast();
                let outcome = TileOutcome::Sums(SumsTarget { output: sums, pixel: *width, channels });
                let tile = QuantizedTile {
                    inputs: inputs.as_ptr(),
                    taps: 1,
                    steps: self.steps,
                    skip: 0,
                    weights: panels.panel_pointer(0, channel),
                    start: self.starts[channel..].as_ptr(),
                    outcome: &outcome,
                };
                // SAFETY: there are as many rows, weights and initial sums as the sizes say, a float is as large as a sum, and no two
                // threads have the same outputs.
                unsafe { self.kernels.micro_kernel(false, pixels, channels)(&tile) };
            }
        }
    }
}

/// Computes what depends on the scale and the zero point of the rows.
struct OutputConstants<'a> {
    weights: &'a FewRowsWeights,
    zero: i32,
    scale: f32,
    starts: &'a mut [i32],
    factors: &'a mut [f32],
}

impl SimdTask for OutputConstants<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { weights, zero, scale, starts, factors } = self;
        for (start, sum) in starts.iter_mut().zip(&weights.panels.sums) {
            *start = sum.wrapping_mul(zero).wrapping_neg();
        }
        match &weights.scales[..] {
            [one] => factors.fill(one * scale),
            each => factors.iter_mut().zip(each).for_each(|(factor, own)| *factor = own * scale),
        }
    }
}

/// Converts the sums of some outputs, which are stored as the bits of floats.
struct SumsToFloats<'a> {
    job: &'a FewRowsJob<'a>,
    outputs: Range<usize>,
}

impl SimdTask for SumsToFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { job, outputs } = self;
        let factors = &job.factors[outputs.clone()];
        for row in 0..job.count {
            let start = row * job.weights.outputs;
            // SAFETY: no two threads have the same outputs.
            let numbers = unsafe { job.output.range_mut(start + outputs.start..start + outputs.end) };
            for (number, factor) in numbers.iter_mut().zip(factors) {
                *number = number.to_bits().cast_signed() as f32 * factor;
            }
        }
    }
}
