//! Small products of rows in memory with packed panels, for kernels in which a product is one step of several, such as attention.

#![expect(unsafe_code, reason = "rows and panels are handed to the micro-kernels as pointers")]

use oarlock_cpu_base::isa::Isa;
#[cfg(not(x86_vectors))]
use oarlock_cpu_base::rows::plane_transpose::PlaneTranspose;

use super::buffer::DisjointSlice;
use super::gemv::{FEW_ROWS, GemvJob};
use super::tile::GemmTile;
use super::{GemmElement, LaneView, OperandPointer, StoredElement, as_computed};

/// Rows of equal length, `stride` apart.
#[derive(Clone, Copy)]
pub struct GemmRows<S> {
    pub elements: S,
    pub count: usize,
    pub stride: usize,
}

impl<S> GemmRows<S> {
    /// The number of elements that the rows span, if each has `length` elements.
    fn required_length(&self, length: usize) -> usize {
        if self.count == 0 || length == 0 { 0 } else { (self.count - 1) * self.stride + length }
    }
}

/// The maximum number of rows for [`multiply_rows`], and the columns of a panel.
pub fn row_tile_size<T: GemmElement>(isa: Isa) -> (usize, usize) {
    let kernels = T::micro_kernels(isa);
    (kernels.max_rows(), kernels.max_columns())
}

/// Like [`LaneView::pack_lanes`], with SIMD transposes if the machine has them.
pub fn pack_panel<E: StoredElement<ComputeType = f32>>(
    isa: Isa,
    view: LaneView<'_, E>,
    (lanes, steps): (usize, usize),
    width: usize,
    panel: &mut [f32],
) {
    let fits = view.step == 1 && lanes == width;
    if let (true, Some(numbers)) = (fits, as_computed(view.elements))
        && transpose_panel(isa, (numbers, view.lane), (lanes, steps), (&mut *panel, width))
    {
        return;
    }
    view.pack_lanes(lanes, steps, width, panel);
}

#[cfg(x86_vectors)]
use super::panel_transpose::transpose_panel;

/// Transposes a panel in tiles where there are vectors for it. Otherwise nothing is faster than the generic loop.
#[cfg(not(x86_vectors))]
fn transpose_panel(
    isa: Isa,
    (input, stride): (&[f32], usize),
    (columns, rows): (usize, usize),
    (out, pitch): (&mut [f32], usize),
) -> bool {
    if isa == Isa::Scalar {
        return false;
    }
    PlaneTranspose { input, stride, out, pitch, rows, columns }.transpose_plane(isa);
    true
}

/// Multiplies rows with packed panels of `depth` steps, one for each group of columns. With `add`, sums are added to the output;
/// otherwise they replace it.
pub fn multiply_rows<T: GemmElement>(
    isa: Isa,
    left: GemmRows<&[T]>,
    (panels, panel_size): (&[T], usize),
    depth: usize,
    output: GemmRows<&mut [T]>,
    columns: usize,
    add: bool,
) {
    let kernels = T::micro_kernels(isa);
    let width = kernels.max_columns();
    let rows = left.count;
    assert!(
        (1..=kernels.max_rows()).contains(&rows)
            && output.count == rows
            && left.required_length(depth) <= left.elements.len()
            && output.required_length(columns) <= output.elements.len()
            && depth * width <= panel_size
            && columns.div_ceil(width) * panel_size <= panels.len(),
        "rows, panels and an output that fit together"
    );
    let target = output.elements.as_mut_ptr();
    for (column, panel) in (0..columns).step_by(width).zip(panels.chunks_exact(panel_size.max(1))) {
        let columns = width.min(columns - column);
        // SAFETY: the checks above guarantee that the rows, the panel and the output have everything that the tile accesses.
        unsafe {
            kernels.micro_kernel(rows, columns)(&GemmTile {
                depth,
                left: left.elements.as_ptr(),
                left_row: left.stride as isize,
                left_depth: 1,
                right: panel.as_ptr(),
                right_depth: width as isize,
                output: target.add(column),
                output_row: output.stride,
                columns,
                add,
                // No prefetch: with a step of 0, the address stays at the panel, which is read anyway.
                ahead: panel.as_ptr().cast(),
                ahead_step: 0,
            });
        }
    }
}

/// Multiplies at most [`FEW_ROWS`] rows with a matrix that is read in place. Its steps or its lanes must be contiguous; sums can be
/// added to the output only if the lanes are.
pub fn multiply_few_rows<T: GemmElement>(
    isa: Isa,
    left: GemmRows<&[T]>,
    matrix: LaneView<'_, T>,
    depth: usize,
    output: GemmRows<&mut [T]>,
    columns: usize,
    add: bool,
) {
    if left.count == 0 || columns == 0 || depth == 0 {
        assert!(add || depth > 0, "a sum of something");
        return;
    }
    let last = (columns - 1) * matrix.lane + (depth - 1) * matrix.step;
    assert!(
        left.count <= FEW_ROWS
            && output.count == left.count
            && left.required_length(depth) <= left.elements.len()
            && output.required_length(columns) <= output.elements.len()
            && columns <= output.stride
            && last < matrix.elements.len()
            && (matrix.lane == 1 || matrix.step == 1 && !add),
        "rows, a matrix and an output that fit together"
    );
    let job = GemvJob {
        vector: OperandPointer { pointer: left.elements.as_ptr(), lane: left.stride, step: 1 },
        matrix: OperandPointer { pointer: matrix.elements.as_ptr(), lane: matrix.lane, step: matrix.step },
        depth,
        lanes: 0..columns,
        add,
    };
    let parts = DisjointSlice::new(output.elements);
    // SAFETY: the checks above guarantee that the operands have everything that the job reads, and rows of the output do not
    // overlap.
    unsafe {
        job.run(isa, left.count, |row| parts.range_mut(row * output.stride..row * output.stride + columns));
    };
}
