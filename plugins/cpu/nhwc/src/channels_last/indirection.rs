//! Pointers to the inputs under the windows of a convolution.

#![expect(unsafe_code, reason = "pointers are written to where there is room for them")]

use super::geometry::NhwcGeometry;

/// Sliding windows over images of any element type.
pub(crate) struct IndirectionWindows<'a> {
    pub(crate) geometry: &'a NhwcGeometry,
    /// True if a row of the window is one tap; the images are then padded along their rows.
    pub(crate) by_rows: bool,
    /// The pixels of a row as it is read, and the elements of a pixel.
    pub(crate) width: usize,
    pub(crate) pixel: usize,
}

impl IndirectionWindows<'_> {
    /// For each tap, writes the pointers of some output pixels: into the images, or to zeros for padding.
    ///
    /// # Safety
    ///
    /// There is room for one pointer per pixel and tap. The pointers are computed, not dereferenced.
    pub(crate) unsafe fn fill_indirection<T>(
        &self,
        (base, padding): (*const T, *const T),
        first: usize,
        count: usize,
        pointers: *mut *const T,
    ) {
        let Self { width, pixel, .. } = *self;
        let NhwcGeometry { vertical, horizontal, .. } = *self.geometry;
        // SAFETY: the caller guarantees the room.
        let put = |at: usize, input: *const T| unsafe { *pointers.add(at) = input };
        if self.geometry.is_pointwise() {
            (0..count).for_each(|index| put(index, base.wrapping_add((first + index) * pixel)));
            return;
        }
        let (columns, pad) = if self.by_rows { (1, 0) } else { (horizontal.kernel, horizontal.pad.0) };
        let (line, mut column) = (first / horizontal.output, first % horizontal.output);
        let (mut image, mut row) = (line / vertical.output, line % vertical.output);
        let mut done = 0;
        while done < count {
            // Adjacent windows. Positions before the image wrap to huge numbers, and their pointers are never used.
            let beside = (count - done).min(horizontal.output - column);
            let top = (row * vertical.stride).wrapping_sub(vertical.pad.0);
            let left = (column * horizontal.stride).wrapping_sub(pad);
            let corner = (image * vertical.input).wrapping_add(top).wrapping_mul(width).wrapping_add(left);
            for row_step in 0..vertical.kernel {
                let y = row_step * vertical.dilation;
                let is_row_inside = top.wrapping_add(y) < vertical.input;
                for column_step in 0..columns {
                    let x = column_step * horizontal.dilation;
                    let tap = (row_step * columns + column_step) * count + done;
                    let place = corner.wrapping_add(y.wrapping_mul(width)).wrapping_add(x);
                    let input = base.wrapping_add(place.wrapping_mul(pixel));
                    let input_at = |index: usize| input.wrapping_add(index * horizontal.stride * pixel);
                    let is_inside = |index: usize| left.wrapping_add(x + index * horizontal.stride) < width;
                    if is_row_inside && is_inside(0) && is_inside(beside - 1) {
                        (0..beside).for_each(|index| put(tap + index, input_at(index)));
                    } else {
                        for index in 0..beside {
                            let is_inside = is_row_inside & is_inside(index);
                            put(tap + index, if is_inside { input_at(index) } else { padding });
                        }
                    }
                }
            }
            (done, column, row) = (done + beside, 0, row + 1);
            if row == vertical.output {
                (image, row) = (image + 1, 0);
            }
        }
    }
}
