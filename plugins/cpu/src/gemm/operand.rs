//! What a product reads. Both operands are seen alike: a number of lanes (rows of the left, columns of the right operand)
//! and, along the depth, the steps of each sum.

use std::ops::Range;

use oarlock_sdk::{bf16, f16};

use super::Number;

/// Fills panels with the elements of one operand.
pub(crate) trait Operand<T>: Sync {
    /// Of how many products the operand differs: all, or 1 when they share it.
    fn items(&self) -> usize;

    /// Copies a range of steps of a range of lanes into a panel: a step after the other, each of `width` lanes, of which the
    /// ones past the range are zero.
    fn pack(&self, item: usize, depth: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [T]);

    /// Where the elements lie, when they lie somewhere as they are. Everything in range can be read.
    fn elements(&self, _item: usize) -> Option<Elements<T>> {
        None
    }

    /// The same for who reads elements at any address, not only at a multiple of their size.
    fn elements_anywhere(&self, item: usize) -> Option<Elements<T>> {
        self.elements(item)
    }
}

/// Elements in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<T> {
    /// The first one.
    pub(crate) pointer: *const T,
    /// From one lane to the next.
    pub(crate) lane: usize,
    /// From one step in depth to the next.
    pub(crate) step: usize,
}

/// An element of an operand as a number to compute with.
pub(crate) trait Convert<T>: Copy + Sync + 'static {
    /// Whether the two are the same type.
    const SAME: bool = false;
    /// Whether the two are the same but for where they may lie.
    const SAME_ANYWHERE: bool = Self::SAME;

    /// The number.
    fn convert(self) -> T;
}

macro_rules! same {
    ($($number:ty)*) => {
        $(impl Convert<$number> for $number {
            const SAME: bool = true;

            #[inline(always)]
            fn convert(self) -> $number {
                self
            }
        })*
    };
}

macro_rules! wider {
    ($($from:ty => $to:ty),*) => {
        $(impl Convert<$to> for $from {
            #[inline(always)]
            fn convert(self) -> $to {
                self.into()
            }
        })*
    };
}

/// The bytes of a number, which may lie at any address.
impl Convert<f32> for [u8; 4] {
    const SAME_ANYWHERE: bool = true;

    #[inline(always)]
    fn convert(self) -> f32 {
        f32::from_ne_bytes(self)
    }
}

same!(f32 f64 i32 i64 u32 u64);
wider!(f16 => f32, bf16 => f32, i8 => i32, u8 => i32, i16 => i32, u16 => i32);

/// A matrix, or several of the same sizes, with any strides.
pub(crate) struct Matrix<'a, E> {
    elements: &'a [E],
    offsets: Vec<usize>,
    lane: usize,
    step: usize,
}

impl<'a, E> Matrix<'a, E> {
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

    fn offset(&self, item: usize) -> usize {
        self.offsets[item % self.offsets.len()]
    }
}

impl<T: Number, E: Convert<T>> Operand<T> for Matrix<'_, E> {
    fn items(&self) -> usize {
        self.offsets.len()
    }

    fn pack(&self, item: usize, depth: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [T]) {
        let start = self.offset(item) + lanes.start * self.lane + depth.start * self.step;
        let elements = self.elements.get(start..).unwrap_or(&[]);
        View { elements, lane: self.lane, step: self.step }.pack(lanes.len(), depth.len(), width, panel);
    }

    fn elements(&self, item: usize) -> Option<Elements<T>> {
        let pointer = self.elements.as_ptr().wrapping_add(self.offset(item)).cast();
        E::SAME.then_some(Elements { pointer, lane: self.lane, step: self.step })
    }

    fn elements_anywhere(&self, item: usize) -> Option<Elements<T>> {
        let pointer = self.elements.as_ptr().wrapping_add(self.offset(item)).cast();
        E::SAME_ANYWHERE.then_some(Elements { pointer, lane: self.lane, step: self.step })
    }
}

/// Elements that lie in lanes and steps.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, E> {
    /// The elements from the first one on.
    pub(crate) elements: &'a [E],
    /// From one lane to the next.
    pub(crate) lane: usize,
    /// From one step to the next.
    pub(crate) step: usize,
}

/// The width of the widest panels, for which copying a step is a few instructions and no call.
const WIDE: usize = 32;

/// Lanes and steps that are turned at once, in registers.
const BLOCK: usize = 4;

impl<E> View<'_, E> {
    /// Copies the first lanes and steps into a panel: a step after the other, each of `width` lanes, of which the ones past
    /// the first are zero.
    pub(crate) fn pack<T: Number>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: Convert<T>,
    {
        if count < width {
            panel.fill(T::default());
        }
        if count == 0 || steps == 0 {
            return;
        }
        if self.lane == 1 && count == width && width == WIDE {
            for (step, panel) in panel.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
                let (rows, _) = self.elements[step * self.step..].as_chunks::<WIDE>();
                *panel = rows[0].map(E::convert);
            }
        } else if self.lane == 1 {
            for (step, panel) in panel.chunks_exact_mut(width).enumerate() {
                let row = &self.elements[step * self.step..][..count];
                for (target, element) in panel.iter_mut().zip(row) {
                    *target = element.convert();
                }
            }
        } else if self.step == 1 && count >= BLOCK {
            self.pack_turned(count, steps, width, panel);
        } else {
            for (step, panel) in panel.chunks_exact_mut(width).enumerate() {
                for (lane, target) in panel[..count].iter_mut().enumerate() {
                    *target = self.elements[lane * self.lane + step * self.step].convert();
                }
            }
        }
    }

    /// Packs lanes whose steps lie side by side, in blocks that the compiler turns with a few shuffles.
    fn pack_turned<T: Number>(&self, count: usize, steps: usize, width: usize, panel: &mut [T])
    where
        E: Convert<T>,
    {
        let whole = steps / BLOCK * BLOCK;
        // The last block of lanes may overlap the one before: what is written twice is the same.
        for lane in (0..count).step_by(BLOCK).map(|lane| lane.min(count - BLOCK)) {
            let row = |index: usize| &self.elements[(lane + index) * self.lane..][..steps];
            let rows = [row(0), row(1), row(2), row(3)];
            let blocks = rows.map(|row| row.as_chunks::<BLOCK>().0);
            for (index, panel) in panel.chunks_exact_mut(BLOCK * width).take(whole / BLOCK).enumerate() {
                let block = blocks.map(|blocks| blocks[index].map(E::convert));
                for (step, target) in panel.chunks_exact_mut(width).enumerate() {
                    let turned = [block[0][step], block[1][step], block[2][step], block[3][step]];
                    target[lane..lane + BLOCK].copy_from_slice(&turned);
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
