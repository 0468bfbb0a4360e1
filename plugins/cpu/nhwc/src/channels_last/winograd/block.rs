//! A block of tiles: transforms their inputs, multiplies them with the weights, and transforms the products back.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

mod exact;

use std::ops::Range;
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_gemm::DisjointSlice;

use super::super::bf16_images::Bf16Images;
use super::super::epilogue::ConvEpilogue;
use super::super::geometry::NhwcGeometry;
use super::super::tile::{ConvMicroKernels, ConvTile, MAX_TILE_PIXELS, TileEpilogue, even_tile_size};
use super::super::weight_panels::{OriginalWeights, WeightPanels};
use super::scheme::{FourOutputScheme, TwoOutputScheme, WinogradScheme};
use super::tile_blocks::{BlockSteps, TransformLayout};
use super::{WinogradConv, WinogradTileSize};
use exact::ExactSums;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};

#[derive(Clone, Copy)]
enum TransformStep {
    Input,
    Output,
}

/// A block of tiles that is being computed.
pub(super) struct WinogradBlock<'a> {
    pub(super) winograd: &'a WinogradConv,
    pub(super) isa: Isa,
    pub(super) x: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a WeightPanels,
    pub(super) given: OriginalWeights<'a>,
    pub(super) epilogue: &'a ConvEpilogue<'a>,
    pub(super) y: &'a DisjointSlice<'a, f32>,
    /// The addresses and layouts of the transformed inputs and outputs.
    pub(super) inputs: *mut f32,
    pub(super) outputs: *mut f32,
    pub(super) layouts: [TransformLayout; 2],
    /// The first tile of the block.
    pub(super) first: usize,
}

// SAFETY: threads that share a block transform disjoint tiles and multiply disjoint points.
unsafe impl Sync for WinogradBlock<'_> {}

impl BlockSteps for WinogradBlock<'_> {
    fn transform_inputs(&self, tiles: Range<usize>) {
        run_with_vectors(self.isa, TransformTiles { block: self, step: TransformStep::Input, tiles });
    }

    fn transform_outputs(&self, tiles: Range<usize>) {
        run_with_vectors(self.isa, TransformTiles { block: self, step: TransformStep::Output, tiles });
    }

    fn multiply_points(&self, points: Range<usize>, tiles: usize) {
        let kernels = ConvMicroKernels::for_isa(self.isa);
        let share = even_tile_size(tiles, kernels.max_pixels());
        let [inputs, outputs] = self.layouts;
        let NhwcGeometry { channels, outputs: width, .. } = *self.winograd.tiles.geometry();
        let mut pointers = [ptr::null(); MAX_TILE_PIXELS];
        for point in points {
            for first in (0..tiles).step_by(share) {
                let count = share.min(tiles - first);
                for (row, pointer) in pointers.iter_mut().enumerate().take(count) {
                    *pointer = self
                        .inputs
                        .wrapping_add(point * inputs.point + (first + row) * inputs.row)
                        .cast_const();
                }
                for channel in (0..width).step_by(self.weights.panel_width()) {
                    // Rows and panels are padded to whole vectors, so no lane is masked.
                    let channels_of_tile =
                        (width - channel).min(self.weights.panel_width()).next_multiple_of(kernels.lanes);
                    let output = point * outputs.point + first * outputs.row + channel;
                    // SAFETY: the rows and the panel exist, and nothing else accesses these rows of the output meanwhile.
                    unsafe {
                        kernels.micro_kernel(count, channels_of_tile)(&ConvTile {
                            inputs: pointers.as_ptr(),
                            taps: 1,
                            depth: channels,
                            skip: 0,
                            weights: self.weights.panel_pointer(point, channel),
                            epilogue: TileEpilogue {
                                bias: ptr::null(),
                                output: self.outputs.wrapping_add(output),
                                pixel: outputs.row,
                                residual: ptr::null(),
                                channels: channels_of_tile,
                                bounds: None,
                                paired: Bf16Images::NONE,
                            },
                        });
                    }
                }
            }
        }
    }
}

