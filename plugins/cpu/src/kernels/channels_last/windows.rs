//! Where the inputs under the windows of a convolution lie in memory.

#![expect(unsafe_code, reason = "pointers are written to where there is room for them")]

use super::geometry::Geometry;
use super::tile::MOST_PIXELS;

/// How windows slide over images of any elements.
pub(in crate::kernels) struct Windows<'a> {
    pub(in crate::kernels) geometry: &'a Geometry,
    /// Whether a row of the window is one tap; the images are padded along their rows then.
    pub(in crate::kernels) by_rows: bool,
    /// How many pixels a row has where it is read, and how many elements a pixel.
    pub(in crate::kernels) width: usize,
    pub(in crate::kernels) pixel: usize,
}

impl Windows<'_> {
    /// Writes the pointers of some output pixels, for each tap: into the images, or to padding.
    ///
    /// # Safety
    ///
    /// There is room for so many pointers for each tap. They are made, not followed.
    pub(in crate::kernels) unsafe fn point<T>(
        &self,
        (base, padding): (*const T, *const T),
        first: usize,
        count: usize,
        pointers: *mut *const T,
    ) {
        let Self { width, pixel, .. } = *self;
        let Geometry { down, along, .. } = *self.geometry;
        // SAFETY: the caller vouches for the room.
        let put = |at: usize, input: *const T| unsafe { *pointers.add(at) = input };
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
