//! The tasks of one dense convolution.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use super::super::bf16_rounding::{self, pair_count};
use super::super::epilogue::ConvEpilogue;
use super::super::geometry::NhwcGeometry;
use super::super::indirection::IndirectionWindows;
use super::super::tile::{ConvTile, TileEpilogue, block_kernel};
use super::super::weight_panels::WeightPanels;
use super::{ConvPrecision, DenseConv};
use crate::channels_last::bf16_images::word_count;
#[cfg(x86_vectors)]
use oarlock_cpu_base::amx;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::row_blocks::{RowBlocks, StridedRows, StripeBuffer};
use oarlock_cpu_base::tile_block::TILE_ROW_BYTES;
use oarlock_cpu_gemm::DisjointSlice;

pub(super) struct DenseConvJob<'a> {
    pub(super) dense: &'a DenseConv,
    pub(super) isa: Isa,
    pub(super) images: &'a [f32],
    /// The images in bf16, if whole images are rounded beforehand.
    pub(super) rounded: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a WeightPanels,
    pub(super) epilogue: &'a ConvEpilogue<'a>,
    pub(super) y: DisjointSlice<'a, f32>,
}

impl DenseConvJob<'_> {
    pub(super) fn run(
        &self,
        groups: Range<usize>,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, memory): (*mut *const f32, &mut StripeBuffer),
    ) {
        if let Some(stripes) = &self.dense.stripes {
            for group in groups {
                self.run_in_row_blocks(
                    stripes,
                    group,
                    (pixels.clone(), channels.clone()),
                    (pointers, memory),
                );
            }
            return;
        }
        let (taps, _) = self.dense.tap_shape();
        for first in pixels.clone().step_by(self.dense.tile) {
            let tile = first..pixels.end.min(first + self.dense.tile);
            if taps > 0 {
                self.fill_indirection(tile.clone(), pointers);
            }
            for group in groups.clone() {
                self.multiply_tile(
                    group,
                    tile.clone(),
                    channels.clone(),
                    (pointers, memory.start_pointer().cast()),
                );
            }
        }
    }

    /// The AMX path: rounds or gathers a stripe of rows once, then multiplies it block by block.
    fn run_in_row_blocks(
        &self,
        stripes: &RowBlocks,
        group: usize,
        (pixels, channels): (Range<usize>, Range<usize>),
        (pointers, memory): (*mut *const f32, &mut StripeBuffer),
    ) {
        let last = channels.end;
        stripes.run_blocks(
            group,
            (pixels, channels.clone()),
            memory,
            (self.strided_rows(group), |pixels: Range<usize>, rows: *mut u8| {
                let count = pixels.len();
                if self.dense.rounds_images() {
                    self.fill_rounded_indirection(pixels, pointers.cast());
                    self.gather_pair_rows(group, count, pointers, rows.cast());
                    return;
                }
                self.fill_indirection(pixels, pointers);
                if self.dense.paired.input {
                    self.gather_pair_rows(group, count, pointers, rows.cast());
                } else {
                    self.round_rows(group, count, pointers, rows.cast());
                    self.pad_rows(count, rows.cast());
                }
            }),
            |channel| self.weights.panel_pointer(group, channel).cast(),
            |pixels, panel, block| {
                let epilogue = self.tile_epilogue(group, pixels.start, panel.clone());
                // SAFETY: rows and weights of the block exist, only this task accesses its outputs, and the registers belong to
                // its thread.
                unsafe { block_kernel(panel.len())(block, &epilogue) };
                if panel.end == last {
                    self.apply_epilogue(group, pixels, channels.clone());
                }
            },
        );
    }

    /// The pixels of a group as the rows of blocks, if they can be read in place.
    fn strided_rows(&self, group: usize) -> Option<StridedRows> {
        let DenseConv { geometry, paired, .. } = self.dense;
        let bytes = |numbers: usize| numbers * size_of::<u16>();
        let fits = paired.input
            && geometry.is_pointwise()
            && bytes(geometry.channels_per_group()).is_multiple_of(TILE_ROW_BYTES);
        let first = self.images.as_ptr().cast::<u8>().wrapping_add(bytes(self.channel_offset(group)));
        fits.then(|| StridedRows { first, stride: bytes(geometry.channels) })
    }

    fn multiply_tile(
        &self,
        group: usize,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, rows): (*mut *const f32, *mut f32),
    ) {
        let (taps, depth) = self.dense.tap_shape();
        let count = pixels.len();
        let DenseConv { precision, paired, .. } = *self.dense;
        // To the micro-kernels, a row of rounded inputs is a single tap.
        let (lines, length, offset) = match precision {
            ConvPrecision::Bf16 if !paired.input => (taps.min(1), pair_count(taps * depth), 0),
            _ => {
                (taps, word_count(depth, paired.input), word_count(self.channel_offset(group), paired.input))
            }
        };
        if precision == ConvPrecision::Bf16 && !paired.input {
            self.round_rows(group, count, pointers, rows);
            let stride = self.dense.rounded_row_stride();
            // SAFETY: there is room for a pointer to each pixel.
            (0..count * taps.min(1))
                .for_each(|index| unsafe { *pointers.add(index) = rows.wrapping_add(index * stride) });
        } else if self.dense.is_paged {
            self.gather_rows(count, pointers, rows);
        }
        for channel in channels.clone().step_by(self.weights.panel_width()) {
            let panel = channel..channels.end.min(channel + self.weights.panel_width());
            // SAFETY: pointers and weights exist for all taps, and only this task accesses its outputs.
            unsafe {
                self.dense.kernels.micro_kernel(count, panel.len())(&ConvTile {
                    inputs: pointers,
                    taps: lines,
                    depth: length,
                    skip: offset,
                    weights: self.weights.panel_pointer(group, channel),
                    epilogue: self.tile_epilogue(group, pixels.start, panel),
                });
            }
        }
        self.apply_epilogue(group, pixels, channels);
    }

    /// The number of channels before those of a group.
    fn channel_offset(&self, group: usize) -> usize {
        group * self.dense.geometry.channels_per_group()
    }

    /// The epilogue of some channels of a group, from a pixel on.
    fn tile_epilogue(&self, group: usize, pixel: usize, channels: Range<usize>) -> TileEpilogue {
        let DenseConv { paired, .. } = *self.dense;
        let outputs = self.dense.geometry.outputs;
        let channel = group * self.dense.geometry.outputs_per_group() + channels.start;
        let place = pixel * outputs + channel;
        let output = self.y.element_pointer(word_count(place, paired.output));
        TileEpilogue {
            bias: self.epilogue.bias_pointer(channel),
            output,
            pixel: outputs,
            residual: self.epilogue.residual_pointer(word_count(place, paired.residual), output),
            channels: channels.len(),
            bounds: self.epilogue.clamp_bounds(),
            paired,
        }
    }

    /// Applies the rest of the epilogue, which the micro-kernels cannot, to complete outputs of a group.
    fn apply_epilogue(&self, group: usize, pixels: Range<usize>, channels: Range<usize>) {
        if !self.epilogue.has_remaining() {
            return;
        }
        let NhwcGeometry { outputs, .. } = self.dense.geometry;
        for pixel in pixels {
            let start = pixel * outputs + group * self.dense.geometry.outputs_per_group();
            // SAFETY: these are outputs of the task.
            let results = unsafe { self.y.range_mut(start + channels.start..start + channels.end) };
            self.epilogue.apply_remaining(self.isa, results);
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn fill_indirection(&self, pixels: Range<usize>, pointers: *mut *const f32) {
        let DenseConv { geometry, by_rows, width, .. } = self.dense;
        let pixel = word_count(geometry.channels, self.dense.paired.input);
        let windows = IndirectionWindows { geometry, by_rows: *by_rows, width: *width, pixel };
        let places = (self.images.as_ptr(), self.zeros.as_ptr());
        // SAFETY: there is room for the pointers of a tile for each tap.
        unsafe { windows.fill_indirection(places, pixels.start, pixels.len(), pointers) };
    }

    /// Like [`Self::fill_indirection`], for rounded images.
    fn fill_rounded_indirection(&self, pixels: Range<usize>, pointers: *mut *const u16) {
        let DenseConv { geometry, by_rows, width, .. } = self.dense;
        let windows =
            IndirectionWindows { geometry, by_rows: *by_rows, width: *width, pixel: geometry.channels };
        let places = (self.rounded.as_ptr().cast(), self.zeros.as_ptr().cast());
        // SAFETY: there is room for the pointers of a tile for each tap.
        unsafe { windows.fill_indirection(places, pixels.start, pixels.len(), pointers) };
    }

    /// Rounds the inputs under the windows of a tile into rows.
    fn round_rows(&self, group: usize, count: usize, pointers: *const *const f32, rows: *mut f32) {
        let (parts, length) = self.dense.tap_shape();
        let skip = self.channel_offset(group);
        let gathered =
            bf16_rounding::GatheredFloatRows { sources: pointers, rows: count, parts, length, skip };
        // SAFETY: for each tap and pixel there is a pointer to this many inputs, and there is room for as many rows.
        unsafe { gathered.round_gathered(self.isa, rows, self.dense.rounded_row_stride()) };
    }

    /// Zeroes the rest of the last cache line of each row, because AMX reads whole lines.
    fn pad_rows(&self, count: usize, rows: *mut f32) {
        let (parts, length) = self.dense.tap_shape();
        let (pairs, stride) = (pair_count(parts * length), self.dense.rounded_row_stride());
        let rest = pairs.next_multiple_of(TILE_ROW_BYTES / size_of::<f32>()) - pairs;
        for index in 0..count {
            // SAFETY: rows are whole cache lines.
            unsafe { rows.add(index * stride + pairs).write_bytes(0, rest) };
        }
    }

    /// Copies the bf16 pairs under the windows of a tile into rows of whole cache lines.
    fn gather_pair_rows(&self, group: usize, count: usize, pointers: *const *const f32, rows: *mut f32) {
        #[cfg(x86_vectors)]
        {
            let (parts, depth) = self.dense.tap_shape();
            let bytes = |numbers: usize| numbers * size_of::<u16>();
            let gathered = amx::GatheredRows {
                sources: pointers.cast(),
                rows: count,
                parts,
                length: bytes(depth),
                skip: bytes(self.channel_offset(group)),
                sign_flip: 0,
            };
            // SAFETY: row blocks exist only with AVX-512. For each tap and pixel there is a pointer to this many inputs, and
            // there is room for as many rows.
            unsafe { gathered.copy_rows(rows.cast(), self.dense.rounded_row_stride() * size_of::<f32>()) };
        }
        #[cfg(not(x86_vectors))]
        unreachable!(
            "no machine of this kind has stripes of {count} pixels of {group}, {pointers:?}, {rows:?}"
        );
    }

    /// Copies the rows of a tile so that they no longer are a multiple of the page size apart, and redirects the pointers.
    fn gather_rows(&self, count: usize, pointers: *mut *const f32, rows: *mut f32) {
        let depth = word_count(self.dense.geometry.channels, self.dense.paired.input);
        for index in 0..count {
            let row = rows.wrapping_add(index * (depth + 16));
            // SAFETY: each pointer is to this many inputs, and there is room for as many rows.
            unsafe {
                ptr::copy_nonoverlapping(*pointers.add(index), row, depth);
                *pointers.add(index) = row;
            }
        }
    }
}
