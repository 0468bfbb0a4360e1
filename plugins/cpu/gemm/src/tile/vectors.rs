//! Float micro-kernels for instruction sets that have a vector type. They share one source; the constants of each table set how
//! many registers a tile uses.

#![expect(unsafe_code, reason = "panels are read and tiles written through pointers")]

use oarlock_cpu_base::prefetch::{prefetch_l1, prefetch_l2};
use oarlock_cpu_base::simd::FloatVector;
use oarlock_cpu_base::unrolled;

use super::{GemmElement, GemmTile};

/// Distance, in steps, at which the right panel is prefetched into L1. A step of a full tile of AVX-512 is 28 FMAs, or 14 cycles
/// at two a cycle, so 16 steps are about 224 cycles: enough for a miss in L2.
const PREFETCH_STEPS: isize = 16;

/// Rows of the largest tile.
const MAX_ROWS: usize = 14;

/// Computes a tile of some rows by one or two vectors.
///
/// # Safety
///
/// As for [`super::GemmMicroKernel`].
#[inline(always)]
unsafe fn compute_tile<
    T: GemmElement,
    V: FloatVector<T>,
    const ROWS: usize,
    const VECTORS: usize,
    const PREFETCHES: bool,
>(
    tile: &GemmTile<T>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // In a packed panel the rows are adjacent, so one pointer with constant offsets reaches all of them.
        if PREFETCHES && tile.left_row == 1 {
            accumulate_tile::<T, V, ROWS, VECTORS, PREFETCHES, true>(tile);
        } else {
            accumulate_tile::<T, V, ROWS, VECTORS, PREFETCHES, false>(tile);
        }
    }
}

/// # Safety
///
/// As for [`super::GemmMicroKernel`]. With `SIDE_BY_SIDE`, the rows of the left panel are adjacent.
#[inline(always)]
unsafe fn accumulate_tile<
    T: GemmElement,
    V: FloatVector<T>,
    const ROWS: usize,
    const VECTORS: usize,
    const PREFETCHES: bool,
    const SIDE_BY_SIDE: bool,
>(
    tile: &GemmTile<T>,
) {
    // SAFETY: the caller guarantees the instructions.
    let zero = unsafe { V::splat(T::default()) };
    let mut sums = [[zero; 2]; MAX_ROWS];
    let mut right = tile.right;
    let mut near = tile.right.wrapping_offset(PREFETCH_STEPS * tile.right_depth);
    let mut ahead = tile.ahead;
    // One pointer per three rows: an x86 address can add one or two strides to a register, which reaches the other two. So 14 rows
    // take 5 pointers instead of 14.
    let mut left = [tile.left; MAX_ROWS.div_ceil(3)];
    for (group, pointer) in left.iter_mut().enumerate() {
        *pointer = pointer.wrapping_offset(3 * group as isize * tile.left_row);
    }
    for _ in 0..tile.depth {
        let mut columns = [zero; 2];
        unrolled!(VECTOR in 0..VECTORS, at most 2 {
            // SAFETY: the right panel has whole vectors at each step.
            columns[VECTOR] = unsafe { V::load(right.add(VECTOR * V::LANES)) };
            if PREFETCHES {
                prefetch_l1(near.wrapping_add(VECTOR * V::LANES));
            }
        });
        if PREFETCHES {
            // Into L2 only: a whole block would not fit in L1 beside the left panel.
            prefetch_l2(ahead);
        }
        unrolled!(ROW in 0..ROWS, at most 14 {
            let place = if SIDE_BY_SIDE {
                left[0].wrapping_add(ROW)
            } else {
                left[ROW / 3].wrapping_offset((ROW % 3) as isize * tile.left_row)
            };
            // SAFETY: the left panel has this row at each step.
            let value = unsafe { V::splat(*place) };
            unrolled!(VECTOR in 0..VECTORS, at most 2 {
                sums[ROW][VECTOR] = sums[ROW][VECTOR].add_product(value, columns[VECTOR]);
            });
        });
        for pointer in &mut left {
            *pointer = pointer.wrapping_offset(tile.left_depth);
        }
        right = right.wrapping_offset(tile.right_depth);
        near = near.wrapping_offset(tile.right_depth);
        ahead = ahead.wrapping_offset(tile.ahead_step);
    }
    unrolled!(VECTOR in 0..VECTORS, at most 2 {
        let count = tile.columns - VECTOR * V::LANES;
        unrolled!(ROW in 0..ROWS, at most 14 {
            let place = tile.output.wrapping_add(ROW * tile.output_row + VECTOR * V::LANES);
            let sum = sums[ROW][VECTOR];
            // SAFETY: the output has this many columns in this row, and only this call accesses it.
            unsafe {
                if count >= V::LANES {
                    if tile.add { V::load(place).add(sum) } else { sum }.store(place);
                } else {
                    let sum = if tile.add { V::load_partial(place, count).add(sum) } else { sum };
                    sum.store_partial(place, count);
                }
            }
        });
    });
}

