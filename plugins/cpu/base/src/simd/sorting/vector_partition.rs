//! Partitions that read, divide and write whole vectors.

use super::{PARTITION_ROOM, SortElement, SortVector};

#[target_feature(enable = "avx2,popcnt,avx512f")]
pub(super) unsafe fn partition_avx512<E: SortElement, V: SortVector<E>>(
    elements: &mut [E],
    room: &mut [E],
    pivot: E,
) -> usize {
    // SAFETY: this function is only called on machines that have the instructions.
    unsafe { partition::<E, V>(elements, room, pivot) }
}

#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn partition_avx2<E: SortElement, V: SortVector<E>>(
    elements: &mut [E],
    room: &mut [E],
    pivot: E,
) -> usize {
    // SAFETY: as above.
    unsafe { partition::<E, V>(elements, room, pivot) }
}

/// How many vectors are read from one end before any of them is written: where to read next is known only once they are divided.
const BLOCK: usize = 8;

/// # Safety
///
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn partition<E: SortElement, V: SortVector<E>>(elements: &mut [E], room: &mut [E], pivot: E) -> usize {
    assert!(room.len() >= PARTITION_ROOM);
    const { assert!((2 * BLOCK + 1) * V::LANES * 2 <= PARTITION_ROOM) };
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        if elements.len() <= PARTITION_ROOM {
            let kept = partition_apart::<E, V>(elements, room, pivot);
            let moved = elements.len() - kept;
            elements[kept..].copy_from_slice(&room[..moved]);
            kept
        } else {
            partition_from_both_ends::<E, V>(elements, room, pivot)
        }
    }
}

/// Partitions many elements where they are. A block of vectors at either end is set aside, so that there is a gap behind what is
/// read from each end; elements below the pivot go into the gap at the front, and all others into that at the back. The block is
/// read from where the gap is smaller. Both then have place for a block, whichever way it is divided.
///
/// # Safety
///
/// The machine has the instructions of `V`, and there are more than twice as many elements as in a block.
#[inline(always)]
unsafe fn partition_from_both_ends<E: SortElement, V: SortVector<E>>(
    elements: &mut [E],
    room: &mut [E],
    pivot: E,
) -> usize {
    let block = BLOCK * V::LANES;
    let count = elements.len();
    // The back also has what is too short for a vector.
    let back = block + count % V::LANES;
    let (aside, moved) = room.split_at_mut(block + back);
    aside[..block].copy_from_slice(&elements[..block]);
    aside[block..].copy_from_slice(&elements[count - back..]);
    let mut ends = PartitionEnds { read: [block, count - back], write: [0, count] };
    // SAFETY: the caller guarantees the instructions.
    let pivots = unsafe { V::splat(pivot) };
    let start = elements.as_mut_ptr();
    // SAFETY: a whole number of vectors is left between the places to read, and what is set aside leaves two blocks of gaps.
    unsafe {
        while ends.read[1] - ends.read[0] >= block {
            ends.divide_block::<E, V, BLOCK>(start, pivots);
        }
        while ends.read[1] > ends.read[0] {
            ends.divide_block::<E, V, 1>(start, pivots);
        }
        let kept = partition_apart::<E, V>(aside, moved, pivot);
        let [low, high] = ends.write;
        let gap = &mut elements[low..high];
        gap[..kept].copy_from_slice(&aside[..kept]);
        gap[kept..].copy_from_slice(&moved[..aside.len() - kept]);
        low + kept
    }
}

/// What is left of a partition from both ends.
struct PartitionEnds {
    /// Where elements are read that are not divided yet: their begin and end.
    read: [usize; 2],
    /// The end of the elements below the pivot, and the begin of the others.
    write: [usize; 2],
}

impl PartitionEnds {
    /// # Safety
    ///
    /// The machine has the instructions of `V`, all places lie in the allocation of `start`, at least `N` vectors are left to read,
    /// and the gaps at both ends together have place for two times `N` of them.
    #[inline(always)]
    unsafe fn divide_block<E, V: SortVector<E>, const N: usize>(&mut self, start: *mut E, pivots: V) {
        let Self { read: [front, back], write: [low, high] } = self;
        let block = N * V::LANES;
        let is_front = *front - *low <= *high - *back;
        let place = if is_front { *front } else { *back - block };
        // Both are computed, as a branch would often be mispredicted.
        *front += if is_front { block } else { 0 };
        *back -= if is_front { 0 } else { block };
        // SAFETY: the block lies between the places to read. After it is read, the gap at either end has place for `N` vectors,
        // and each store moves an end by a vector at most.
        unsafe {
            let vectors: [V; N] = std::array::from_fn(|index| V::load(start.add(place + index * V::LANES)));
            for vector in vectors {
                let lanes = vector.lanes_below(pivots);
                let [below, others] = vector.split_lanes(lanes);
                below.store(start.add(*low));
                others.store(start.add(*high - V::LANES));
                let kept = lanes.count_ones() as usize;
                *low += kept;
                *high -= V::LANES - kept;
            }
        }
    }
}

/// Moves the elements below a pivot to the front, and the others to that of `moved`, which is as long. What follows each is
/// arbitrary. Returns how many stay.
///
/// # Safety
///
/// The machine has the instructions of `V`.
#[inline(always)]
unsafe fn partition_apart<E: SortElement, V: SortVector<E>>(
    elements: &mut [E],
    moved: &mut [E],
    pivot: E,
) -> usize {
    let count = elements.len();
    assert!(moved.len() >= count);
    let (front, target) = (elements.as_mut_ptr(), moved.as_mut_ptr());
    let all = u32::MAX >> (32 - V::LANES);
    // SAFETY: the caller guarantees the instructions.
    let pivots = unsafe { V::splat(pivot) };
    let (mut kept, mut read) = (0, 0);
    while read + V::LANES <= count {
        // SAFETY: the lanes lie before `count`. Both stores end there at the latest, since no more was kept or moved than was
        // read; the first only overwrites what was read.
        unsafe {
            let vector = V::load(front.add(read));
            let lanes = vector.lanes_below(pivots);
            vector.split_lanes(lanes)[0].store(front.add(kept));
            vector.split_lanes(lanes ^ all)[0].store(target.add(read - kept));
            kept += lanes.count_ones() as usize;
        }
        read += V::LANES;
    }
    for at in read..count {
        let element = elements[at];
        // Both are written, as a branch would often be mispredicted.
        elements[kept] = element;
        moved[at - kept] = element;
        kept += usize::from(element < pivot);
    }
    kept
}
