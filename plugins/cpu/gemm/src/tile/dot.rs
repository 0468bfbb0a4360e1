//! Dot products of contiguous ranges with vectors.

#![expect(unsafe_code, reason = "ranges are read through pointers")]

use oarlock_cpu_base::prefetch::prefetch_l2;
use oarlock_cpu_base::simd::{FloatVector, MAX_LANES};
use oarlock_cpu_base::unrolled;

use super::{DotRows, GemmElement};

/// Distance of prefetches along a long row, in bytes. Two pages of 4 KiB: a prefetch that crosses into the next page also triggers
/// a TLB lookup, which takes long, so it has to be issued early.
const ROW_PREFETCH_BYTES: usize = 8192;

/// The vectors of sums of each row, always as many, so that the order of additions does not depend on how many rows are multiplied at a
/// time. At two loads per cycle, one FMA of a single row starts per cycle, and four chains cover its latency of 4 cycles.
const CHAINS: usize = 4;

/// The dot products of a range with as many rows as there are sums.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
pub(super) unsafe fn dot_products<T: GemmElement, V: FloatVector<T>>(product: &DotRows<T>, sums: &mut [T]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Memory is the limit of rows that are far, and it is faster if they are read one after another.
        if product.is_far {
            multiply_rows::<T, V, 1>(product, sums);
        } else if const { cfg!(target_arch = "aarch64") || size_of::<V>() == 64 } {
            // There are 32 registers.
            multiply_rows::<T, V, 4>(product, sums);
        } else {
            multiply_rows::<T, V, 2>(product, sums);
        }
    }
}

/// Multiplies so many rows at a time.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
unsafe fn multiply_rows<T: GemmElement, V: FloatVector<T>, const ROWS: usize>(
    product: &DotRows<T>,
    sums: &mut [T],
) {
    let (groups, rest) = sums.as_chunks_mut::<ROWS>();
    let rest_begin = groups.len() * ROWS;
    // SAFETY: the caller guarantees these rows.
    unsafe {
        for (group, sums) in groups.iter_mut().enumerate() {
            *sums = add_rows::<T, V, ROWS>(product, group * ROWS);
        }
        for (row, sum) in (rest_begin..).zip(rest) {
            [*sum] = add_rows::<T, V, 1>(product, row);
        }
    }
}

/// The dot products with some rows.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
unsafe fn add_rows<T: GemmElement, V: FloatVector<T>, const ROWS: usize>(
    product: &DotRows<T>,
    first_row: usize,
) -> [T; ROWS] {
    let DotRows { left, depth, is_far, .. } = *product;
    let mut rows = [left; ROWS];
    for (row, start) in (first_row..).zip(&mut rows) {
        *start = product.right.wrapping_add(row * product.right_row);
    }
    let block_size = CHAINS * V::LANES;
    // SAFETY: the caller guarantees `depth` elements of each range, and the instructions.
    unsafe {
        let mut sums = [[V::splat(T::default()); CHAINS]; ROWS];
        for block in 0..depth / block_size {
            unrolled!(CHAIN in 0..CHAINS, at most 4 {
                let place = block * block_size + CHAIN * V::LANES;
                let factors = V::load(left.add(place));
                unrolled!(ROW in 0..ROWS, at most 4 {
                    let right = rows[ROW].add(place);
                    if is_far {
                        prefetch_l2(right.cast::<u8>().wrapping_add(ROW_PREFETCH_BYTES));
                    }
                    sums[ROW][CHAIN] = sums[ROW][CHAIN].add_product(factors, V::load(right));
                });
            });
        }
        let whole = depth / V::LANES * V::LANES;
        for place in (depth / block_size * block_size..whole).step_by(V::LANES) {
            let factors = V::load(left.add(place));
            unrolled!(ROW in 0..ROWS, at most 4 {
                sums[ROW][0] = sums[ROW][0].add_product(factors, V::load(rows[ROW].add(place)));
            });
        }
        if whole < depth {
            let factors = V::load_partial(left.add(whole), depth - whole);
            unrolled!(ROW in 0..ROWS, at most 4 {
                let right = V::load_partial(rows[ROW].add(whole), depth - whole);
                sums[ROW][0] = sums[ROW][0].add_product(factors, right);
            });
        }
        let mut totals = [T::default(); ROWS];
        unrolled!(ROW in 0..ROWS, at most 4 {
            totals[ROW] = add_lanes(sums[ROW]);
        });
        totals
    }
}

/// The sum of all lanes of some vectors, added pairwise, which rounds less than adding them one by one.
#[inline(always)]
fn add_lanes<T: GemmElement, V: FloatVector<T>>(chains: [V; CHAINS]) -> T {
    let [first, second, third, fourth] = chains;
    let sum = first.add(second).add(third.add(fourth));
    let mut lanes = [T::default(); MAX_LANES];
    // SAFETY: there is room for the widest vector, and a vector exists only if the machine has the instructions.
    unsafe { sum.store(lanes.as_mut_ptr()) };
    let mut half = V::LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane].plus(lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
