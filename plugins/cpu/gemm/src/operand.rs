//! The operands of a product. Both have the same form: lanes (rows of the left operand, columns of the right one) and, along the
//! depth, the steps of each sum.

use std::ops::Range;

use super::{ConvertTo, GemmElement};

/// Fills panels from one operand.
pub trait PanelSource<T>: Sync {
    /// The number of distinct operands: one per product, or 1 if all products share one.
    fn item_count(&self) -> usize;

    /// Packs a range of steps and lanes into a panel: step after step, `width` lanes each. Lanes past the range are zero.
    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T],
    );

    /// The elements in memory, if they can be read in place without conversion. All lanes and steps are readable.
    fn aligned_elements(&self, _item: usize) -> Option<OperandPointer<T>> {
        None
    }

    /// Like [`Self::aligned_elements`], for readers that need no alignment.
    fn unaligned_elements(&self, item: usize) -> Option<OperandPointer<T>> {
        self.aligned_elements(item)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct OperandPointer<T> {
    /// The first element.
    pub pointer: *const T,
    /// The distance between lanes.
    pub lane: usize,
    /// The distance between steps.
    pub step: usize,
}

/// A strided matrix, or several of the same shape and strides.
pub struct StridedMatrix<'a, E> {
    elements: &'a [E],
    offsets: Vec<usize>,
    lane: usize,
    step: usize,
}

impl<'a, E> StridedMatrix<'a, E> {
    /// Matrices of `lanes` by `depth` (each a count and a stride) at these offsets into the elements. All products share a single
    /// offset. `None` if an element would be out of bounds.
    pub fn new(
        elements: &'a [E],
        mut offsets: Vec<usize>,
        lanes: (usize, usize),
        depth: (usize, usize),
    ) -> Option<Self> {
        // If all products read the same operand, it is packed once and they share its panels.
        if offsets.windows(2).all(|pair| pair[0] == pair[1]) {
            offsets.truncate(1);
        }
        let first = offsets.iter().max().copied()?;
        if lanes.0 > 0 && depth.0 > 0 {
            let last =
                (lanes.0 - 1).checked_mul(lanes.1)?.checked_add((depth.0 - 1).checked_mul(depth.1)?)?;
            if last.checked_add(first)? >= elements.len() {
                return None;
            }
        }
        Some(Self { elements, offsets, lane: lanes.1, step: depth.1 })
    }

    fn item_offset(&self, item: usize) -> usize {
        self.offsets[item % self.offsets.len()]
    }
}

impl<T: GemmElement, E: ConvertTo<T>> PanelSource<T> for StridedMatrix<'_, E> {
    fn item_count(&self) -> usize {
        self.offsets.len()
    }

    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T],
    ) {
        let start = self.item_offset(item) + lanes.start * self.lane + depth.start * self.step;
        let elements = self.elements.get(start..).unwrap_or(&[]);
        LaneView { elements, lane: self.lane, step: self.step }.pack_lanes(
            lanes.len(),
            depth.len(),
            width,
            panel,
        );
    }

    fn aligned_elements(&self, item: usize) -> Option<OperandPointer<T>> {
        let pointer = self.elements.as_ptr().wrapping_add(self.item_offset(item)).cast();
        E::IS_IDENTITY.then_some(OperandPointer { pointer, lane: self.lane, step: self.step })
    }

    fn unaligned_elements(&self, item: usize) -> Option<OperandPointer<T>> {
        let pointer = self.elements.as_ptr().wrapping_add(self.item_offset(item)).cast();
        E::IS_UNALIGNED_IDENTITY.then_some(OperandPointer { pointer, lane: self.lane, step: self.step })
    }
}

/// Elements arranged in lanes and steps.
#[derive(Clone, Copy)]
pub struct LaneView<'a, E> {
    pub elements: &'a [E],
    pub lane: usize,
    pub step: usize,
}

/// The width of the widest panels (two zmm of f32). A constant width compiles to a few vector instructions per step instead of a
/// call to `memcpy`.
const WIDEST_PANEL: usize = 32;

/// Lanes and steps that are transposed at once, in registers: a 4x4 block of f32 is four xmm.
const TRANSPOSE_BLOCK: usize = 4;

impl<E> LaneView<'_, E> {
    /// Packs the first lanes and steps into a panel: step after step, `width` lanes each. Lanes past `count` are zero.
    pub fn pack_lanes<T: GemmElement>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: ConvertTo<T>,
    {
        // Micro-kernels read whole vectors, so lanes past the operand need a number, too.
        if count < width {
            panel.fill(T::default());
        }
        if count == 0 || steps == 0 {
            return;
        }
        if self.lane == 1 && count == width && width == WIDEST_PANEL {
            for (step, panel) in panel.as_chunks_mut::<WIDEST_PANEL>().0.iter_mut().enumerate() {
                let (rows, _) = self.elements[step * self.step..].as_chunks::<WIDEST_PANEL>();
                *panel = rows[0].map(E::convert);
            }
        } else if self.lane == 1 {
            for (step, panel) in panel.chunks_exact_mut(width).enumerate() {
                let row = &self.elements[step * self.step..][..count];
                for (target, element) in panel.iter_mut().zip(row) {
                    *target = element.convert();
                }
            }
        } else if self.step == 1 && count >= TRANSPOSE_BLOCK {
            self.pack_transposed(count, steps, width, panel);
        } else {
            for (step, panel) in panel.chunks_exact_mut(width).enumerate() {
                for (lane, target) in panel[..count].iter_mut().enumerate() {
                    *target = self.elements[lane * self.lane + step * self.step].convert();
                }
            }
        }
    }

    /// Packs lanes whose steps are contiguous, in blocks that the compiler transposes with a few shuffles. It reads along the
    /// steps, so each cache line is used in full.
    fn pack_transposed<T: GemmElement>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: ConvertTo<T>,
    {
        let whole = steps / TRANSPOSE_BLOCK * TRANSPOSE_BLOCK;
        // The last block of lanes may overlap the one before: it writes the same values again.
        for lane in (0..count).step_by(TRANSPOSE_BLOCK).map(|lane| lane.min(count - TRANSPOSE_BLOCK)) {
            let row = |index: usize| &self.elements[(lane + index) * self.lane..][..steps];
            let rows = [row(0), row(1), row(2), row(3)];
            let blocks = rows.map(|row| row.as_chunks::<TRANSPOSE_BLOCK>().0);
            for (index, panel) in
                panel.chunks_exact_mut(TRANSPOSE_BLOCK * width).take(whole / TRANSPOSE_BLOCK).enumerate()
            {
                let block = blocks.map(|blocks| blocks[index].map(E::convert));
                for (step, target) in panel.chunks_exact_mut(width).enumerate() {
                    let transposed = [block[0][step], block[1][step], block[2][step], block[3][step]];
                    target[lane..lane + TRANSPOSE_BLOCK].copy_from_slice(&transposed);
                }
            }
            for step in whole..steps {
                for (index, row) in rows.iter().enumerate() {
                    panel[step * width + lane + index] = row[step].convert();
                }
            }
        }
    }
}
