//! Convolutions as matrix products whose left rows are never materialized (indirect GEMM): for each tap, each pixel of a tile has a
//! pointer to the inputs under it, and the micro-kernel follows these pointers.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use super::byte_operands::QuantizedImages;
use super::quantized_panels::{QuantizedPanels, WeightSource};
use super::requantize::{QuantizedEpilogue, QuantizedTileEpilogue};
use super::tile::{
    MAX_TILE_PIXELS, QuantizedMicroKernels, QuantizedTile, SumsTarget, TileOutcome, block_kernel,
};
use super::widened_rows::WidenedRows;
use super::window_rows::WindowRows;
#[cfg(x86_vectors)]
use oarlock_cpu_base::amx;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::row_blocks::{RowBlocks, StridedRows, StripeBuffer};
use oarlock_cpu_base::simd::{QUAD, SIGN_BIT};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::tile_block::{BLOCK_ROWS, TILE_ROW_BYTES};
use oarlock_cpu_gemm::{DisjointSlice, GemmEpilogue, OutputBlock, ScratchBuffer, TaskQueue};

use crate::channels_last::geometry::NhwcGeometry;

/// Bytes of weights that a task works on at a time, so that they stay in L2 beside the inputs.
const WEIGHTS_BLOCK_BYTES: usize = 512 * 1024;
/// Multiply-adds that make it worth waking another thread: 8,192 cycles at 128 per cycle, with two VNNI ports.
pub(super) const MIN_WORK_PER_THREAD: usize = 1 << 20;

/// A convolution planned for one geometry and number of threads.
pub(super) struct QuantizedDenseConv {
    geometry: NhwcGeometry,
    rows: WindowRows,
    stripes: Option<RowBlocks>,
    widened: Option<WidenedRows>,
    threads: usize,
    /// Pixels of a tile; pixels and channels of a task.
    tile: usize,
    task: (usize, usize),
}

