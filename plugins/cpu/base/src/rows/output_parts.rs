//! Disjoint parts of outputs, so that the body of a parallel loop writes its part in safe code.

#![expect(unsafe_code, reason = "threads write disjoint parts of one slice, which the compiler cannot see")]

use std::marker::PhantomData;
use std::sync::OnceLock;

use oarlock_sdk::Result;

use crate::device::Cpu;

/// Outputs that can be split along the items of a loop.
pub trait OutputParts: Sync {
    /// The elements that one piece of the loop may write.
    type Part;

    /// True if the outputs have room for exactly this many items.
    fn fits(&self, items: usize) -> bool;

    /// True if there is nothing to write, however many items there are.
    fn is_empty(&self) -> bool;

    /// The part of some items.
    ///
    /// # Safety
    ///
    /// The items are within the count that fits, and no two parts that exist at the same time share an item.
    unsafe fn item_part(&self, begin: usize, end: usize) -> Self::Part;
}

/// Runs `body(begin, part)` on the device's threads over pieces of `0..count`, each with its part of the outputs. Empty outputs
/// skip the loop, since a shape with a 0 may have more items than a loop could visit.
pub fn parallel_for_parts<P: OutputParts>(
    cpu: &Cpu,
    count: usize,
    grain: usize,
    outputs: P,
    body: impl Fn(usize, P::Part) + Sync,
) {
    assert!(outputs.fits(count), "outputs have something for each item");
    if count == 0 || outputs.is_empty() {
        return;
    }
    cpu.parallel_for(count, grain, |begin, end| {
        assert!(begin <= end && end <= count, "a piece lies within the loop");
        // SAFETY: the items are within the count, which fits, and the pieces of a loop do not overlap.
        body(begin, unsafe { outputs.item_part(begin, end) });
    });
}

