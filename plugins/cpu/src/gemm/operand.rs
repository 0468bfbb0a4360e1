//! What a product reads. Both operands are seen alike: a number of lanes (rows of the left, columns of the right operand)
//! and, along the depth, the steps of each sum.

use std::ops::Range;

use oarlock_sdk::{bf16, f16};

use super::GemmElement;

/// Fills panels with the elements of one operand.
pub(crate) trait PanelSource<T>: Sync {
    /// Of how many products the operand differs: all, or 1 when they share it.
    fn item_count(&self) -> usize;

    /// Copies a range of steps of a range of lanes into a panel: a step after the other, each of `width` lanes, of which the
    /// ones past the range are zero.
    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T],
    );

    /// Where the elements lie, when they lie somewhere as they are. Everything in range can be read.
    fn aligned_elements(&self, _item: usize) -> Option<OperandPointer<T>> {
        None
    }

    /// The same for who reads elements at any address, not only at a multiple of their size.
    fn unaligned_elements(&self, item: usize) -> Option<OperandPointer<T>> {
        self.aligned_elements(item)
    }
}

/// Elements in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandPointer<T> {
    /// The first one.
    pub(crate) pointer: *const T,
    /// From one lane to the next.
    pub(crate) lane: usize,
    /// From one step in depth to the next.
    pub(crate) step: usize,
}

/// An element of an operand as a number to compute with.
pub(crate) trait ConvertTo<T>: Copy + Sync + 'static {
    /// Whether the two are the same type.
    const IS_IDENTITY: bool = false;
    /// Whether the two are the same but for where they may lie.
    const IS_UNALIGNED_IDENTITY: bool = Self::IS_IDENTITY;

    /// The number.
    fn convert(self) -> T;
}

macro_rules! same {
    ($($number:ty)*) => {
        $(impl ConvertTo<$number> for $number {
            const IS_IDENTITY: bool = true;

            #[inline(always)]
            fn convert(self) -> $number {
                self
            }
        })*
    };
}

macro_rules! wider {
    ($($from:ty => $to:ty),*) => {
        $(impl ConvertTo<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self.into()
            }
        })*
    };
}

/// The bytes of a number, which may lie at any address.
impl ConvertTo<f32> for [u8; 4] {
    const IS_UNALIGNED_IDENTITY: bool = true;

    #[inline(always)]
    fn convert(self) -> f32 {
        f32::from_ne_bytes(self)
    }
}

same!(f32 f64 i32 i64 u32 u64);
wider!(f16 => f32, bf16 => f32, i8 => i32, u8 => i32, i16 => i32, u16 => i32);

/// A matrix, or several of the same sizes, with any strides.
pub(crate) struct StridedMatrix<'a, E> {
    elements: &'a [E],
    offsets: Vec<usize>,
    lane: usize,
    step: usize,
}

impl<'a, E> StridedMatrix<'a, E> {
    /// Matrices of `lanes` by `depth` (counts, each with its stride) at the given places among the elements. One place stands
    /// for all products. `None` when an element would lie outside.
    pub(crate) fn new(
        elements: &'a [E],
        mut offsets: Vec<usize>,
        lanes: (usize, usize),
        depth: (usize, usize),
    ) -> Option<Self> {
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

/// Elements that lie in lanes and steps.
#[derive(Clone, Copy)]
pub(crate) struct LaneView<'a, E> {
    /// The elements from the first one on.
    pub(crate) elements: &'a [E],
    /// From one lane to the next.
    pub(crate) lane: usize,
    /// From one step to the next.
    pub(crate) step: usize,
}

/// The width of the widest panels, for which copying a step is a few instructions and no call.
const WIDEST_PANEL: usize = 32;

/// Lanes and steps that are turned at once, in registers.
const TRANSPOSE_BLOCK: usize = 4;

impl<E> LaneView<'_, E> {
    /// Copies the first lanes and steps into a panel: a step after the other, each of `width` lanes, of which the ones past
    /// the first are zero.
    pub(crate) fn pack_lanes<T: GemmElement>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: ConvertTo<T>,
    {
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

    /// Packs lanes whose steps lie side by side, in blocks that the compiler turns with a few shuffles.
    fn pack_transposed<T: GemmElement>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: ConvertTo<T>,
    {
        let whole = steps / TRANSPOSE_BLOCK * TRANSPOSE_BLOCK;
        // The last block of lanes may overlap the one before: what is written twice is the same.
        for lane in (0..count).step_by(TRANSPOSE_BLOCK).map(|lane| lane.min(count - TRANSPOSE_BLOCK)) {
            let row = |index: usize| &self.elements[(lane + index) * self.lane..][..steps];
            let rows = [row(0), row(1), row(2), row(3)];
            let blocks = rows.map(|row| row.as_chunks::<TRANSPOSE_BLOCK>().0);
            for (index, panel) in
                panel.chunks_exact_mut(TRANSPOSE_BLOCK * width).take(whole / TRANSPOSE_BLOCK).enumerate()
            {
                let block = blocks.map(|blocks| blocks[index].map(E::convert));
                for (step, target) in panel.chunks_exact_mut(width).enumerate() {
                    let turned = [block[0][step], block[1][step], block[2][step], block[3][step]];
                    target[lane..lane + TRANSPOSE_BLOCK].copy_from_slice(&turned);
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