pub(super) enum QuantizedOutput<'a> {
    /// Requantized to 8 bits.
    Bytes(&'a QuantizedEpilogue<'a>, &'a mut [u8]),
    /// Stored as 32-bit integers, which an epilogue may convert in place while they are in L1.
    Sums(Option<&'a GemmEpilogue<'a, i32>>, &'a mut [i32]),
}

/// [`QuantizedOutput`] while several threads write it.
enum SharedQuantizedOutput<'a> {
    Bytes(&'a QuantizedEpilogue<'a>, DisjointSlice<'a, u8>),
    Sums(Option<&'a GemmEpilogue<'a, i32>>, DisjointSlice<'a, i32>),
}

/// The size of parts if `count` items are divided evenly into parts of at most `most`, so that no part is left with only a few.
pub(super) fn even_tile_size(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).max(1)
}

impl QuantizedDenseConv {
    pub(super) fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Self {
        let kernels = QuantizedMicroKernels::for_isa(team.isa());
        let (pixels, outputs) = (geometry.output_pixels(), geometry.outputs_per_group());
        let steps = geometry.tap_count() * geometry.channels_per_group();
        let work = [pixels, geometry.outputs, steps].into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        let panels = outputs.div_ceil(kernels.max_channels()).max(1);
        let most_panels = (WEIGHTS_BLOCK_BYTES / kernels.max_channels() / steps.max(1)).max(1);
        let tile = even_tile_size(pixels, kernels.max_pixels());
        let tiles = pixels.div_ceil(tile);
        // Several tasks per thread balance the load if other work runs on the machine.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(geometry.groups) };
        let channel_tasks = panels.div_ceil(most_panels).max(1);
        let pixel_tasks = wanted.div_ceil(channel_tasks).min(tiles).max(1);
        let channel_tasks = channel_tasks.max(wanted.div_ceil(pixel_tasks).min(panels));
        let task = (
            tiles.div_ceil(pixel_tasks) * tile,
            even_tile_size(panels, panels.div_ceil(channel_tasks)) * kernels.max_channels(),
        );
        let rows = WindowRows::new(geometry);
        let (taps, depth) = rows.tap_shape();
        let stripes = RowBlocks::for_rows(team.isa(), pixels, taps * depth.next_multiple_of(QUAD));
        let (tile, task) = match &stripes {
            // One task per thread, because every further task would read its weights again.
            Some(stripes) => {
                (BLOCK_ROWS, stripes.task_size(pixels, outputs, threads.div_ceil(geometry.groups)))
            }
            None => (tile, task),
        };
        let widened = WidenedRows::for_tiles(kernels, (taps, depth), tile).filter(|_| stripes.is_none());
        Self { geometry: geometry.clone(), rows, stripes, widened, threads, tile, task }
    }

    /// The number of taps, and the inputs of each, as they are read.
    pub(super) fn tap_shape(&self) -> (usize, usize) {
        self.rows.tap_shape()
    }

    pub(super) fn pack_weights(&self, team: &dyn ThreadTeam, weights: WeightSource<'_>) -> QuantizedPanels {
        QuantizedPanels::new(team, &self.geometry, &self.rows, weights)
    }

    /// The sizes of the parts of scratch memory in words: padding, a copy of the images, and for each thread pointers and gathered
    /// rows.
    fn scratch_sizes(&self) -> [usize; 4] {
        let words = |bytes: usize| bytes.div_ceil(WORD_BYTES);
        let pointers = self.rows.tap_shape().0 * self.tile.max(MAX_TILE_PIXELS);
        let pointers = pointers.max(self.widened.as_ref().map_or(0, WidenedRows::row_count));
        let stripe = self.stripes.as_ref().map_or(0, RowBlocks::stripe_size);
        let rows = words(self.widened.as_ref().map_or(stripe, WidenedRows::size));
        // Each thread's part starts at a cache line.
        [words(self.rows.padding_size()), words(self.rows.copy_size()), pointers, rows]
            .map(|count| count.next_multiple_of(TILE_ROW_BYTES / WORD_BYTES))
    }

    pub(super) fn scratch_size(&self) -> usize {
        let [padding, copy, pointers, rows] = self.scratch_sizes();
        // Up to a line is lost to aligning the scratch memory to a cache line.
        (padding + copy + self.threads * (pointers + rows)) * WORD_BYTES + TILE_ROW_BYTES
    }

    /// Runs the convolution. `starts` has the initial sums of all outputs, in whole vectors for each group.
    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        images: &QuantizedImages<'_>,
        (weights, starts): (&QuantizedPanels, &[i32]),
        results: QuantizedOutput<'_>,
        scratch: &mut ScratchBuffer<'_>,
    ) {
        let [padding_words, copy_words, pointer_words, row_words] = self.scratch_sizes();
        let lane_words = pointer_words + row_words;
        let scratch =
            scratch.allocate_elements::<u64>(padding_words + copy_words + self.threads * lane_words);
        let (padding, rest) = scratch.split_at_mut(padding_words);
        let (copy, lanes) = rest.split_at_mut(copy_words);
        padding.fill(u64::from_ne_bytes([images.zero; WORD_BYTES]));
        let images_read = if copy.is_empty() {
            images.x.as_ptr()
        } else {
            let copy = as_bytes(copy);
            self.rows.copy_images(team, self.threads, images.x, images.zero, copy);
            copy.as_ptr()
        };
        let job = QuantizedDenseJob {
            dense: self,
            isa: team.isa(),
            kernels: QuantizedMicroKernels::for_isa(team.isa()),
            is_signed: images.is_signed,
            images: images_read,
            padding: padding.as_ptr().cast(),
            weights,
            starts,
            written: match results {
                QuantizedOutput::Bytes(epilogue, y) => {
                    SharedQuantizedOutput::Bytes(epilogue, DisjointSlice::new(y))
                }
                QuantizedOutput::Sums(epilogue, y) => {
                    SharedQuantizedOutput::Sums(epilogue, DisjointSlice::new(y))
                }
            },
        };
        let (pixels, outputs) = (self.geometry.output_pixels(), self.geometry.outputs_per_group());
        let (pixel_tasks, channel_tasks) = (pixels.div_ceil(self.task.0), outputs.div_ceil(self.task.1));
        let count = self.geometry.groups * channel_tasks * pixel_tasks;
        let (tasks, lanes) = (TaskQueue::new(count, self.threads), DisjointSlice::new(lanes));
        team.parallel_for_each(self.threads.min(count), &|lane| {
            let _registers = self.stripes.as_ref().map(RowBlocks::configure_registers);
            // SAFETY: each lane has its own part.
            let memory = unsafe { lanes.range_mut(lane * lane_words..(lane + 1) * lane_words) };
            let (pointers, rows) = memory.split_at_mut(pointer_words);
            let mut rows = StripeBuffer::new(rows.as_mut_ptr().cast());
            for task in tasks.tasks_for_worker(lane) {
                let (group, place) =
                    (task / (channel_tasks * pixel_tasks), task % (channel_tasks * pixel_tasks));
                // Consecutive tasks share their weights, or with row blocks the stripe that a thread has gathered.
                let (first, channel) = match self.stripes {
                    None => (place % pixel_tasks, place / pixel_tasks),
                    Some(_) => (place / channel_tasks, place % channel_tasks),
                };
                let (first, channel) = (first * self.task.0, channel * self.task.1);
                job.run(
                    group,
                    first..pixels.min(first + self.task.0),
                    channel..outputs.min(channel + self.task.1),
                    (pointers.as_mut_ptr().cast(), &mut rows),
                );
            }
        });
    }
}

