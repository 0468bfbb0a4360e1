//! Memory for packed panels, and slices that threads share.

#![expect(unsafe_code, reason = "scratch memory is raw, and threads write parts of one slice")]

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::memory::{ALIGNMENT, SharedBlock, ZeroedBlock};
use oarlock_sdk::{Element, KernelCall};

/// A slice that several threads write, each a disjoint part.
pub struct DisjointSlice<'a, T> {
    pointer: *mut T,
    length: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: elements are only accessed through `range_mut` and `element_pointer`, whose callers keep the parts disjoint.
unsafe impl<T: Send> Sync for DisjointSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for DisjointSlice<'_, T> {}

impl<'a, T> DisjointSlice<'a, T> {
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { pointer: slice.as_mut_ptr(), length: slice.len(), slice: PhantomData }
    }

    pub fn element_pointer(&self, index: usize) -> *mut T {
        assert!(index < self.length, "an element outside of its slice");
        self.pointer.wrapping_add(index)
    }

    /// # Safety
    ///
    /// No other thread accesses any of these elements while the part lives.
    pub unsafe fn range_mut(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.length, "a part outside of its slice");
        // SAFETY: the range lies in the slice, and the caller keeps the parts disjoint.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.len()) }
    }
}

/// Elements that are aligned to cache lines, so that no vector load spans two.
pub struct AlignedBuffer<T> {
    block: SharedBlock,
    length: usize,
    elements: PhantomData<T>,
}

impl<T: Element> AlignedBuffer<T> {
    pub fn zeroed(length: usize) -> Self {
        let size = length.checked_mul(size_of::<T>()).expect("elements that fit into memory");
        Self { block: SharedBlock::new(size), length, elements: PhantomData }
    }
}

impl<T: Element> Deref for AlignedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block is large enough and aligned for any element; both zeros and what was written are valid elements.
        unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.length) }
    }
}

impl<T: Element> DerefMut for AlignedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.block.as_ptr().cast(), self.length) }
    }
}

/// Scratch memory: the workspace of the call if it is large enough, otherwise a new allocation.
pub struct ScratchBuffer<'a> {
    workspace: &'a mut [u8],
    own: Option<ZeroedBlock>,
}

impl<'a> ScratchBuffer<'a> {
    pub fn from_call(call: &KernelCall<'a>) -> Self {
        let (block, offset, size) = call.workspace();
        let address = block.0.wrapping_add(offset) as *mut u8;
        if block.0 == 0 || size == 0 {
            return Self::without_workspace();
        }
        // SAFETY: the host provides each call with a workspace of this size, which nothing else accesses during the call.
        Self::new(unsafe { std::slice::from_raw_parts_mut(address, size as usize) })
    }

    pub fn new(workspace: &'a mut [u8]) -> Self {
        Self { workspace, own: None }
    }

    pub fn without_workspace() -> Self {
        Self::new(&mut [])
    }

    /// Memory for `count` elements, whose values are unspecified.
    pub fn allocate_elements<T: ArithmeticElement>(&mut self, count: usize) -> &mut [T] {
        let start = self.workspace.as_ptr().align_offset(ALIGNMENT);
        let end = count.checked_mul(size_of::<T>()).and_then(|size| size.checked_add(start));
        let room = match end.and_then(|end| self.workspace.get_mut(start..end)) {
            Some(room) => room.as_mut_ptr(),
            None => {
                let size = count.checked_mul(size_of::<T>()).expect("elements that fit into memory");
                self.own.insert(ZeroedBlock::new(size)).as_ptr()
            }
        };
        // SAFETY: the memory is aligned, has room for `count` elements and is borrowed with `self`; every bit pattern is a valid
        // number.
        unsafe { std::slice::from_raw_parts_mut(room.cast(), count) }
    }
}
