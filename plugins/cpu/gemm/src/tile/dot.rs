//! Dot products of contiguous ranges with vectors.

#![expect(unsafe_code, reason = "ranges are read through pointers")]

use oarlock_cpu_base::prefetch::prefetch_l2;
use oarlock_cpu_base::simd::{FloatVector, MAX_LANES};
use oarlock_cpu_base::unrolled;

use super::{DOT_ROWS, DotRows, GemmElement};

/// Distance of prefetches along a long row, in bytes. Two pages of 4 KiB: a prefetch that crosses into the next page also triggers
/// a TLB lookup, which takes long, so it has to be issued early.
const ROW_PREFETCH_BYTES: usize = 8192;

/// The dot products of a range with as many rows as there are sums.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
pub(super) unsafe fn dot_products<T: GemmElement, V: FloatVector<T>>(product: &DotRows<T>, sums: &mut [T]) {
    // Memory is the limit of rows that are far, and it is faster if they are read one after another.
    let grouped = if product.is_far { 0 } else { sums.len() / DOT_ROWS * DOT_ROWS };
    let (groups, rest) = sums.split_at_mut(grouped);
    // SAFETY: the caller guarantees these rows.
    unsafe {
        for (group, sums) in groups.as_chunks_mut::<DOT_ROWS>().0.iter_mut().enumerate() {
            // Eight chains hide the latency of an addition.
            *sums = add_rows::<T, V, DOT_ROWS, 2>(product, group * DOT_ROWS);
        }
        for (row, sum) in (grouped..).zip(rest) {
            // Each FMA needs two loads, so at two loads per cycle one starts per cycle, and four chains cover its latency of 4 cycles.
            [*sum] = add_rows::<T, V, 1, 4>(product, row);
        }
    }
}

/// The dot products with some rows, with so many vectors of sums for each.
///
/// # Safety
///
/// As for [`super::DotKernel`].
#[inline(always)]
unsafe fn add_rows<T: GemmElement, V: FloatVector<T>, const ROWS: usize, const CHAINS: usize>(
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
fn add_lanes<T: GemmElement, V: FloatVector<T>, const CHAINS: usize>(chains: [V; CHAINS]) -> T {
    let mut sum = chains[0];
    for chain in chains.into_iter().skip(1) {
        sum = sum.add(chain);
    }
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