impl WinogradBlock<'_> {
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "rows and columns change places")]
    unsafe fn transform_input_tile<
        V: F32Vector,
        S: WinogradScheme<OUT, POINTS>,
        const OUT: usize,
        const POINTS: usize,
    >(
        &self,
        tile: usize,
    ) {
        let tiles = &self.winograd.tiles;
        let channels = tiles.geometry().channels;
        let inputs: [[*const f32; POINTS]; POINTS] = tiles.input_pixels(tile).map(|row| {
            row.map(|pixel| pixel.map_or(self.zeros.as_ptr(), |pixel| self.x[pixel * channels..].as_ptr()))
        });
        let layout = self.layouts[0];
        let target = self.inputs.wrapping_add((tile - self.first) * layout.row);
        for channel in (0..channels).step_by(V::LANES) {
            let count = V::LANES.min(channels - channel);
            // SAFETY: all inputs have these channels, the rows of the target are whole vectors, and the caller guarantees the
            // instructions.
            unsafe {
                let load = |place: *const f32| {
                    let place = place.add(channel);
                    if count == V::LANES { V::load(place) } else { V::load_partial(place, count) }
                };
                let mut columns = [[V::splat(0.0); POINTS]; POINTS];
                for tile_column in 0..POINTS {
                    columns[tile_column] = S::transform_input(std::array::from_fn(|tile_row| {
                        load(inputs[tile_row][tile_column])
                    }));
                }
                for tile_row in 0..POINTS {
                    let row =
                        S::transform_input(std::array::from_fn(|tile_column| columns[tile_column][tile_row]));
                    for (tile_column, value) in row.into_iter().enumerate() {
                        value.store(target.add((tile_row * POINTS + tile_column) * layout.point + channel));
                    }
                }
            }
        }
    }

    /// Transforms the products of a tile back and runs the epilogue.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "rows and columns change places")]
    unsafe fn transform_output_tile<
        V: F32Vector,
        S: WinogradScheme<OUT, POINTS>,
        const OUT: usize,
        const POINTS: usize,
    >(
        &self,
        tile: usize,
    ) {
        let tiles = &self.winograd.tiles;
        let NhwcGeometry { outputs: channels, horizontal, .. } = *tiles.geometry();
        let (first, [rows, columns]) = tiles.output_pixels(tile);
        let start = first * channels;
        let layout = self.layouts[1];
        let source = self.outputs.wrapping_add((tile - self.first) * layout.row).cast_const();
        let bias = self.epilogue.bias_pointer(0);
        let residual = self.epilogue.residual_pointer(start, self.y.element_pointer(start));
        let bounds = self.epilogue.clamp_bounds();
        let mut exact = None;
        for channel in (0..channels).step_by(V::LANES) {
            let count = V::LANES.min(channels - channel);
            // SAFETY: the outputs of the tile have these channels and belong to no other tile; the rows of the source are whole
            // vectors; and the caller guarantees the instructions.
            unsafe {
                let load = |place: *const f32| {
                    if count == V::LANES { V::load(place) } else { V::load_partial(place, count) }
                };
                let bias = if bias.is_null() { V::splat(0.0) } else { load(bias.add(channel)) };
                let mut halves = [[V::splat(0.0); OUT]; POINTS];
                for tile_column in 0..POINTS {
                    halves[tile_column] = S::transform_output(std::array::from_fn(|tile_row| {
                        V::load(source.add((tile_row * POINTS + tile_column) * layout.point + channel))
                    }));
                }
                let mut results: [[V; OUT]; OUT] = std::array::from_fn(|tile_row| {
                    S::transform_output(std::array::from_fn(|tile_column| halves[tile_column][tile_row]))
                });
                // An infinity or NaN may belong to the result, or may come from the transforms only. One test of the sum of all
                // results detects any of them.
                let mut sum = V::splat(0.0);
                for result in results.as_flattened() {
                    sum = sum.add(*result);
                }
                if !sum.is_finite() {
                    let exact = exact.get_or_insert_with(|| ExactSums::new(self, tile));
                    let sums = exact.channel_sums(channel..channel + count);
                    for (result, sum) in results.as_flattened_mut().iter_mut().zip(&sums) {
                        *result = V::load(sum.as_ptr());
                    }
                }
                for (tile_row, row) in results.into_iter().enumerate().take(rows) {
                    for (column, value) in row.into_iter().enumerate().take(columns) {
                        let offset = (tile_row * horizontal.output + column) * channels + channel;
                        let mut value = value.add(bias);
                        if !residual.is_null() {
                            value = value.add(load(residual.add(offset)));
                        }
                        if let Some([low, high]) = bounds {
                            value = value.max(V::splat(low)).min(V::splat(high));
                        }
                        let place = self.y.element_pointer(start + offset);
                        if count == V::LANES { value.store(place) } else { value.store_partial(place, count) }
                    }
                }
            }
        }
        if self.epilogue.has_remaining() {
            for pixel in
                (0..rows).flat_map(|row| (0..columns).map(move |column| row * horizontal.output + column))
            {
                let place = start + pixel * channels;
                // SAFETY: these outputs are complete and belong to no other tile.
                self.epilogue.apply_remaining(self.isa, unsafe { self.y.range_mut(place..place + channels) });
            }
        }
    }
}

struct TransformTiles<'a> {
    block: &'a WinogradBlock<'a>,
    step: TransformStep,
    tiles: Range<usize>,
}

impl F32VectorTask for TransformTiles<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        for tile in self.tiles {
            // SAFETY: the caller guarantees the instructions.
            unsafe {
                match (self.step, self.block.winograd.outputs) {
                    (TransformStep::Input, WinogradTileSize::Two) => {
                        self.block.transform_input_tile::<V, TwoOutputScheme, 2, 4>(tile);
                    }
                    (TransformStep::Input, WinogradTileSize::Four) => {
                        self.block.transform_input_tile::<V, FourOutputScheme, 4, 6>(tile);
                    }
                    (TransformStep::Output, WinogradTileSize::Two) => {
                        self.block.transform_output_tile::<V, TwoOutputScheme, 2, 4>(tile);
                    }
                    (TransformStep::Output, WinogradTileSize::Four) => {
                        self.block.transform_output_tile::<V, FourOutputScheme, 4, 6>(tile);
                    }
                }
            }
        }
    }
}