/// A word of scratch memory has room for a pointer.
const WORD_BYTES: usize = size_of::<u64>();

fn as_bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: a word consists of bytes without padding, and any byte pattern is valid.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

struct QuantizedDenseJob<'a> {
    dense: &'a QuantizedDenseConv,
    isa: Isa,
    kernels: &'static QuantizedMicroKernels,
    is_signed: bool,
    images: *const u8,
    padding: *const u8,
    weights: &'a QuantizedPanels,
    starts: &'a [i32],
    written: SharedQuantizedOutput<'a>,
}

/// The operands of a group, so that a tile finds them without divisions: some take only a few hundred instructions.
struct GroupOperands<'a> {
    index: usize,
    first_output: usize,
    /// The bytes of a pixel before the inputs of the group.
    skip: usize,
    weights: &'a [i8],
    /// The bytes of the weights of a channel.
    channel_size: usize,
    starts: &'a [i32],
}

impl GroupOperands<'_> {
    /// The weights of the panel that begins with a channel.
    fn weights_of(&self, channel: usize) -> *const i8 {
        self.weights[channel * self.channel_size..].as_ptr()
    }
}

/// Parts of at most `size`.
fn tiles(all: &Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    let Range { mut start, end } = *all;
    std::iter::from_fn(move || {
        let part = start..end.min(start + size);
        start = part.end;
        (!part.is_empty()).then_some(part)
    })
}

// SAFETY: no thread writes the memory behind the pointers while the convolution runs.
unsafe impl Sync for QuantizedDenseJob<'_> {}

