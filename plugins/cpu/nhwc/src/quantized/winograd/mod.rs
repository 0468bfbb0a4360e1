//! Winograd convolutions F(4×4, 3×3) in integers: a tile of 4 × 4 outputs needs 36 products instead of 144, and results are exact.
//!
//! Transformed inputs and weights fit into 16 bits if the fractions of the weights' transform are scaled to integers. Sums of products
//! have 32 bits and wrap around, which is no loss: they are right modulo 2³², and a result that is known to be small enough is found
//! again from that.

#![expect(unsafe_code, reason = "rows and sums are handed to the micro-kernels as pointers")]

#[cfg(test)]
mod tests;
mod transform;
mod transformed_weights;

use std::ops::Range;
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{DisjointSlice, ScratchBuffer};

use self::transform::{FourOutputs, OUTPUTS, POINTS, TransformInputs, TransformOutputs};
use super::byte_operands::QuantizedImages;
use super::dense::even_tile_size;
use super::requantize::QuantizedEpilogue;
use super::tile::{MAX_TILE_PIXELS, QuantizedMicroKernels, QuantizedTile, SumsTarget, TileOutcome};
use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::winograd::tile_blocks::{BlockSteps, TileBlocks, TransformLayout, tile_grid};
pub(super) use transformed_weights::TransformedWeights;

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 19;

/// The minimum number of input and of output channels for which the transforms pay.
const MIN_CHANNELS: usize = 16;

/// What steps cost, in products of the direct algorithm. Measured on a Zen 4, as the times of layers with 16 to 512 channels.
struct WinogradCosts {
    /// A product of a pair of channels at a point.
    product: usize,
    /// Transforming an input and an output, at a point.
    input: usize,
    output: usize,
    /// Reading a weight that is not in cache.
    read: usize,
}

impl WinogradCosts {
    /// The direct algorithm multiplies words as well.
    const OF_WORDS: Self = Self { product: 1, input: 8, output: 14, read: 10 };
    /// The direct algorithm multiplies bytes, twice as many at a time.
    const OF_BYTES: Self = Self { product: 2, input: 25, output: 45, read: 14 };

    /// True if Winograd's algorithm is faster than the direct one.
    fn are_lower(&self, geometry: &NhwcGeometry) -> bool {
        // All costs are per pair of input and output channel. What transforms cost, the channels of the other side share.
        let (rows, columns) = tile_grid(geometry, OUTPUTS);
        let places = geometry.images * rows * columns * POINTS * POINTS;
        let transforms = places * self.input / geometry.outputs + places * self.output / geometry.channels;
        let cost = places * self.product + transforms + self.read * POINTS * POINTS;
        cost < geometry.output_pixels() * 9 + self.read * 9
    }
}

/// The inputs that share a step of the micro-kernels.
const PAIR: usize = 2;

/// A convolution planned for one geometry and number of threads.
pub(super) struct QuantizedWinograd {
    tiles: TileBlocks,
    kernels: &'static QuantizedMicroKernels,
}

impl QuantizedWinograd {
    /// `None` if the geometry is not supported, or if the direct algorithm is faster.
    pub(super) fn if_profitable(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Option<Self> {
        let kernels = QuantizedMicroKernels::of_words(team.isa())?;
        let fewest = geometry.channels.min(geometry.outputs);
        if !TileBlocks::is_supported(geometry) || fewest < MIN_CHANNELS {
            return None;
        }
        let direct = QuantizedMicroKernels::for_isa(team.isa());
        let costs = match direct.panel_format.factor_bytes {
            1 => WinogradCosts::OF_BYTES,
            _ => WinogradCosts::OF_WORDS,
        };
        costs.are_lower(geometry).then(|| Self::new(team, geometry, kernels))
    }

    /// Plans a convolution of a geometry that is supported.
    fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry, kernels: &'static QuantizedMicroKernels) -> Self {
        let (rows, columns) = tile_grid(geometry, OUTPUTS);
        let NhwcGeometry { images, channels, outputs, .. } = *geometry;
        let work = [images * rows * columns, POINTS * POINTS, channels, outputs]
            .into_iter()
            .fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        // A transformed input has two bytes, and a sum four.
        let size = POINTS * POINTS * (2 * channels + 4 * outputs);
        Self { tiles: TileBlocks::new(geometry, OUTPUTS, (size, kernels.max_pixels()), threads), kernels }
    }

    /// True if results with these weights can be found from what is left of them modulo 2³².
    pub(super) fn is_exact(&self, weights: &[i8]) -> bool {
        let taps = 9 * self.tiles.geometry().channels;
        let limit = FourOutputs::MAX_RESULT / usize::from(u8::MAX);
        // With the largest weights, as many taps fit.
        taps * 128 <= limit
            || weights.chunks_exact(taps).all(|window| {
                let [mut positive, mut negative] = [0; 2];
                for weight in window {
                    positive += usize::from((*weight).max(0).unsigned_abs());
                    negative += usize::from((*weight).min(0).unsigned_abs());
                }
                positive.max(negative) <= limit
            })
    }

    pub(super) fn pack_weights(&self, team: &dyn ThreadTeam, weights: &[i8]) -> TransformedWeights {
        let NhwcGeometry { channels, outputs, .. } = *self.tiles.geometry();
        TransformedWeights::new(team, (channels, outputs), self.kernels, weights)
    }

