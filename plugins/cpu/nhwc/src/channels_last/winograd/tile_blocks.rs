//! The tiles of a Winograd convolution, and the blocks of them that threads work on.

use std::ops::Range;

use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::TaskQueue;

use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::tile::even_tile_size;

/// Bytes of transformed tiles that a thread works on at a time, so that they stay in L2 beside the weights.
const TILE_BLOCK_BYTES: usize = 512 * 1024;

/// The steps of a block. All tiles are transformed before any is multiplied, and multiplied at all points before their outputs are
/// transformed back.
pub(crate) trait BlockSteps: Sync {
    fn transform_inputs(&self, tiles: Range<usize>);

    /// Multiplies some tiles of the block, counted from its first, at some points.
    fn multiply_points(&self, points: Range<usize>, tiles: usize);

    fn transform_outputs(&self, tiles: Range<usize>);
}

/// The division of images into tiles, and of tiles into blocks.
pub(crate) struct TileBlocks {
    geometry: NhwcGeometry,
    /// Outputs of a tile along each axis.
    outputs: usize,
    /// The number of tiles down and along an image.
    tiles: (usize, usize),
    threads: usize,
    /// The number of tiles in a block.
    block: usize,
    /// True if threads share the tiles of one block, because there are too few blocks for all threads.
    is_shared: bool,
}

impl TileBlocks {
    /// `tile_bytes` is the memory of a transformed tile and its products; micro-kernels multiply `multiple` tiles at a time.
    pub(crate) fn new(
        geometry: &NhwcGeometry,
        outputs: usize,
        (tile_bytes, multiple): (usize, usize),
        threads: usize,
    ) -> Self {
        let tiles = tile_grid(geometry, outputs);
        let all = geometry.images * tiles.0 * tiles.1;
        let most = (TILE_BLOCK_BYTES / tile_bytes.max(1)).max(1).next_multiple_of(multiple);
        // With fewer than two blocks per thread, some threads would idle at the end. Sharing costs two barriers per block.
        let is_shared = threads > 1 && all < 2 * threads * most;
        let block = if is_shared { all } else { even_tile_size(all, most) };
        Self { geometry: geometry.clone(), outputs, tiles, threads, block, is_shared }
    }

    pub(crate) fn is_supported(geometry: &NhwcGeometry) -> bool {
        let axes = [geometry.vertical, geometry.horizontal];
        // With groups, each product would be small, and the transforms as large as before.
        geometry.groups == 1
            && axes.iter().all(|axis| axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1)
    }

    pub(crate) fn geometry(&self) -> &NhwcGeometry {
        &self.geometry
    }

    /// The number of tiles in a block.
    pub(crate) fn block_size(&self) -> usize {
        self.block
    }

    /// The number of points at which a tile is multiplied.
    pub(crate) fn point_count(&self) -> usize {
        (self.outputs + 2) * (self.outputs + 2)
    }

    /// The number of blocks that are computed at once.
    pub(crate) fn lane_count(&self) -> usize {
        if self.is_shared { 1 } else { self.threads }
    }

    /// The image, row and column of the first output of a tile.
    pub(crate) fn tile_position(&self, tile: usize) -> (usize, usize, usize) {
        let (tile_rows, tile_columns) = self.tiles;
        let (row, column) = (tile / tile_columns, tile % tile_columns);
        (row / tile_rows, row % tile_rows * self.outputs, column * self.outputs)
    }

    /// The pixels under the windows of a tile, row by row; `None` for padding.
    pub(crate) fn input_pixels<const POINTS: usize>(&self, tile: usize) -> [[Option<usize>; POINTS]; POINTS] {
        let NhwcGeometry { vertical, horizontal, .. } = self.geometry;
        let (image, top, left) = self.tile_position(tile);
        let at = |first: usize, step: usize, pad: usize, size: usize| {
            (first + step).checked_sub(pad).filter(|place| *place < size)
        };
        let mut pixels = [[None; POINTS]; POINTS];
        for (row, pixels) in pixels.iter_mut().enumerate() {
            let Some(y) = at(top, row, vertical.pad.0, vertical.input) else { continue };
            for (column, pixel) in pixels.iter_mut().enumerate() {
                let x = at(left, column, horizontal.pad.0, horizontal.input);
                *pixel = x.map(|x| (image * vertical.input + y) * horizontal.input + x);
            }
        }
        pixels
    }

    /// The first output pixel of a tile, and the rows and columns of its outputs inside the image.
    pub(crate) fn output_pixels(&self, tile: usize) -> (usize, [usize; 2]) {
        let NhwcGeometry { vertical, horizontal, .. } = self.geometry;
        let (image, top, left) = self.tile_position(tile);
        let sizes = [self.outputs.min(vertical.output - top), self.outputs.min(horizontal.output - left)];
        ((image * vertical.output + top) * horizontal.output + left, sizes)
    }

    /// Computes all blocks. `block_at` makes the steps of a block from its lane and its first tile.
    pub(crate) fn run<B: BlockSteps>(
        &self,
        team: &dyn ThreadTeam,
        block_at: impl Fn(usize, usize) -> B + Sync,
    ) {
        let all = self.geometry.images * self.tiles.0 * self.tiles.1;
        if self.is_shared {
            let block = block_at(0, 0);
            // Each step ends before the next begins, since a product needs all tiles, and an output tile needs all points.
            parallel_ranges(team, self.threads, all, |tiles| block.transform_inputs(tiles));
            parallel_ranges(team, self.threads, self.point_count(), |points| {
                block.multiply_points(points, all);
            });
            parallel_ranges(team, self.threads, all, |tiles| block.transform_outputs(tiles));
            return;
        }
        let blocks = all.div_ceil(self.block);
        let tasks = TaskQueue::new(blocks, self.threads);
        team.parallel_for_each(self.threads.min(blocks), &|lane| {
            for task in tasks.tasks_for_worker(lane) {
                let first = task * self.block;
                let tiles = first..all.min(first + self.block);
                let block = block_at(lane, first);
                block.transform_inputs(tiles.clone());
                block.multiply_points(0..self.point_count(), tiles.len());
                block.transform_outputs(tiles);
            }
        });
    }
}

/// The number of tiles down and along an image.
pub(crate) fn tile_grid(geometry: &NhwcGeometry, outputs: usize) -> (usize, usize) {
    (geometry.vertical.output.div_ceil(outputs), geometry.horizontal.output.div_ceil(outputs))
}

/// Runs `body` over `0..count`, in a few ranges per thread.
fn parallel_ranges(team: &dyn ThreadTeam, threads: usize, count: usize, body: impl Fn(Range<usize>) + Sync) {
    let piece = count.div_ceil(4 * threads).max(1);
    team.parallel_for_each(count.div_ceil(piece), &|index| {
        body(index * piece..count.min((index + 1) * piece));
    });
}

/// The layout of rows of elements of four bytes: the distance between rows, and between the first rows of two points.
#[derive(Clone, Copy)]
pub(crate) struct TransformLayout {
    pub(crate) row: usize,
    pub(crate) point: usize,
}

impl TransformLayout {
    pub(crate) fn new(elements: usize, rows: usize) -> Self {
        let row = elements.next_multiple_of(16);
        // If points were a multiple of 1 KiB apart, they would map to few L1 sets, so the distance gets one more cache line.
        let point = row * rows;
        Self { row, point: if point.is_multiple_of(256) { point + 16 } else { point } }
    }
}
