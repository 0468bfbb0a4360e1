//! Where the inputs under each window lie: as rows of bytes, of which whole fours are read.
//!
//! Where there are few input channels, all of a row of the window is one tap: its elements lie side by side in an image that
//! is padded along its rows. Where the channels of a group are no whole fours, they are read from a copy in which they are.

#![expect(unsafe_code, reason = "lines of a copy are written by several threads")]

use super::simd::QUAD;
use crate::gemm::{DisjointSlice, ThreadTeam};
use crate::kernels::channels_last::geometry::NhwcGeometry;
use crate::kernels::channels_last::indirection::IndirectionWindows;

/// Input channels of a window whose rows are taps, at most.
const FEW_CHANNELS: usize = 15;

/// How the images of a convolution are read.
pub(super) struct WindowRows {
    geometry: NhwcGeometry,
    /// Whether a row of the window is one tap.
    by_rows: bool,
    /// How many pixels a line has where it is read, and how many bytes a pixel.
    width: usize,
    pixel: usize,
}

impl WindowRows {
    pub(super) fn new(geometry: &NhwcGeometry) -> Self {
        let along = geometry.along;
        let by_rows = geometry.groups == 1
            && geometry.channels <= FEW_CHANNELS
            && along.kernel > 1
            && along.dilation == 1
            && along.pad.0 + along.pad.1 <= along.input;
        let (width, pixel) = if by_rows {
            (along.input + along.pad.0 + along.pad.1, geometry.channels)
        } else {
            (along.input, geometry.groups * geometry.channels_per_group().next_multiple_of(QUAD))
        };
        Self { geometry: geometry.clone(), by_rows, width, pixel }
    }

    /// How many taps there are, and how many inputs each has.
    pub(super) fn tap_shape(&self) -> (usize, usize) {
        let NhwcGeometry { down, along, .. } = self.geometry;
        let depth = self.geometry.channels_per_group();
        if depth == 0 {
            return (0, 0);
        }
        if self.by_rows { (down.kernel, along.kernel * depth) } else { (self.geometry.tap_count(), depth) }
    }

    /// How many bytes before the inputs of a group lie.
    pub(super) fn group_offset(&self, group: usize) -> usize {
        group * (self.pixel / self.geometry.groups)
    }

    /// How many bytes are read where there is padding.
    pub(super) fn padding_size(&self) -> usize {
        self.pixel.max(self.tap_shape().1.next_multiple_of(QUAD))
    }

    /// How many bytes the copy of the images takes, if there has to be one.
    pub(super) fn copy_size(&self) -> usize {
        let NhwcGeometry { images, channels, down, along, .. } = self.geometry;
        let is_in_place = self.width == along.input && self.pixel == channels && !self.by_rows;
        // The last row of a window is read to the end of its last four bytes.
        if is_in_place { 0 } else { images * down.input * self.width * self.pixel + QUAD }
    }

    /// Copies the images so that they can be read, with so much padding at both ends of their lines as is read there.
    pub(super) fn copy_images(
        &self,
        team: &dyn ThreadTeam,
        threads: usize,
        x: &[u8],
        padding: u8,
        copy: &mut [u8],
    ) {
        let NhwcGeometry { images, channels, groups, down, along, .. } = self.geometry;
        let (lines, wide, narrow) = (images * down.input, self.width * self.pixel, along.input * channels);
        let share = lines.div_ceil(threads).max(1);
        let (depth, padded) = (self.geometry.channels_per_group(), self.pixel / groups);
        let copy = DisjointSlice::new(copy);
        team.parallel_for_each(lines.div_ceil(share), &|lane| {
            for line in lane * share..lines.min((lane + 1) * share) {
                // SAFETY: no two lines overlap.
                let target = unsafe { copy.range_mut(line * wide..(line + 1) * wide) };
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

    /// The windows over the images as they are read.
    pub(super) fn indirection_windows(&self) -> IndirectionWindows<'_> {
        let Self { geometry, by_rows, width, pixel } = self;
        IndirectionWindows { geometry, by_rows: *by_rows, width: *width, pixel: *pixel }
    }
}
