//! Where the inputs under each window lie: as rows of bytes, of which whole fours are read.
//!
//! Where there are few input channels, all of a row of the window is one tap: its elements lie side by side in an image that
//! is padded along its rows. Where the channels of a group are no whole fours, they are read from a copy in which they are.

#![expect(unsafe_code, reason = "inputs are reached through pointers")]

use super::tile::MOST_PIXELS;
use super::vector::QUAD;
use crate::gemm::{Parts, Team};
use crate::kernels::channels_last::geometry::Geometry;

/// Input channels of a window whose rows are taps, at most.
const FEW_CHANNELS: usize = 15;

/// How the images of a convolution are read.
pub(super) struct Rows {
    geometry: Geometry,
    /// Whether a row of the window is one tap.
    by_rows: bool,
    /// How many pixels a line has where it is read, and how many bytes a pixel.
    width: usize,
    pixel: usize,
}

impl Rows {
    pub(super) fn new(geometry: &Geometry) -> Self {
        let along = geometry.along;
        let by_rows = geometry.groups == 1
            && geometry.channels <= FEW_CHANNELS
            && along.kernel > 1
            && along.dilation == 1
            && along.pad.0 + along.pad.1 <= along.input;
        let (width, pixel) = if by_rows {
            (along.input + along.pad.0 + along.pad.1, geometry.channels)
        } else {
            (along.input, geometry.groups * geometry.channels_of_group().next_multiple_of(QUAD))
        };
        Self { geometry: geometry.clone(), by_rows, width, pixel }
    }

    /// How many taps there are, and how many inputs each has.
    pub(super) fn taps(&self) -> (usize, usize) {
        let Geometry { down, along, .. } = self.geometry;
        let depth = self.geometry.channels_of_group();
        if depth == 0 {
            return (0, 0);
        }
        if self.by_rows { (down.kernel, along.kernel * depth) } else { (self.geometry.taps(), depth) }
    }

    /// How many bytes before the inputs of a group lie.
    pub(super) fn skip(&self, group: usize) -> usize {
        group * (self.pixel / self.geometry.groups)
    }

    /// How many bytes are read where there is padding.
    pub(super) fn padding_size(&self) -> usize {
        self.pixel.max(self.taps().1.next_multiple_of(QUAD))
    }

    /// How many bytes the copy of the images takes, if there has to be one.
    pub(super) fn copy_size(&self) -> usize {
        let Geometry { images, channels, down, along, .. } = self.geometry;
        let is_in_place = self.width == along.input && self.pixel == channels && !self.by_rows;
        // The last row of a window is read to the end of its last four bytes.
        if is_in_place { 0 } else { images * down.input * self.width * self.pixel + QUAD }
    }

    /// Copies the images so that they can be read, with so much padding at both ends of their lines as is read there.
    pub(super) fn copy(&self, team: &dyn Team, threads: usize, x: &[u8], padding: u8, copy: &mut [u8]) {
        let Geometry { images, channels, groups, down, along, .. } = self.geometry;
        let (lines, wide, narrow) = (images * down.input, self.width * self.pixel, along.input * channels);
        let share = lines.div_ceil(threads).max(1);
        let (depth, padded) = (self.geometry.channels_of_group(), self.pixel / groups);
        let copy = Parts::new(copy);
        team.each(lines.div_ceil(share), &|lane| {
            for line in lane * share..lines.min((lane + 1) * share) {
                // SAFETY: no two lines overlap.
                let target = unsafe { copy.part(line * wide..(line + 1) * wide) };
                let source = &x[line * narrow..][..narrow];
                if self.by_rows {
                    let (before, rest) = target.split_at_mut(along.pad.0 * channels);
                    let (inside, after) = rest.split_at_mut(narrow);
                    before.fill(padding);
                    inside.copy_from_slice(source);
                    after.fill(padding);
                } else {
                    // What stands after the channels of a group is multiplied with 0.
                    for (target, source) in target.chunks_exact_mut(padded).zip(source.chunks_exact(depth)) {
                        let (inside, after) = target.split_at_mut(depth);
                        inside.copy_from_slice(source);
                        after.fill(0);
                    }
                }
            }
        });
    }

    /// Writes the pointers of some pixels, for each tap: into the images, or to padding.
    ///
    /// # Safety
    ///
    /// There is room for so many pointers for each tap.
    pub(super) unsafe fn point(
        &self,
        (base, padding): (*const u8, *const u8),
        first: usize,
        count: usize,
        pointers: *mut *const u8,
    ) {
        let Self { width, pixel, .. } = *self;
        let Geometry { down, along, .. } = self.geometry;
        // SAFETY: there is room for the pointers of a tile for each tap.
        let put = |at: usize, input: *const u8| unsafe { *pointers.add(at) = input };
        if self.geometry.is_pointwise() {
            (0..count).for_each(|index| put(index, base.wrapping_add((first + index) * pixel)));
            return;
        }
        let (columns, pad) = if self.by_rows { (1, 0) } else { (along.kernel, along.pad.0) };
        // The top left of each window. What lies before the image is a huge number, and its pointer is never used.
        let mut corners = [(0, 0, base); MOST_PIXELS];
        let (line, mut column) = (first / along.output, first % along.output);
        let (mut image, mut row) = (line / down.output, line % down.output);
        for corner in &mut corners[..count] {
            let top = (row * down.stride).wrapping_sub(down.pad.0);
            let left = (column * along.stride).wrapping_sub(pad);
            let place = (image * down.input).wrapping_add(top).wrapping_mul(width).wrapping_add(left);
            *corner = (top, left, base.wrapping_add(place.wrapping_mul(pixel)));
            column += 1;
            if column == along.output {
                (row, column) = (row + 1, 0);
            }
            if row == down.output {
                (image, row) = (image + 1, 0);
            }
        }
        for step_down in 0..down.kernel {
            for step_along in 0..columns {
                let (y, x) = (step_down * down.dilation, step_along * along.dilation);
                let offset = y.wrapping_mul(width).wrapping_add(x).wrapping_mul(pixel);
                let tap = (step_down * columns + step_along) * count;
                for (index, (top, left, corner)) in corners[..count].iter().enumerate() {
                    let is_inside = (top.wrapping_add(y) < down.input) & (left.wrapping_add(x) < width);
                    put(tap + index, if is_inside { corner.wrapping_add(offset) } else { padding });
                }
            }
        }
    }
}
