//! Winograd convolutions with 3 × 3 windows. Tiles of the input and the weights are transformed so that the convolution becomes one
//! matrix product per transformed point (tiles by input channels times input by output channels), with fewer multiplications; the
//! products are transformed back. A tile of 2 × 2 outputs needs 16 products instead of 36, and one of 4 × 4 outputs needs 36
//! instead of 144.
//!
//! Results differ from those of other algorithms in the last digits. An infinity or NaN spreads to all products of its tile, so the
//! outputs of such a tile are computed again as sums over their windows.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

mod block;
mod scheme;
pub(crate) mod tile_blocks;

use std::marker::PhantomData;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;

use self::block::WinogradBlock;
use self::scheme::{FourOutputScheme, TwoOutputScheme, WinogradScheme};
use self::tile_blocks::{TileBlocks, TransformLayout, tile_grid};
use super::epilogue::ConvEpilogue;
use super::geometry::NhwcGeometry;
use super::tile::ConvMicroKernels;
use super::weight_panels::{OriginalWeights, PanelWriter, WeightPanels};

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

/// The minimum number of input and of output channels for which the transforms pay.
const MIN_CHANNELS: usize = 16;
/// The costs, in multiplications, of reading a weight that is not in cache and of transforming an element.
const READ_COST: usize = 12;
const TRANSFORM_COST: usize = 8;

/// The output channels of the widest panel: two zmm of `f32`.
const MAX_CHANNELS: usize = 32;

/// The number of outputs of a tile along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WinogradTileSize {
    Two,
    Four,
}

impl WinogradTileSize {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Two => "Winograd F(2×2, 3×3)",
            Self::Four => "Winograd F(4×4, 3×3)",
        }
    }

    /// The cheapest tile size, if it beats the direct algorithm.
    pub(super) fn profitable_size(geometry: &NhwcGeometry) -> Option<Self> {
        if !TileBlocks::is_supported(geometry) || geometry.channels.min(geometry.outputs) < MIN_CHANNELS {
            return None;
        }
        // Both costs are per pair of input and output channel, so the number of channels cancels, except for the transforms, which
        // the pairs share.
        let without = geometry.output_pixels() * 9 + READ_COST * 9;
        let costs = [Self::Two, Self::Four].map(|outputs| (outputs.cost(geometry), outputs));
        let (cost, outputs) = costs.into_iter().min_by_key(|(cost, _)| *cost)?;
        // A gain of less than 15 % is not worth the loss of precision.
        (cost < without / 100 * 85).then_some(outputs)
    }

    /// The cost in multiplications, per pair of input and output channel.
    fn cost(self, geometry: &NhwcGeometry) -> usize {
        let points = self.point_count() * self.point_count();
        let (rows, columns) = tile_grid(geometry, self.output_count());
        let tiles = geometry.images * rows * columns;
        // One multiplication for each point of each tile.
        let places = tiles * points;
        let transforms =
            places * TRANSFORM_COST / geometry.channels + places * TRANSFORM_COST / geometry.outputs;
        places + transforms + READ_COST * points
    }

    fn output_count(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
        }
    }

    /// The number of transformed points along each axis.
    fn point_count(self) -> usize {
        self.output_count() + 2
    }
}

pub(super) struct WinogradConv {
    outputs: WinogradTileSize,
    tiles: TileBlocks,
}

