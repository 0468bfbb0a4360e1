//! Products of a few rows of bytes with constant weights, for recurrent networks. They compute one after the other, thousands of
//! times, so what is not a sum must cost next to nothing: nothing is planned, shared between threads or finished tile by tile.

#![expect(unsafe_code, reason = "rows and sums are handed to the micro-kernels as pointers")]

use std::ptr;
use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::simd::QUAD;

use super::dense::{MIN_WORK_PER_THREAD, even_tile_size};
use super::dynamic_quantize::quantize_by_range;
use super::quantized_panels::QuantizedPanels;
use super::tile::{MAX_TILE_PIXELS, QuantizedMicroKernels, QuantizedTile, SumsTarget, TileOutcome};
use super::widened_rows::WidenedRows;

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
        let work = rows.saturating_mul(self.depth).saturating_mul(self.outputs);
        let is_alone = cpu.worker_count() == 1 || work < 2 * MIN_WORK_PER_THREAD;
        is_alone && rows <= 2 * kernels.max_pixels()
    }

    /// Quantizes the rows with one scale, and multiplies them.
    pub fn multiply(&self, cpu: &Cpu, rows: &[f32], output: &mut [f32], buffers: &mut FewRowsBuffers) {
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
        let steps = widened.as_ref().map_or(self.depth.div_ceil(QUAD), WidenedRows::steps);
        let tile = even_tile_size(count, kernels.max_pixels());
        for first in (0..count).step_by(tile) {
            let pixels = tile.min(count - first);
            let mut inputs = [ptr::null(); MAX_TILE_PIXELS];
            for (row, input) in (first..).zip(&mut inputs[..pixels]) {
                *input = match &widened {
                    Some(widened) => widened.row_pointer(widened_bytes.as_mut_ptr(), row).cast_const(),
                    None => bytes[row * self.depth..].as_ptr(),
                };
            }
            for channel in (0..self.outputs).step_by(self.panels.panel_width()) {
                let channels = self.panels.panel_width().min(self.outputs - channel);
                // Sums are stored where their floats will be.
                let sums = output[first * self.outputs + channel..].as_mut_ptr().cast();
                let outcome = TileOutcome::Sums(SumsTarget { output: sums, pixel: self.outputs, channels });
                let tile = QuantizedTile {
                    inputs: inputs.as_ptr(),
                    taps: 1,
                    steps,
                    skip: 0,
                    weights: self.panels.panel_pointer(0, channel),
                    start: starts[channel..].as_ptr(),
                    outcome: &outcome,
                };
                // SAFETY: there are as many rows, weights and initial sums as the sizes say, and a float is as large as a sum.
                unsafe { kernels.micro_kernel(false, pixels, channels)(&tile) };
            }
        }
        cpu.isa().vectorize(SumsToFloats { numbers: output, factors });
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

/// Converts sums that are stored as the bits of floats.
struct SumsToFloats<'a> {
    numbers: &'a mut [f32],
    factors: &'a [f32],
}

impl SimdTask for SumsToFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for row in self.numbers.chunks_exact_mut(self.factors.len()) {
            for (number, factor) in row.iter_mut().zip(self.factors) {
                *number = number.to_bits().cast_signed() as f32 * factor;
            }
        }
    }
}
