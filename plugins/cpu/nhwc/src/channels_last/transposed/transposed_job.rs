//! Runs the tasks of a transposed convolution. A tile is stored directly if its pixels are evenly spaced and complete in the
//! output; otherwise it goes through a buffer in L1.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::DisjointSlice;

use super::super::bf16_images::Bf16Images;
use super::super::epilogue::{ConvEpilogue, ResidualSource};
use super::super::tile::{ConvMicroKernels, ConvTile, TileEpilogue};
use super::super::weight_panels::WeightPanels;
use super::phase_conv::{PhaseConv, PhaseTask};
use super::transposed_shape::NhwcTransposedShape;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};

pub(super) struct TransposedConvJob<'a> {
    pub(super) sizes: &'a NhwcTransposedShape,
    pub(super) products: &'a [PhaseConv],
    pub(super) isa: Isa,
    pub(super) x: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a [WeightPanels],
    /// The epilogue, with a bias for each column.
    pub(super) epilogue: &'a ConvEpilogue<'a>,
    pub(super) y: DisjointSlice<'a, f32>,
}

/// Some pixels in a row of a phase.
struct PixelSpan<'a> {
    product: &'a PhaseConv,
    group: usize,
    image: usize,
    /// The quotient down, and the quotients along.
    row: usize,
    pixels: Range<usize>,
}

impl TransposedConvJob<'_> {
    /// Runs a task, given memory for the pointers of a tile and its results.
    pub(super) fn run_task(&self, task: &PhaseTask, pointers: *mut *const f32, tile: &mut [f32]) {
        let NhwcTransposedShape { channels, outputs, horizontal, .. } = *self.sizes;
        let (depth, first_output) = (self.sizes.depth(), task.group * self.sizes.outputs_per_group());
        let (product, weights) = (&self.products[task.product], &self.weights[task.product]);
        let kernels = ConvMicroKernels::for_isa(self.isa);
        for index in task.tiles.clone() {
            let (row, first) = (index / product.tiles, index % product.tiles * product.tile);
            let rows = product.vertical.quotients.len();
            let begin = product.horizontal.quotients.start + first;
            let place = PixelSpan {
                product,
                group: task.group,
                image: row / rows,
                row: product.vertical.quotients.start + row % rows,
                pixels: begin..product.horizontal.quotients.end.min(begin + product.tile),
            };
            if channels > 0 {
                self.fill_indirection(&place, pointers);
            }
            let is_direct = !self.epilogue.has_remaining()
                && product.vertical.remainders.len() == 1
                && product.horizontal.is_whole(place.pixels.clone());
            for column in task.columns.clone().step_by(weights.panel_width()) {
                let width = weights.panel_width().min(task.columns.end - column);
                let (output, pixel, residual, bounds) = if is_direct {
                    let pixel = product.horizontal.output_index(begin, product.horizontal.remainders.start);
                    let row = self.output_row_start(&place, product.vertical.remainders.start);
                    let element = row + pixel * outputs + column;
                    let output = self.y.element_pointer(element);
                    let residual = self.epilogue.residual_pointer(element, output);
                    (output, horizontal.stride * outputs, residual, self.epilogue.clamp_bounds())
                } else {
                    (tile.as_mut_ptr(), width, ptr::null(), None)
                };
                // SAFETY: pointers and weights exist for all taps, a tile has room for all pixels of all columns, and only this
                // task accesses its outputs.
                unsafe {
                    kernels.micro_kernel(place.pixels.len(), width)(&ConvTile {
                        inputs: pointers,
                        taps: if channels > 0 { product.taps } else { 0 },
                        depth,
                        skip: task.group * depth,
                        weights: weights.panel_pointer(task.group, column),
                        epilogue: TileEpilogue {
                            bias: self.epilogue.bias_pointer(first_output + column),
                            output,
                            pixel,
                            residual,
                            channels: width,
                            bounds,
                            paired: Bf16Images::NONE,
                        },
                    });
                }
                if !is_direct {
                    self.scatter_columns(&place, column..column + width, tile);
                }
            }
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn fill_indirection(&self, place: &PixelSpan<'_>, pointers: *mut *const f32) {
        let NhwcTransposedShape { channels, vertical, horizontal, .. } = *self.sizes;
        let mut at = pointers;
        for back in &place.product.vertical.backs {
            // Positions before the image wrap to huge numbers, which fail the bounds check.
            let line = place.row.wrapping_sub(*back);
            for back in &place.product.horizontal.backs {
                for pixel in place.pixels.clone() {
                    let column = pixel.wrapping_sub(*back);
                    let is_inside = line < vertical.output && column < horizontal.output;
                    let input = if is_inside {
                        let pixel = (place.image * vertical.output + line) * horizontal.output + column;
                        self.x[pixel * channels..].as_ptr()
                    } else {
                        self.zeros.as_ptr()
                    };
                    // SAFETY: there is room for the pointers of a tile for each tap.
                    unsafe {
                        *at = input;
                        at = at.add(1);
                    }
                }
            }
        }
    }

    /// The start of an output row, for the outputs of a group.
    fn output_row_start(&self, place: &PixelSpan<'_>, remainder: usize) -> usize {
        let NhwcTransposedShape { outputs, vertical, horizontal, .. } = &self.sizes;
        let row = place.image * vertical.input + place.product.vertical.output_index(place.row, remainder);
        row * horizontal.input * outputs + place.group * self.sizes.outputs_per_group()
    }

    /// Runs the epilogue on some columns of a tile and scatters them to the output.
    fn scatter_columns(&self, place: &PixelSpan<'_>, columns: Range<usize>, tile: &mut [f32]) {
        let results = &mut tile[..place.pixels.len() * columns.len()];
        let put = |results: &mut [f32], target| {
            // Pieces do not overlap in the output.
            run_with_vectors(
                self.isa,
                ColumnPieces { job: self, place, columns: columns.clone(), results, target },
            );
        };
        if !matches!(self.epilogue.residual, ResidualSource::None) {
            put(results, ScatterTarget::Results);
        }
        self.epilogue.apply_remaining(self.isa, results);
        put(results, ScatterTarget::Output);
    }
}

/// What to do with a piece of the output.
#[derive(Clone, Copy)]
enum ScatterTarget {
    Results,
    Output,
}

/// Contiguous columns of a tile, and the pieces of the output to which they belong.
struct ColumnPieces<'a> {
    job: &'a TransposedConvJob<'a>,
    place: &'a PixelSpan<'a>,
    columns: Range<usize>,
    results: &'a mut [f32],
    target: ScatterTarget,
}