/// Like [`parallel_for_parts`], for a body that may fail. After an error, no further piece starts.
pub fn try_parallel_for_parts<P: OutputParts>(
    cpu: &Cpu,
    count: usize,
    grain: usize,
    outputs: P,
    body: impl Fn(usize, P::Part) -> Result<()> + Sync,
) -> Result<()> {
    let failure = OnceLock::new();
    parallel_for_parts(cpu, count, grain, outputs, |begin, part| {
        if failure.get().is_none()
            && let Err(error) = body(begin, part)
        {
            // Another thread may have failed in the meantime.
            let _ = failure.set(error);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Outputs in blocks: each item is a block of items of `parts`.
pub struct OutputBlocks<P> {
    pub parts: P,
    /// The number of items of `parts`; the last block may have fewer than the others.
    pub count: usize,
    /// The number of items in a block.
    pub size: usize,
}

impl<P: OutputParts> OutputParts for OutputBlocks<P> {
    type Part = P::Part;

    fn fits(&self, items: usize) -> bool {
        self.parts.fits(self.count) && items == self.count.div_ceil(self.size)
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    unsafe fn item_part(&self, begin: usize, end: usize) -> P::Part {
        let [begin, end] = [begin, end].map(|block| (block * self.size).min(self.count));
        // SAFETY: blocks within the count consist of items that fit, and blocks share no items.
        unsafe { self.parts.item_part(begin, end) }
    }
}

/// A slice in which each item has a row of the same width.
pub struct OutputRows<'a, T> {
    start: *mut T,
    length: usize,
    width: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it represents a mutable slice, and each part of it goes to one thread.
unsafe impl<T: Send> Sync for OutputRows<'_, T> {}

impl<'a, T> OutputRows<'a, T> {
    pub fn new(slice: &'a mut [T], width: usize) -> Self {
        Self { start: slice.as_mut_ptr(), length: slice.len(), width, slice: PhantomData }
    }
}

impl<'a, T: Send> OutputParts for OutputRows<'a, T> {
    type Part = &'a mut [T];

    fn fits(&self, items: usize) -> bool {
        items.checked_mul(self.width) == Some(self.length)
    }

    fn is_empty(&self) -> bool {
        self.length == 0
    }

    unsafe fn item_part(&self, begin: usize, end: usize) -> &'a mut [T] {
        // SAFETY: the caller guarantees that the items lie in the slice and in no other part.
        unsafe {
            std::slice::from_raw_parts_mut(self.start.add(begin * self.width), (end - begin) * self.width)
        }
    }
}

impl<P: OutputParts> OutputParts for Option<P> {
    type Part = Option<P::Part>;

    fn fits(&self, items: usize) -> bool {
        self.as_ref().is_none_or(|parts| parts.fits(items))
    }

    fn is_empty(&self) -> bool {
        self.as_ref().is_none_or(OutputParts::is_empty)
    }

    unsafe fn item_part(&self, begin: usize, end: usize) -> Self::Part {
        // SAFETY: as the caller vouches.
        self.as_ref().map(|parts| unsafe { parts.item_part(begin, end) })
    }
}

macro_rules! tuples {
    ($($name:ident $index:tt),*) => {
        impl<$($name: OutputParts),*> OutputParts for ($($name,)*) {
            type Part = ($($name::Part,)*);

            fn fits(&self, items: usize) -> bool {
                $(self.$index.fits(items))&&*
            }

            fn is_empty(&self) -> bool {
                $(self.$index.is_empty())&&*
            }

            unsafe fn item_part(&self, begin: usize, end: usize) -> Self::Part {
                // SAFETY: as the caller vouches.
                unsafe { ($(self.$index.item_part(begin, end),)*) }
            }
        }
    };
}

tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);

/// A tensor in which each item is a line along one axis: `inner` lines of `length` elements lie side by side.
pub struct AxisLines<'a, T> {
    start: *mut T,
    count: usize,
    length: usize,
    inner: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: as for `OutputRows`.
unsafe impl<T: Send> Sync for AxisLines<'_, T> {}

impl<'a, T> AxisLines<'a, T> {
    pub fn new(slice: &'a mut [T], length: usize, inner: usize) -> Self {
        Self { start: slice.as_mut_ptr(), count: slice.len(), length, inner, slice: PhantomData }
    }
}

impl<'a, T: Send> OutputParts for AxisLines<'a, T> {
    type Part = AxisLinesPart<'a, T>;

    fn fits(&self, items: usize) -> bool {
        items.checked_mul(self.length) == Some(self.count)
            && (self.count == 0 || items.is_multiple_of(self.inner))
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }

    unsafe fn item_part(&self, begin: usize, end: usize) -> AxisLinesPart<'a, T> {
        let Self { start, length, inner, .. } = *self;
        AxisLinesPart { start, length, inner, begin, end, slice: PhantomData }
    }
}

/// Some of the lines of [`AxisLines`].
pub struct AxisLinesPart<'a, T> {
    start: *mut T,
    length: usize,
    inner: usize,
    begin: usize,
    end: usize,
    slice: PhantomData<&'a mut [T]>,
}

impl<T> AxisLinesPart<'_, T> {
    /// The elements at one position of several lines that lie side by side.
    pub fn lines_at(&mut self, line: usize, lines: usize, position: usize) -> &mut [T] {
        let is_own = self.begin <= line && lines <= self.end - line && position < self.length;
        assert!(is_own && line % self.inner + lines <= self.inner, "lines of this part, side by side");
        let at = (line / self.inner * self.length + position) * self.inner + line % self.inner;
        // SAFETY: the lines belong to this part, which shares none with another part, and lie side by side.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), lines) }
    }

    pub fn line_elements(&mut self, line: usize) -> impl Iterator<Item = &mut T> {
        assert!((self.begin..self.end).contains(&line), "a line of this part");
        let first = line / self.inner * self.length * self.inner + line % self.inner;
        let (start, inner) = (self.start, self.inner);
        // SAFETY: as above; positions are distinct elements, all of this line.
        (0..self.length).map(move |position| unsafe { &mut *start.add(first + position * inner) })
    }

    /// A whole line, if lines are contiguous.
    pub fn contiguous_line(&mut self, line: usize) -> &mut [T] {
        assert!(
            self.inner == 1 && (self.begin..self.end).contains(&line),
            "a line of this part, in one piece"
        );
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(line * self.length), self.length) }
    }

    /// The lines of this part in groups of at most `width` that lie side by side: the first line and the number of lines.
    pub fn line_groups(&self, width: usize) -> impl Iterator<Item = (usize, usize)> + use<T> {
        let (mut next, end, inner) = (self.begin, self.end, self.inner);
        std::iter::from_fn(move || {
            let lines = width.min(end - next).min(inner - next % inner.max(1));
            (lines > 0).then(|| {
                next += lines;
                (next - lines, lines)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_part_come_in_groups_that_lie_side_by_side() {
        let mut values = [0; 24];
        let lines = AxisLines::new(&mut values, 2, 4);
        assert!(lines.fits(12) && !lines.fits(11));
        // SAFETY: it is the only part.
        let mut part = unsafe { lines.item_part(2, 9) };
        assert_eq!(part.line_groups(3).collect::<Vec<_>>(), [(2, 2), (4, 3), (7, 1), (8, 1)]);
        part.lines_at(4, 3, 1).fill(7);
        assert_eq!(values[12..15], [7; 3]);
        assert_eq!(values.iter().sum::<i32>(), 21);
    }

    #[test]
    fn blocks_of_items_share_none_and_the_last_may_be_shorter() {
        let mut values = [0; 14];
        let blocks = OutputBlocks { parts: OutputRows::new(&mut values, 2), count: 7, size: 3 };
        assert!(blocks.fits(3) && !blocks.fits(2) && !blocks.is_empty());
        // SAFETY: they are the only parts, and have different blocks.
        let (first, last) = unsafe { (blocks.item_part(0, 1), blocks.item_part(1, 3)) };
        assert_eq!((first.len(), last.len()), (6, 8));
    }

    #[test]
    fn rows_fit_only_as_many_items_as_there_are() {
        let mut values = [0; 6];
        let rows = OutputRows::new(&mut values, 2);
        assert!(rows.fits(3) && !rows.fits(2) && !rows.fits(4));
    }
}