/// Generates the table of an element type and an instruction set: its micro-kernels for each number of rows.
macro_rules! kernels {
    ($(#[$docs:meta])* $name:ident: $element:ident in $vector:ident with $features:literal, prefetches: $prefetches:literal, rows: [$($rows:literal)*]) => {
        $(#[$docs])*
        pub(super) mod $name {
            use oarlock_cpu_base::simd::{FloatVector, $vector};

            use crate::tile::{DotRows, GemmMicroKernels, GemmTile};

            pub(crate) static MICRO_KERNELS: GemmMicroKernels<$element> = GemmMicroKernels {
                vector: $vector::LANES,
                tiles: &[&[$(run_tile::<$rows, 1>),*], &[$(run_tile::<$rows, 2>),*]],
                dot: run_dot,
            };

            #[target_feature(enable = $features)]
            unsafe fn run_dot(product: &DotRows<$element>, sums: &mut [$element]) {
                // SAFETY: guaranteed by the caller.
                unsafe { crate::tile::dot::dot_products::<$element, $vector>(product, sums) }
            }

            #[target_feature(enable = $features)]
            unsafe fn run_tile<const ROWS: usize, const VECTORS: usize>(tile: &GemmTile<$element>) {
                // SAFETY: guaranteed by the caller.
                unsafe { super::compute_tile::<$element, $vector, ROWS, VECTORS, $prefetches>(tile) }
            }
        }
    };
}

// A tile of 6 rows by 2 vectors takes 12 accumulators; with 2 vectors of the right panel, 1 broadcast element of the left and 1
// product, all 16 xmm registers are in use.
kernels!(sse41_f32: f32 in Sse41F32Vector with "sse4.1,ssse3", prefetches: false, rows: [1 2 3 4 5 6]);
kernels!(sse41_f64: f64 in Sse41F64Vector with "sse4.1,ssse3", prefetches: false, rows: [1 2 3 4 5 6]);

// As above, but the products need no register: with 2 vectors of the right panel and 1 broadcast element of the left, 15
// of the 16 ymm registers are in use. The 12 chains also hide the latency of FMA: 4 cycles at 2 FMAs a cycle need at least 8.
#[cfg(x86_vectors)]
kernels!(avx2_f32: f32 in Avx2F32Vector with "avx2,fma", prefetches: false, rows: [1 2 3 4 5 6]);
#[cfg(x86_vectors)]
kernels!(avx2_f64: f64 in Avx2F64Vector with "avx2,fma", prefetches: false, rows: [1 2 3 4 5 6]);

// A tile of 14 rows by 2 vectors takes 28 accumulators; with 2 vectors of the right panel and 1 broadcast element of the left, 31
// of the 32 zmm registers are in use. Some processors start two such FMAs per cycle, so a load that misses L1 would stall them: the
// right panel is prefetched some steps ahead, and the operands of the next block much earlier, into L2.
#[cfg(x86_vectors)]
kernels!(avx512_f32: f32 in Avx512F32Vector with "avx2,fma,avx512f", prefetches: true, rows: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
#[cfg(x86_vectors)]
kernels!(avx512_f64: f64 in Avx512F64Vector with "avx2,fma,avx512f", prefetches: true, rows: [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