impl F32VectorTask for ColumnPieces<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        let Self { job, place, columns, results, target } = self;
        let PhaseConv { vertical, horizontal, run, .. } = place.product;
        let outputs = job.sizes.outputs_per_group();
        for remainder in vertical.remainders_at(place.row) {
            let row = job.output_row_start(place, remainder);
            let start = (remainder - vertical.remainders.start) * run;
            for (pixel, results) in place.pixels.clone().zip(results.chunks_exact_mut(columns.len())) {
                let remainders = horizontal.remainders_at(pixel);
                let first = start + (remainders.start - horizontal.remainders.start) * outputs;
                let begin = first.max(columns.start);
                let end = (first + remainders.len() * outputs).min(columns.end);
                if begin >= end {
                    continue;
                }
                let column = horizontal.output_index(pixel, remainders.start) * job.sizes.outputs;
                let element = row + column + begin - first;
                let results = &mut results[begin - columns.start..end - columns.start];
                let output = job.y.element_pointer(element);
                let (with, to) = match target {
                    ScatterTarget::Results => {
                        (job.epilogue.residual_pointer(element, output), results.as_mut_ptr())
                    }
                    ScatterTarget::Output => (ptr::null(), output),
                };
                // SAFETY: there are this many results and outputs, and only this task accesses the outputs.
                unsafe { write_sums::<V>(results.as_ptr(), with, to, results.len()) };
            }
        }
    }
}

/// Copies numbers, and adds those at `with` unless it is null.
///
/// # Safety
///
/// `count` numbers are readable or writable at each address, and the machine has the instructions.
#[inline(always)]
unsafe fn write_sums<V: F32Vector>(from: *const f32, with: *const f32, to: *mut f32, count: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Outputs of few channels are in pieces of a few numbers, for which parts of vectors take longer.
        if count < 4 {
            for index in 0..count {
                let sum = *from.add(index);
                *to.add(index) = if with.is_null() { sum } else { sum + *with.add(index) };
            }
            return;
        }
        for index in (0..count).step_by(V::LANES) {
            let lanes = V::LANES.min(count - index);
            let mut sum = V::load_partial(from.add(index), lanes);
            if !with.is_null() {
                sum = sum.add(V::load_partial(with.add(index), lanes));
            }
            sum.store_partial(to.add(index), lanes);
        }
    }
}
