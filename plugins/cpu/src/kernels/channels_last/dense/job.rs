//! One convolution while it is computed.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use super::super::finish::Finish;
use super::super::geometry::Geometry;
use super::super::rounded::{self, pairs_of};
use super::super::tile::{Ending, Tile, of_blocks};
use super::super::weights::Panels;
use super::super::windows::Windows;
use super::{Dense, Factors, words};
#[cfg(x86_vectors)]
use crate::amx;
use crate::gemm::Parts;
use crate::isa::Isa;
use crate::strips::{LINE, Lying, Memory, Strips};

pub(super) struct Job<'a> {
    pub(super) dense: &'a Dense,
    pub(super) isa: Isa,
    pub(super) images: &'a [f32],
    /// The images in bf16, where they are rounded as a whole.
    pub(super) rounded: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a Panels,
    pub(super) finish: &'a Finish<'a>,
    pub(super) y: Parts<'a, f32>,
}

impl Job<'_> {
    /// Computes some pixels and channels of some groups.
    pub(super) fn run(
        &self,
        groups: Range<usize>,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, memory): (*mut *const f32, &mut Memory),
    ) {
        if let Some(strips) = &self.dense.strips {
            for group in groups {
                self.run_in_strips(strips, group, (pixels.clone(), channels.clone()), (pointers, memory));
            }
            return;
        }
        let (taps, _) = self.dense.taps();
        for first in pixels.clone().step_by(self.dense.tile) {
            let tile = first..pixels.end.min(first + self.dense.tile);
            if taps > 0 {
                self.point(tile.clone(), pointers);
            }
            for group in groups.clone() {
                self.multiply(group, tile.clone(), channels.clone(), (pointers, memory.start().cast()));
            }
        }
    }

    /// Computes some pixels and channels of a group block by block.
    fn run_in_strips(
        &self,
        strips: &Strips,
        group: usize,
        (pixels, channels): (Range<usize>, Range<usize>),
        (pointers, memory): (*mut *const f32, &mut Memory),
    ) {
        let last = channels.end;
        strips.run(
            group,
            (pixels, channels.clone()),
            memory,
            (self.lying(group), |pixels: Range<usize>, rows: *mut u8| {
                let count = pixels.len();
                if self.dense.rounds_images() {
                    self.point_rounded(pixels, pointers.cast());
                    self.put_together(group, count, pointers, rows.cast());
                    return;
                }
                self.point(pixels, pointers);
                if self.dense.paired.input {
                    self.put_together(group, count, pointers, rows.cast());
                } else {
                    self.round(group, count, pointers, rows.cast());
                    self.fill_up(count, rows.cast());
                }
            }),
            |channel| self.weights.panel(group, channel).cast(),
            |pixels, panel, block| {
                let ending = self.ending(group, pixels.start, panel.clone());
                // SAFETY: rows and weights of the block are there, the outputs of a task are its alone, and so are the registers
                // of its thread.
                unsafe { of_blocks(panel.len())(block, &ending) };
                if panel.end == last {
                    self.apply(group, pixels, channels.clone());
                }
            },
        );
    }

    /// The pixels of a group, where they are the rows of blocks as they lie.
    fn lying(&self, group: usize) -> Option<Lying> {
        let Dense { geometry, paired, .. } = self.dense;
        let bytes = |numbers: usize| numbers * size_of::<u16>();
        let fits = paired.input
            && geometry.is_pointwise()
            && bytes(geometry.channels_of_group()).is_multiple_of(LINE);
        let first = self.images.as_ptr().cast::<u8>().wrapping_add(bytes(self.skip(group)));
        fits.then(|| Lying { first, stride: bytes(geometry.channels) })
    }

    /// Computes a tile of pixels and some channels of a group.
    fn multiply(
        &self,
        group: usize,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, rows): (*mut *const f32, *mut f32),
    ) {
        let (taps, depth) = self.dense.taps();
        let count = pixels.len();
        let Dense { factors, paired, .. } = *self.dense;
        // What the micro-kernels see: rows that were rounded are one tap.
        let (lines, length, offset) = match factors {
            Factors::Rounded if !paired.input => (taps.min(1), pairs_of(taps * depth), 0),
            _ => (taps, words(depth, paired.input), words(self.skip(group), paired.input)),
        };
        if factors == Factors::Rounded && !paired.input {
            self.round(group, count, pointers, rows);
            let stride = self.dense.rounded_row();
            // SAFETY: there is room for a pointer to each pixel.
            (0..count * taps.min(1))
                .for_each(|index| unsafe { *pointers.add(index) = rows.wrapping_add(index * stride) });
        } else if self.dense.is_paged {
            self.gather(count, pointers, rows);
        }
        for channel in channels.clone().step_by(self.weights.width()) {
            let panel = channel..channels.end.min(channel + self.weights.width());
            // SAFETY: the pointers and weights are there for all taps, and the outputs of a task are its alone.
            unsafe {
                self.dense.kernels.get(count, panel.len())(&Tile {
                    inputs: pointers,
                    taps: lines,
                    depth: length,
                    skip: offset,
                    weights: self.weights.panel(group, channel),
                    ending: self.ending(group, pixels.start, panel),
                });
            }
        }
        self.apply(group, pixels, channels);
    }

    /// Channels before those of a group.
    fn skip(&self, group: usize) -> usize {
        group * self.dense.geometry.channels_of_group()
    }

    /// What follows the sums of some channels of a group, from a pixel on.
    fn ending(&self, group: usize, pixel: usize, channels: Range<usize>) -> Ending {
        let Dense { paired, .. } = *self.dense;
        let outputs = self.dense.geometry.outputs;
        let channel = group * self.dense.geometry.outputs_of_group() + channels.start;
        let place = pixel * outputs + channel;
        let output = self.y.pointer(words(place, paired.output));
        Ending {
            bias: self.finish.bias_from(channel),
            output,
            pixel: outputs,
            residual: self.finish.residual_from(words(place, paired.residual), output),
            channels: channels.len(),
            bounds: self.finish.bounds(),
            paired,
        }
    }

    /// Does what is left to some outputs of a group, which are complete.
    fn apply(&self, group: usize, pixels: Range<usize>, channels: Range<usize>) {
        if !self.finish.is_left() {
            return;
        }
        let Geometry { outputs, .. } = self.dense.geometry;
        for pixel in pixels {
            let start = pixel * outputs + group * self.dense.geometry.outputs_of_group();
            // SAFETY: these are outputs of the task.
            let results = unsafe { self.y.part(start + channels.start..start + channels.end) };
            self.finish.apply(self.isa, results);
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn point(&self, pixels: Range<usize>, pointers: *mut *const f32) {
        let Dense { geometry, by_rows, width, .. } = self.dense;
        let pixel = words(geometry.channels, self.dense.paired.input);
        let windows = Windows { geometry, by_rows: *by_rows, width: *width, pixel };
        let places = (self.images.as_ptr(), self.zeros.as_ptr());
        // SAFETY: there is room for the pointers of a tile for each tap.
        unsafe { windows.point(places, pixels.start, pixels.len(), pointers) };
    }

    /// The same of images that are rounded.
    fn point_rounded(&self, pixels: Range<usize>, pointers: *mut *const u16) {
        let Dense { geometry, by_rows, width, .. } = self.dense;
        let windows = Windows { geometry, by_rows: *by_rows, width: *width, pixel: geometry.channels };
        let places = (self.rounded.as_ptr().cast(), self.zeros.as_ptr().cast());
        // SAFETY: there is room for the pointers of a tile for each tap.
        unsafe { windows.point(places, pixels.start, pixels.len(), pointers) };
    }

    /// Rounds what is under the windows of a tile, into rows.
    fn round(&self, group: usize, count: usize, pointers: *const *const f32, rows: *mut f32) {
        let (parts, length) = self.dense.taps();
        let skip = self.skip(group);
        let gathered = rounded::Gathered { sources: pointers, rows: count, parts, length, skip };
        // SAFETY: for each tap and pixel there is a pointer to as many inputs, and there is room for as many rows.
        unsafe { gathered.round(self.isa, rows, self.dense.rounded_row()) };
    }

    /// Fills the last line of each row up with 0.
    fn fill_up(&self, count: usize, rows: *mut f32) {
        let (parts, length) = self.dense.taps();
        let (pairs, stride) = (pairs_of(parts * length), self.dense.rounded_row());
        let rest = pairs.next_multiple_of(LINE / size_of::<f32>()) - pairs;
        for index in 0..count {
            // SAFETY: rows are whole lines.
            unsafe { rows.add(index * stride + pairs).write_bytes(0, rest) };
        }
    }

    /// Copies the numbers in bf16 that are under the windows of a tile to rows of whole lines.
    fn put_together(&self, group: usize, count: usize, pointers: *const *const f32, rows: *mut f32) {
        #[cfg(x86_vectors)]
        {
            let (parts, depth) = self.dense.taps();
            let bytes = |numbers: usize| numbers * size_of::<u16>();
            let gathered = amx::Gathered {
                sources: pointers.cast(),
                rows: count,
                parts,
                length: bytes(depth),
                skip: bytes(self.skip(group)),
                turned: 0,
            };
            // SAFETY: where there are strips there is AVX-512. For each tap and pixel there is a pointer to as many inputs, and
            // there is room for as many rows.
            unsafe { gathered.copy(rows.cast(), self.dense.rounded_row() * size_of::<f32>()) };
        }
        #[cfg(not(x86_vectors))]
        unreachable!(
            "no machine of this kind has strips of {count} pixels of {group}, {pointers:?}, {rows:?}"
        );
    }

    /// Copies the rows of a tile to where they are not pages apart, and points there.
    fn gather(&self, count: usize, pointers: *mut *const f32, rows: *mut f32) {
        let depth = words(self.dense.geometry.channels, self.dense.paired.input);
        for index in 0..count {
            let row = rows.wrapping_add(index * (depth + 16));
            // SAFETY: each pointer leads to as many inputs, and there is room for as many rows.
            unsafe {
                ptr::copy_nonoverlapping(*pointers.add(index), row, depth);
                *pointers.add(index) = row;
            }
        }
    }
}