    /// The layouts of the transformed inputs of a block, as pairs, and of its sums.
    fn layouts(&self) -> [TransformLayout; 2] {
        let NhwcGeometry { channels, outputs, .. } = *self.tiles.geometry();
        [channels.div_ceil(PAIR), outputs].map(|count| TransformLayout::new(count, self.tiles.block_size()))
    }

    /// The sizes of the parts of scratch memory: padding, and the transformed inputs and the sums of a block.
    fn scratch_sizes(&self) -> [usize; 3] {
        let [inputs, sums] = self.layouts().map(|layout| POINTS * POINTS * layout.point);
        [self.tiles.geometry().channels.div_ceil(size_of::<i32>()).next_multiple_of(16), inputs, sums]
    }

    pub(super) fn scratch_size(&self) -> usize {
        let [padding, inputs, sums] = self.scratch_sizes();
        // Up to a cache line is lost to aligning the scratch memory.
        (padding + self.tiles.lane_count() * (inputs + sums)) * size_of::<i32>() + 64
    }

    /// Runs the convolution. `starts` has the initial sums of all outputs.
    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        images: &QuantizedImages<'_>,
        (weights, starts): (&TransformedWeights, &[i32]),
        epilogue: &QuantizedEpilogue<'_>,
        y: &mut [u8],
        scratch: &mut ScratchBuffer<'_>,
    ) {
        let [padding, inputs, sums] = self.scratch_sizes();
        let lane_size = inputs + sums;
        let scratch = scratch.allocate_elements::<i32>(padding + self.tiles.lane_count() * lane_size);
        let (padding, lanes) = scratch.split_at_mut(padding);
        padding.fill(i32::from_ne_bytes([images.zero; 4]));
        // SAFETY: the words have a byte for each channel.
        let padding =
            unsafe { std::slice::from_raw_parts(padding.as_ptr().cast(), self.tiles.geometry().channels) };
        let (lanes, y) = (DisjointSlice::new(lanes), DisjointSlice::new(y));
        self.tiles.run(team, |lane, first| QuantizedWinogradBlock {
            winograd: self,
            isa: team.isa(),
            images,
            padding,
            weights,
            starts,
            epilogue,
            y: &y,
            inputs: lanes.element_pointer(lane * lane_size),
            sums: lanes.element_pointer(lane * lane_size + inputs),
            layouts: self.layouts(),
            first,
        });
    }
}

/// A block of tiles that is being computed.
struct QuantizedWinogradBlock<'a> {
    winograd: &'a QuantizedWinograd,
    isa: Isa,
    images: &'a QuantizedImages<'a>,
    /// A pixel that consists of zero points.
    padding: &'a [u8],
    weights: &'a TransformedWeights,
    starts: &'a [i32],
    epilogue: &'a QuantizedEpilogue<'a>,
    y: &'a DisjointSlice<'a, u8>,
    /// The addresses and layouts of the transformed inputs, in pairs, and of the sums.
    inputs: *mut i32,
    sums: *mut i32,
    layouts: [TransformLayout; 2],
    /// The first tile of the block.
    first: usize,
}

// SAFETY: threads that share a block transform disjoint tiles and multiply disjoint points.
unsafe impl Sync for QuantizedWinogradBlock<'_> {}

impl BlockSteps for QuantizedWinogradBlock<'_> {
    fn transform_inputs(&self, tiles: Range<usize>) {
        self.isa.vectorize(TransformInputs { block: self, tiles });
    }

    fn multiply_points(&self, points: Range<usize>, tiles: usize) {
        let kernels = self.winograd.kernels;
        let share = even_tile_size(tiles, kernels.max_pixels());
        let NhwcGeometry { channels, outputs, .. } = *self.winograd.tiles.geometry();
        let [input_layout, sum_layout] = self.layouts;
        let mut rows = [ptr::null(); MAX_TILE_PIXELS];
        for point in points {
            // A panel stays in L1 while the tiles pass by.
            for output in (0..outputs).step_by(kernels.max_channels()) {
                let width = (outputs - output)
                    .min(kernels.max_channels())
                    .next_multiple_of(kernels.panel_format.lanes);
                for first in (0..tiles).step_by(share) {
                    let count = share.min(tiles - first);
                    for (row, pointer) in rows.iter_mut().enumerate().take(count) {
                        let place = point * input_layout.point + (first + row) * input_layout.row;
                        *pointer = self.inputs.wrapping_add(place).cast_const().cast();
                    }
                    let place = point * sum_layout.point + first * sum_layout.row + output;
                    let outcome = TileOutcome::Sums(SumsTarget {
                        output: self.sums.wrapping_add(place),
                        pixel: sum_layout.row,
                        // Rows are padded to whole vectors, so no lane is masked.
                        channels: width,
                    });
                    // SAFETY: the rows and the panel have as many pairs, there is room for whole vectors of sums, and nothing else
                    // accesses them meanwhile.
                    unsafe {
                        kernels.micro_kernel(false, count, width)(&QuantizedTile {
                            inputs: rows.as_ptr(),
                            taps: 1,
                            steps: channels.div_ceil(PAIR),
                            skip: 0,
                            weights: self.weights.panel_pointer(point, output),
                            start: NO_SUMS.as_ptr(),
                            outcome: &outcome,
                        });
                    }
                }
            }
        }
    }

    fn transform_outputs(&self, tiles: Range<usize>) {
        self.isa.vectorize(TransformOutputs { block: self, tiles });
    }
}

/// The initial sums of products at a point, for the widest panel.
static NO_SUMS: [i32; 32] = [0; 32];