impl QuantizedDenseJob<'_> {
    fn run(
        &self,
        group: usize,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, rows): (*mut *const u8, &mut StripeBuffer),
    ) {
        let group = self.group_operands(group);
        if let Some(stripes) = &self.dense.stripes {
            stripes.run_blocks(
                group.index,
                (pixels, channels),
                rows,
                (self.strided_rows(&group), |pixels: Range<usize>, rows: *mut u8| {
                    let count = pixels.len();
                    self.fill_indirection(pixels, pointers);
                    self.gather_rows(&group, count, pointers, rows);
                }),
                |channel| group.weights_of(channel).cast(),
                |pixels, panel, block| {
                    let outcome = self.tile_outcome(&group, pixels.clone(), panel.clone());
                    let starts = group.starts[panel.start..].as_ptr();
                    // SAFETY: rows and weights of the block exist, only this thread accesses the results, and the registers are
                    // its own; a residual has the size of the output.
                    unsafe { block_kernel(panel.len())(block, starts, &outcome) };
                    self.finish_sums(&group, pixels, panel, &outcome);
                },
            );
            return;
        }
        if let Some(widened) = &self.dense.widened {
            self.run_widened(widened, &group, (pixels, channels), (pointers, rows.start_pointer()));
            return;
        }
        let (taps, depth) = self.dense.rows.tap_shape();
        let steps = depth.div_ceil(QUAD);
        for tile in tiles(&pixels, self.dense.tile) {
            if taps > 0 {
                self.fill_indirection(tile.clone(), pointers);
            }
            for panel in tiles(&channels, self.weights.panel_width()) {
                let outcome = self.tile_outcome(&group, tile.clone(), panel.clone());
                // SAFETY: there are pointers and weights for all taps.
                unsafe {
                    self.run_tile(
                        &group,
                        (tile.clone(), panel),
                        (pointers, group.skip),
                        [taps, steps],
                        &outcome,
                    );
                };
            }
        }
    }

    /// Widens the rows of some tiles, then multiplies them with one panel of weights after the other.
    fn run_widened(
        &self,
        widened: &WidenedRows,
        group: &GroupOperands<'_>,
        (pixels, channels): (Range<usize>, Range<usize>),
        (pointers, rows): (*mut *const u8, *mut u8),
    ) {
        let sign_flip = if self.is_signed { SIGN_BIT } else { 0 };
        for stripe in tiles(&pixels, widened.row_count()) {
            for tile in tiles(&stripe, self.dense.tile) {
                self.fill_indirection(tile.clone(), pointers);
                let target = widened.row_pointer(rows, tile.start - stripe.start);
                // SAFETY: for each tap and pixel there is a pointer to inputs, and there is room for all rows of the stripe.
                unsafe {
                    widened.widen_rows(self.isa, (pointers, group.skip, sign_flip), tile.len(), target);
                };
            }
            for row in 0..stripe.len() {
                // SAFETY: there is room for a pointer for each row that is widened at a time.
                unsafe { *pointers.add(row) = widened.row_pointer(rows, row) };
            }
            for panel in tiles(&channels, self.weights.panel_width()) {
                let mut outcome = self.tile_outcome(group, stripe.clone(), panel.clone());
                for tile in tiles(&stripe, self.dense.tile) {
                    // SAFETY: each pointer points to the row of its pixel, which has this many steps.
                    unsafe {
                        let inputs = pointers.add(tile.start - stripe.start);
                        let (count, place) = (tile.len(), (tile, panel.clone()));
                        self.run_tile(group, place, (inputs, 0), [1, widened.steps()], &outcome);
                        outcome.skip_pixels(count);
                    };
                }
            }
        }
    }

    /// Computes a tile.
    ///
    /// # Safety
    ///
    /// For each tap and pixel there is a pointer to that many steps of inputs, after bytes to skip, and the weights have as many. The
    /// outcome begins with the tile's pixels and has its channels.
    unsafe fn run_tile(
        &self,
        group: &GroupOperands<'_>,
        (tile, panel): (Range<usize>, Range<usize>),
        (inputs, skip): (*const *const u8, usize),
        [taps, steps]: [usize; 2],
        outcome: &TileOutcome<'_>,
    ) {
        // SAFETY: the caller guarantees the operands, and only this thread accesses the results; a residual has the size of the
        // output.
        unsafe {
            self.kernels.micro_kernel(self.is_signed, tile.len(), panel.len())(&QuantizedTile {
                inputs,
                taps,
                steps,
                skip,
                weights: group.weights_of(panel.start),
                start: group.starts[panel.start..].as_ptr(),
                outcome,
            });
        }
        self.finish_sums(group, tile, panel, outcome);
    }

    fn group_operands(&self, index: usize) -> GroupOperands<'_> {
        let outputs = self.dense.geometry.outputs_per_group();
        // Initial sums are in whole vectors.
        let padded = outputs.next_multiple_of(self.kernels.panel_format.lanes);
        let (weights, channel_size) = self.weights.group_panels(index);
        GroupOperands {
            index,
            first_output: index * outputs,
            skip: self.dense.rows.group_offset(index),
            weights,
            channel_size,
            starts: &self.starts[index * padded..][..padded],
        }
    }

    /// The pixels of a group as the rows of blocks, if they can be read in place.
    fn strided_rows(&self, group: &GroupOperands<'_>) -> Option<StridedRows> {
        let geometry = &self.dense.geometry;
        let fits = !self.is_signed
            && geometry.is_pointwise()
            && geometry.channels_per_group().is_multiple_of(TILE_ROW_BYTES);
        let first = self.images.wrapping_add(group.skip);
        fits.then_some(StridedRows { first, stride: geometry.channels })
    }

    fn tile_outcome(
        &self,
        group: &GroupOperands<'_>,
        pixels: Range<usize>,
        channels: Range<usize>,
    ) -> TileOutcome<'_> {
        let (outputs, output) = (self.dense.geometry.outputs, group.first_output + channels.start);
        let (width, place) = (channels.len(), pixels.start * outputs + output);
        // Checking the last result suffices: all others are at lower indices.
        let last = (pixels.len() - 1) * outputs + width - 1;
        match &self.written {
            SharedQuantizedOutput::Bytes(epilogue, y) => TileOutcome::Bytes(QuantizedTileEpilogue {
                requantize: epilogue.requantize,
                factors: &epilogue.factors[output..output + width],
                residual: epilogue.residual.map_or(ptr::null(), |residual| residual[place..].as_ptr()),
                output: y.element_pointer(place + last).wrapping_sub(last),
                pixel: outputs,
            }),
            SharedQuantizedOutput::Sums(_, y) => TileOutcome::Sums(SumsTarget {
                output: y.element_pointer(place + last).wrapping_sub(last),
                pixel: outputs,
                channels: width,
            }),
        }
    }

    /// Runs the epilogue on complete sums, in place.
    fn finish_sums(
        &self,
        group: &GroupOperands<'_>,
        pixels: Range<usize>,
        channels: Range<usize>,
        outcome: &TileOutcome<'_>,
    ) {
        if let (SharedQuantizedOutput::Sums(Some(epilogue), _), TileOutcome::Sums(place)) =
            (&self.written, outcome)
        {
            let outputs = group.first_output + channels.start..group.first_output + channels.end;
            // SAFETY: only this thread accesses these sums.
            epilogue(unsafe { OutputBlock::new(0, pixels, outputs, place.output, place.pixel) });
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn fill_indirection(&self, pixels: Range<usize>, pointers: *mut *const u8) {
        let places = (self.images, self.padding);
        // SAFETY: each thread has room for the pointers of a tile.
        unsafe {
            self.dense.rows.indirection_windows().fill_indirection(
                places,
                pixels.start,
                pixels.len(),
                pointers,
            );
        };
    }

    /// Copies the inputs under the windows of a tile into rows of unsigned bytes.
    fn gather_rows(
        &self,
        group: &GroupOperands<'_>,
        count: usize,
        pointers: *const *const u8,
        rows: *mut u8,
    ) {
        #[cfg(x86_vectors)]
        if let Some(stripes) = &self.dense.stripes {
            let (parts, depth) = self.dense.rows.tap_shape();
            let gathered = amx::GatheredRows {
                sources: pointers,
                rows: count,
                parts,
                length: depth.next_multiple_of(QUAD),
                skip: group.skip,
                sign_flip: if self.is_signed { SIGN_BIT } else { 0 },
            };
            // SAFETY: row blocks exist only with AVX-512. For each tap and pixel there is a pointer to this many inputs, rounded
            // up to whole groups of four, and there is room for as many rows.
            unsafe { gathered.copy_rows(rows, stripes.row_stride()) };
        }
        #[cfg(not(x86_vectors))]
        unreachable!(
            "no machine of this kind has stripes of {count} pixels of {}, {pointers:?}, {rows:?}",
            group.index
        );
    }
}
