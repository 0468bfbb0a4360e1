//! A block of tiles: their inputs are transformed, multiplied with the weights, and transformed back.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;
use std::ptr;

use super::super::dense::Paired;
use super::super::finish::Finish;
use super::super::geometry::Geometry;
use super::super::lanes::{Lanes, Work, with_lanes};
use super::super::tile::{Ending, Kernels, MOST_PIXELS, Tile, even_share};
use super::super::weights::{GivenWeights, Panels};
use super::exact::Sums;
use super::scheme::{Four, Scheme, Two};
use super::{Outputs, Winograd};
use crate::gemm::Parts;
use crate::isa::Isa;

/// How rows of channels lie in memory: how far they are apart, and how far the first rows of two points are.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) row: usize,
    pub(super) point: usize,
}

impl Layout {
    pub(super) fn new(channels: usize, rows: usize) -> Self {
        let row = channels.next_multiple_of(16);
        // Rows of different points that are whole pages apart would fight for the same lines of the nearest cache.
        let point = row * rows;
        Self { row, point: if point.is_multiple_of(256) { point + 16 } else { point } }
    }
}

/// Which transform of tiles to do.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Input,
    Output,
}

/// A block of tiles while it is computed.
pub(super) struct Block<'a> {
    pub(super) winograd: &'a Winograd,
    pub(super) isa: Isa,
    pub(super) x: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a Panels,
    pub(super) given: GivenWeights<'a>,
    pub(super) finish: &'a Finish<'a>,
    pub(super) y: &'a Parts<'a, f32>,
    /// Where the transformed inputs and outputs lie, and how.
    pub(super) inputs: *mut f32,
    pub(super) outputs: *mut f32,
    pub(super) layouts: [Layout; 2],
    /// The first tile of the block.
    pub(super) first: usize,
}

// SAFETY: threads that share a job transform tiles and multiply points of their own.
unsafe impl Sync for Block<'_> {}

