//! Computes the addresses of the inputs under each window, as rows of bytes that are read in whole groups of four.
//!
//! With few input channels, a whole row of the window is one tap: in a copy of the image that is padded along its rows, the
//! elements of such a row are contiguous. If the number of channels in a group is not a multiple of four, a copy pads it to one.

#![expect(unsafe_code, reason = "lines of a copy are written by several threads")]

use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;

use crate::channels_last::geometry::NhwcGeometry;
use crate::channels_last::indirection::IndirectionWindows;
use oarlock_cpu_base::simd::QUAD;

/// The maximum number of input channels for which a row of the window is one tap.
const FEW_CHANNELS: usize = 15;

pub(super) struct WindowRows {
    geometry: NhwcGeometry,
    /// True if a row of the window is one tap.
    by_rows: bool,
    /// The pixels of a line as it is read, and the bytes of a pixel.
    width: usize,
    pixel: usize,
}

impl WindowRows {
    pub(super) fn new(geometry: &NhwcGeometry) -> Self {
        let horizontal = geometry.horizontal;
        let by_rows = geometry.groups == 1
            && geometry.channels <= FEW_CHANNELS
            && horizontal.kernel > 1
            && horizontal.dilation == 1
            && horizontal.pad.0 + horizontal.pad.1 <= horizontal.input;
        let (width, pixel) = if by_rows {
            (horizontal.input + horizontal.pad.0 + horizontal.pad.1, geometry.channels)
        } else {
            (horizontal.input, geometry.groups * geometry.channels_per_group().next_multiple_of(QUAD))
        };
        Self { geometry: geometry.clone(), by_rows, width, pixel }
    }

    /// The number of taps, and the inputs of each.
    pub(super) fn tap_shape(&self) -> (usize, usize) {
        let NhwcGeometry { vertical, horizontal, .. } = self.geometry;
        let depth = self.geometry.channels_per_group();
        if depth == 0 {
            return (0, 0);
        }
        if self.by_rows {
            (vertical.kernel, horizontal.kernel * depth)
        } else {
            (self.geometry.tap_count(), depth)
        }
    }

    /// The number of bytes in a pixel before the inputs of a group.
    pub(super) fn group_offset(&self, group: usize) -> usize {
        group * (self.pixel / self.geometry.groups)
    }

    /// The number of bytes that are read as padding.
    pub(super) fn padding_size(&self) -> usize {
        self.pixel.max(self.tap_shape().1.next_multiple_of(QUAD))
    }

    /// The size of the copy of the images, or 0 if they are read in place.
    pub(super) fn copy_size(&self) -> usize {
        let NhwcGeometry { images, channels, vertical, horizontal, .. } = self.geometry;
        let is_in_place = self.width == horizontal.input && self.pixel == channels && !self.by_rows;
        // The last row of a window is read to the end of its last group of four bytes.
        if is_in_place { 0 } else { images * vertical.input * self.width * self.pixel + QUAD }
    }

    /// Copies the images, with padding at both ends of their lines.
    pub(super) fn copy_images(
        &self,
        team: &dyn ThreadTeam,
        threads: usize,
        x: &[u8],
        padding: u8,
        copy: &mut [u8],
    ) {
        let NhwcGeometry { images, channels, groups, vertical, horizontal, .. } = self.geometry;
        let (lines, wide, narrow) =
            (images * vertical.input, self.width * self.pixel, horizontal.input * channels);
        let share = lines.div_ceil(threads).max(1);
        let (depth, padded) = (self.geometry.channels_per_group(), self.pixel / groups);
        let copy = DisjointSlice::new(copy);
        team.parallel_for_each(lines.div_ceil(share), &|lane| {
            for line in lane * share..lines.min((lane + 1) * share) {
                // SAFETY: no two lines overlap.
                let target = unsafe { copy.range_mut(line * wide..(line + 1) * wide) };
                let source = &x[line * narrow..][..narrow];
                if self.by_rows {
                    let (before, rest) = target.split_at_mut(horizontal.pad.0 * channels);
                    let (inside, after) = rest.split_at_mut(narrow);
                    // Padding is the zero point: its products cancel against the correction of the sums.
                    before.fill(padding);
                    inside.copy_from_slice(source);
                    after.fill(padding);
                } else {
                    // The bytes after the channels of a group are padding, which is multiplied by weights of 0.
                    for (target, source) in target.chunks_exact_mut(padded).zip(source.chunks_exact(depth)) {
                        let (inside, after) = target.split_at_mut(depth);
                        inside.copy_from_slice(source);
                        after.fill(0);
                    }
                }
            }
        });
    }

    /// The windows over the images, or over their copy.
    pub(super) fn indirection_windows(&self) -> IndirectionWindows<'_> {
        let Self { geometry, by_rows, width, pixel } = self;
        IndirectionWindows { geometry, by_rows: *by_rows, width: *width, pixel: *pixel }
    }
}