impl WinogradConv {
    pub(super) fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry, outputs: WinogradTileSize) -> Self {
        let count = outputs.output_count();
        let tiles = tile_grid(geometry, count);
        let points = outputs.point_count() * outputs.point_count();
        let work = [geometry.images * tiles.0 * tiles.1, points, geometry.channels, geometry.outputs]
            .into_iter()
            .fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        // A tile needs memory for its transformed inputs and for its products, which become the outputs.
        let size = points * (geometry.channels + geometry.outputs) * size_of::<f32>();
        let multiple = ConvMicroKernels::for_isa(team.isa()).max_pixels();
        Self { outputs, tiles: TileBlocks::new(geometry, count, (size, multiple), threads) }
    }

    pub(super) fn tile_size(&self) -> WinogradTileSize {
        self.outputs
    }

    /// The transformed weights in panels: a matrix for each point.
    pub(super) fn pack_weights(&self, team: &dyn ThreadTeam, weights: &[f32]) -> WeightPanels {
        let NhwcGeometry { channels, outputs, .. } = *self.tiles.geometry();
        WeightPanels::new(team, (self.tiles.point_count(), channels, outputs), |panel| {
            for channel in 0..channels {
                // One input channel at a time: its transformed windows are a row in each matrix.
                let of_channels = (channel, channels);
                match self.outputs {
                    WinogradTileSize::Two => {
                        transform_weights::<TwoOutputScheme, 2, 4>(team.isa(), of_channels, weights, panel);
                    }
                    WinogradTileSize::Four => {
                        transform_weights::<FourOutputScheme, 4, 6>(team.isa(), of_channels, weights, panel);
                    }
                };
            }
        })
    }

    /// The layouts of the transformed inputs and outputs of a block: for each point, rows of channels.
    fn transform_layouts(&self) -> [TransformLayout; 2] {
        let NhwcGeometry { channels, outputs, .. } = *self.tiles.geometry();
        [channels, outputs].map(|channels| TransformLayout::new(channels, self.tiles.block_size()))
    }

    /// The sizes of the parts of scratch memory: zeros, and the transformed inputs and outputs of a block.
    fn scratch_sizes(&self) -> [usize; 3] {
        let [inputs, outputs] =
            self.transform_layouts().map(|layout| self.tiles.point_count() * layout.point);
        // Rounded up to a cache line, so that the next part is aligned.
        [self.tiles.geometry().channels.next_multiple_of(16), inputs, outputs]
    }

    pub(super) fn scratch_size(&self) -> usize {
        let [zeros, inputs, outputs] = self.scratch_sizes();
        zeros + self.tiles.lane_count() * (inputs + outputs)
    }

    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights, given): (&[f32], &WeightPanels, OriginalWeights<'_>),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [zeros, inputs, outputs] = self.scratch_sizes();
        let (zeros, lanes) = scratch.split_at_mut(zeros);
        zeros.fill(0.0);
        let lanes = DisjointSlice::new(lanes);
        let layouts = self.transform_layouts();
        let y = DisjointSlice::new(y);
        self.tiles.run(team, |lane, first| {
            // Each lane has one part of the scratch memory, which all its blocks reuse.
            let start = lane * (inputs + outputs);
            WinogradBlock {
                winograd: self,
                isa: team.isa(),
                x,
                zeros,
                weights,
                given,
                epilogue,
                y: &y,
                inputs: lanes.element_pointer(start),
                outputs: lanes.element_pointer(start + inputs),
                layouts,
                first,
            }
        });
    }
}

/// Transforms the windows of one input channel for a panel of output channels.
fn transform_weights<S: WinogradScheme<OUT, POINTS>, const OUT: usize, const POINTS: usize>(
    isa: Isa,
    (channel, channels): (usize, usize),
    weights: &[f32],
    panel: &mut PanelWriter<'_>,
) {
    // Channels beyond the panel stay 0, and so do their products.
    let mut windows = WindowTransform { weights: [[0.0; MAX_CHANNELS]; 9], scheme: PhantomData::<S> };
    let source = weights[panel.first * channels * 9..].chunks_exact(9).skip(channel).step_by(channels);
    for (output, window) in source.take(panel.count).enumerate() {
        for (place, weight) in windows.weights.iter_mut().zip(window) {
            place[output] = *weight;
        }
    }
    let transformed: [[[f32; MAX_CHANNELS]; POINTS]; POINTS] = isa.vectorize(windows);
    for (point, values) in transformed.iter().flatten().enumerate() {
        let (row, width) = panel.rows_mut(point, channel..channel + 1);
        row.copy_from_slice(&values[..width]);
    }
}

/// The windows of some output channels for one input channel: for each of the nine taps, the weights of all outputs. Output
/// channels are the last dimension, so that the transform vectorizes over them.
struct WindowTransform<S, const OUT: usize, const POINTS: usize> {
    weights: [[f32; MAX_CHANNELS]; 9],
    scheme: PhantomData<S>,
}

impl<S: WinogradScheme<OUT, POINTS>, const OUT: usize, const POINTS: usize> SimdTask
    for WindowTransform<S, OUT, POINTS>
{
    type Output = [[[f32; MAX_CHANNELS]; POINTS]; POINTS];

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an output is the last index everywhere")]
    fn run_on_target<T: SimdTarget>(self) -> Self::Output {
        let mut transformed = [[[0.0; MAX_CHANNELS]; POINTS]; POINTS];
        for output in 0..MAX_CHANNELS {
            // In `f64`: the constants of F(4×4) amplify rounding errors, and this runs only once per model.
            let at = |place: usize| f64::from(self.weights[place][output]);
            let mut rows = [[0.0; POINTS]; 3];
            for (row, values) in rows.iter_mut().enumerate() {
                *values = S::transform_weights([at(3 * row), at(3 * row + 1), at(3 * row + 2)]);
            }
            for tile_column in 0..POINTS {
                let column =
                    S::transform_weights([rows[0][tile_column], rows[1][tile_column], rows[2][tile_column]]);
                for (tile_row, value) in column.into_iter().enumerate() {
                    transformed[tile_row][tile_column][output] = value as f32;
                }
            }
        }
        transformed
    }
}