impl Block<'_> {
    pub(super) fn step(&self, step: Step, tiles: Range<usize>) {
        with_lanes(self.isa, Tiles { block: self, step, tiles });
    }

    /// Multiplies the tiles of a block with the weights at some points.
    pub(super) fn multiply(&self, points: Range<usize>, tiles: usize) {
        let kernels = Kernels::of(self.isa);
        let share = even_share(tiles, kernels.pixels());
        let [inputs, outputs] = self.layouts;
        let Geometry { channels, outputs: width, .. } = self.winograd.geometry;
        let mut pointers = [ptr::null(); MOST_PIXELS];
        for point in points {
            for first in (0..tiles).step_by(share) {
                let count = share.min(tiles - first);
                for (row, pointer) in pointers.iter_mut().enumerate().take(count) {
                    *pointer = self
                        .inputs
                        .wrapping_add(point * inputs.point + (first + row) * inputs.row)
                        .cast_const();
                }
                for channel in (0..width).step_by(self.weights.width()) {
                    // Rows are whole vectors, and so are panels.
                    let channels_of_tile =
                        (width - channel).min(self.weights.width()).next_multiple_of(kernels.lanes);
                    let output = point * outputs.point + first * outputs.row + channel;
                    // SAFETY: the rows and the panel are there, and nothing else reaches the rows of the output meanwhile.
                    unsafe {
                        kernels.get(count, channels_of_tile)(&Tile {
                            inputs: pointers.as_ptr(),
                            taps: 1,
                            depth: channels,
                            skip: 0,
                            weights: self.weights.panel(point, channel),
                            ending: Ending {
                                bias: ptr::null(),
                                output: self.outputs.wrapping_add(output),
                                pixel: outputs.row,
                                residual: ptr::null(),
                                channels: channels_of_tile,
                                bounds: None,
                                paired: Paired::NONE,
                            },
                        });
                    }
                }
            }
        }
    }

    /// The image a tile is of, and where its first output lies.
    pub(super) fn place(&self, tile: usize) -> (usize, usize, usize) {
        let (down, along) = self.winograd.tiles;
        let count = self.winograd.outputs.count();
        let (row, column) = (tile / along, tile % along);
        (row / down, row % down * count, column * count)
    }

    /// Transforms the inputs of a tile.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "rows and columns change places")]
    unsafe fn transform_inputs<V: Lanes, S: Scheme<OUT, POINTS>, const OUT: usize, const POINTS: usize>(
        &self,
        tile: usize,
    ) {
        let Geometry { channels, down, along, .. } = self.winograd.geometry;
        let (image, top, left) = self.place(tile);
        let at = |first: usize, step: usize, pad: usize, size: usize| {
            (first + step).checked_sub(pad).filter(|place| *place < size)
        };
        let mut inputs = [[self.zeros.as_ptr(); POINTS]; POINTS];
        for (row, inputs) in inputs.iter_mut().enumerate() {
            let Some(y) = at(top, row, down.pad.0, down.input) else { continue };
            for (column, input) in inputs.iter_mut().enumerate() {
                let Some(x) = at(left, column, along.pad.0, along.input) else { continue };
                *input = self.x[((image * down.input + y) * along.input + x) * channels..].as_ptr();
            }
        }
        let layout = self.layouts[0];
        let target = self.inputs.wrapping_add((tile - self.first) * layout.row);
        for channel in (0..channels).step_by(V::COUNT) {
            let count = V::COUNT.min(channels - channel);
            // SAFETY: all inputs have these channels, the rows of the target are whole vectors, and the caller vouches
            // for the
            // instructions.
            unsafe {
                let load = |place: *const f32| {
                    let place = place.add(channel);
                    if count == V::COUNT { V::load(place) } else { V::load_some(place, count) }
                };
                let mut columns = [[V::splat(0.0); POINTS]; POINTS];
                for along in 0..POINTS {
                    columns[along] = S::input(std::array::from_fn(|down| load(inputs[down][along])));
                }
                for down in 0..POINTS {
                    let row = S::input(std::array::from_fn(|along| columns[along][down]));
                    for (along, value) in row.into_iter().enumerate() {
                        value.store(target.add((down * POINTS + along) * layout.point + channel));
                    }
                }
            }
        }
    }

    /// Transforms the outputs of a tile, and finishes them.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "rows and columns change places")]
    unsafe fn transform_outputs<V: Lanes, S: Scheme<OUT, POINTS>, const OUT: usize, const POINTS: usize>(
        &self,
        tile: usize,
    ) {
        let Geometry { outputs: channels, down, along, .. } = self.winograd.geometry;
        let (image, top, left) = self.place(tile);
        let (rows, columns) = (OUT.min(down.output - top), OUT.min(along.output - left));
        let start = ((image * down.output + top) * along.output + left) * channels;
        let layout = self.layouts[1];
        let source = self.outputs.wrapping_add((tile - self.first) * layout.row).cast_const();
        let bias = self.finish.bias_from(0);
        let residual = self.finish.residual_from(start, self.y.pointer(start));
        let bounds = self.finish.bounds();
        let mut exact = None;
        for channel in (0..channels).step_by(V::COUNT) {
            let count = V::COUNT.min(channels - channel);
            // SAFETY: the outputs of the tile are there for these channels, and no other tile has them; the rows of
            // the source are
            // whole vectors; and the caller vouches for the instructions.
            unsafe {
                let load = |place: *const f32| {
                    if count == V::COUNT { V::load(place) } else { V::load_some(place, count) }
                };
                let bias = if bias.is_null() { V::splat(0.0) } else { load(bias.add(channel)) };
                let mut halves = [[V::splat(0.0); OUT]; POINTS];
                for along in 0..POINTS {
                    halves[along] = S::output(std::array::from_fn(|down| {
                        V::load(source.add((down * POINTS + along) * layout.point + channel))
                    }));
                }
                let mut results: [[V; OUT]; OUT] =
                    std::array::from_fn(|down| S::output(std::array::from_fn(|along| halves[along][down])));
                // What is not finite may be the outputs themselves or only the way to them.
                let mut sum = V::splat(0.0);
                for result in results.as_flattened() {
                    sum = sum.plus(*result);
                }
                if !sum.is_finite() {
                    let exact = exact.get_or_insert_with(|| Sums::new(self, tile));
                    let sums = exact.of(channel..channel + count);
                    for (result, sum) in results.as_flattened_mut().iter_mut().zip(&sums) {
                        *result = V::load(sum.as_ptr());
                    }
                }
                for (down, row) in results.into_iter().enumerate().take(rows) {
                    for (column, value) in row.into_iter().enumerate().take(columns) {
                        let offset = (down * along.output + column) * channels + channel;
                        let mut value = value.plus(bias);
                        if !residual.is_null() {
                            value = value.plus(load(residual.add(offset)));
                        }
                        if let Some([low, high]) = bounds {
                            value = value.at_least(V::splat(low)).at_most(V::splat(high));
                        }
                        let place = self.y.pointer(start + offset);
                        if count == V::COUNT { value.store(place) } else { value.store_some(place, count) }
                    }
                }
            }
        }
        if self.finish.is_left() {
            for pixel in (0..rows).flat_map(|row| (0..columns).map(move |column| row * along.output + column))
            {
                let place = start + pixel * channels;
                // SAFETY: these outputs are complete, and no other tile has them.
                self.finish.apply(self.isa, unsafe { self.y.part(place..place + channels) });
            }
        }
    }
}

/// Tiles to transform.
struct Tiles<'a> {
    block: &'a Block<'a>,
    step: Step,
    tiles: Range<usize>,
}

impl Work for Tiles<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for tile in self.tiles {
            // SAFETY: the caller vouches for the instructions.
            unsafe {
                match (self.step, self.block.winograd.outputs) {
                    (Step::Input, Outputs::Two) => self.block.transform_inputs::<V, Two, 2, 4>(tile),
                    (Step::Input, Outputs::Four) => self.block.transform_inputs::<V, Four, 4, 6>(tile),
                    (Step::Output, Outputs::Two) => self.block.transform_outputs::<V, Two, 2, 4>(tile),
                    (Step::Output, Outputs::Four) => self.block.transform_outputs::<V, Four, 4, 6>(tile),
                }
            }
        }
    }
}
