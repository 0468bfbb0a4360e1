//! Dot products of contiguous ranges with vectors.

#![expect(unsafe_code, reason = "ranges are read through pointers")]

use oarlock_cpu_base::prefetch::prefetch_l2;
use oarlock_cpu_base::simd::{FloatVector, MAX_LANES};
use oarlock_cpu_base::unrolled;

use super::GemmElement;

/// Distance of prefetches along a long row, in bytes. Two pages of 4 KiB: a prefetch that crosses into the next page also triggers
/// a TLB lookup, which takes long, so it has to be issued early.
const ROW_PREFETCH_BYTES: usize = 8192;

/// The dot product of two ranges, of which the right one may have any alignment. Each FMA needs two loads, so at two loads per
/// cycle one FMA starts per cycle, and four accumulators cover its latency of 4 cycles.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
pub(super) unsafe fn dot_product<T: GemmElement, V: FloatVector<T>>(
    left: *const T,
    right: *const T,
    count: usize,
    is_far: bool,
) -> T {
    let block_size = 4 * V::LANES;
    // SAFETY: the caller guarantees `count` elements on both sides, and the instructions.
    unsafe {
        let mut sums = [V::splat(T::default()); 4];
        for block in 0..count / block_size {
            unrolled!(SUM in 0..4, at most 4 {
                let place = block * block_size + SUM * V::LANES;
                if is_far {
                    prefetch_l2(right.wrapping_add(place).cast::<u8>().wrapping_add(ROW_PREFETCH_BYTES));
                }
                sums[SUM] = sums[SUM].add_product(V::load(left.add(place)), V::load(right.add(place)));
            });
        }
        let whole = count / V::LANES * V::LANES;
        for place in (count / block_size * block_size..whole).step_by(V::LANES) {
            sums[0] = sums[0].add_product(V::load(left.add(place)), V::load(right.add(place)));
        }
        // Lanes are added pairwise, which rounds less than adding them one by one.
        let mut lanes = [T::default(); MAX_LANES];
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).store(lanes.as_mut_ptr());
        let rest = (whole..count).fold(T::default(), |sum, place| {
            let (left, right) = (*left.add(place), right.add(place).read_unaligned());
            if V::HAS_FMA {
                sum.add_product::<true>(left, right)
            } else {
                sum.add_product::<false>(left, right)
            }
        });
        let mut half = V::LANES / 2;
        while half > 0 {
            for lane in 0..half {
                lanes[lane] = lanes[lane].plus(lanes[lane + half]);
            }
            half /= 2;
        }
        lanes[0].plus(rest)
    }
}
