//! Micro-kernels for AVX-512. A tile of 14 rows by 2 vectors takes 28 accumulators; with 2 vectors of the right panel and 1
//! broadcast element of the left, 31 of the 32 zmm registers are in use.
//!
//! Some processors start two FMAs per cycle, which leaves no time to wait for the right panel: it is prefetched some steps ahead,
//! and what tiles of the next block will read long before that.

#![expect(unsafe_code, reason = "panels are read and tiles written through pointers")]

/// Distance, in steps, at which the right panel is prefetched into L1. A step of a full tile is 28 FMAs, or 14 cycles at two a
/// cycle, so 16 steps are about 224 cycles: enough for a miss in L2.
const PREFETCH_STEPS: isize = 16;

/// Generates the module of a type from its lane count and intrinsics.
macro_rules! kernels {
    ($float:ident, $lanes:literal, $mask:ty, $zero:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $fused:ident,
     $load_some:ident, $store_some:ident) => {
        pub(crate) mod $float {
            use std::arch::x86_64::*;

            use super::super::{GemmMicroKernel, GemmMicroKernels, GemmTile};
use oarlock_cpu_base::unrolled;

use super::PREFETCH_STEPS;
use super::super::super::gemv::PREFETCH_DISTANCE;
use oarlock_cpu_base::prefetch::prefetch_l2;

            pub(crate) static MICRO_KERNELS: GemmMicroKernels<$float> =
                GemmMicroKernels { vector: $lanes, tiles: &[&ONE_VECTOR_TILES, &TWO_VECTOR_TILES], dot: dot_product };

            static ONE_VECTOR_TILES: [GemmMicroKernel<$float>; 14] = rows!(1);
            static TWO_VECTOR_TILES: [GemmMicroKernel<$float>; 14] = rows!(2);

            /// The right operand may have any alignment. Each FMA needs two loads, so at two loads a cycle one FMA starts per
            /// cycle: four accumulators cover its latency of 4 cycles.
            #[target_feature(enable = "avx512f")]
            unsafe fn dot_product(left: *const $float, right: *const $float, count: usize, is_far: bool) -> $float {
                const BLOCK: usize = 4 * $lanes;
                let mut sums = [$zero(); 4];
                // SAFETY: the caller guarantees `count` elements on both sides.
                unsafe {
                    for block in 0..count / BLOCK {
                        unrolled!(SUM in 0..4, at most 4 {
                            let place = block * BLOCK + SUM * $lanes;
                            if is_far {
                                prefetch_l2(right.wrapping_add(place).cast::<u8>().wrapping_add(PREFETCH_DISTANCE));
                            }
                            sums[SUM] = $fused($load(left.add(place)), $load(right.add(place)), sums[SUM]);
                        });
                    }
                    let whole = count / $lanes * $lanes;
                    for place in (count / BLOCK * BLOCK..whole).step_by($lanes) {
                        sums[0] = $fused($load(left.add(place)), $load(right.add(place)), sums[0]);
                    }
                    let mut lanes = [0.0; $lanes];
                    $store(lanes.as_mut_ptr(), $add($add(sums[0], sums[1]), $add(sums[2], sums[3])));
                    let rest = (whole..count).fold(0.0, |sum: $float, place| {
                        (*left.add(place)).mul_add(right.add(place).read_unaligned(), sum)
                    });
                    let mut half = $lanes / 2;
                    while half > 0 {
                        for lane in 0..half {
                            lanes[lane] += lanes[lane + half];
                        }
                        half /= 2;
                    }
                    lanes[0] + rest
                }
            }

            #[target_feature(enable = "avx512f")]
            unsafe fn compute_tile<const ROWS: usize, const VECTORS: usize>(tile: &GemmTile<$float>) {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    if tile.left_row == 1 {
                        accumulate_tile::<ROWS, VECTORS, true>(tile);
                    } else {
                        accumulate_tile::<ROWS, VECTORS, false>(tile);
                    }
                }
            }

            /// With `SIDE_BY_SIDE`, the rows of the left panel are adjacent, as in packed panels: one pointer with constant
            /// offsets reaches all 14, and the other four pointers need no registers.
            #[target_feature(enable = "avx512f")]
            unsafe fn accumulate_tile<const ROWS: usize, const VECTORS: usize, const SIDE_BY_SIDE: bool>(
                tile: &GemmTile<$float>,
            ) {
                let mut sums = [[$zero(); 2]; 14];
                let mut right = tile.right;
                let mut near = tile.right.wrapping_offset(PREFETCH_STEPS * tile.right_depth);
                let mut ahead = tile.ahead;
                // One pointer per three rows: an x86 address can add one or two strides to a register, which reaches the other
                // two. So 14 rows take 5 pointers instead of 14.
                let mut left = [tile.left; 5];
                for (group, pointer) in left.iter_mut().enumerate() {
                    *pointer = pointer.wrapping_offset(3 * group as isize * tile.left_row);
                }
                for _ in 0..tile.depth {
                    let mut columns = [$zero(); 2];
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        // SAFETY: the right panel has whole vectors at each step.
                        columns[VECTOR] = unsafe { $load(right.add(VECTOR * $lanes)) };
                        _mm_prefetch::<_MM_HINT_T0>(near.wrapping_add(VECTOR * $lanes).cast());
                    });
                    // Into L2 only: a whole block would not fit in L1 beside the left panel.
                    _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
                    unrolled!(ROW in 0..ROWS, at most 14 {
                        let place = if SIDE_BY_SIDE {
                            left[0].wrapping_add(ROW)
                        } else {
                            left[ROW / 3].wrapping_offset((ROW % 3) as isize * tile.left_row)
                        };
                        // SAFETY: the left panel has this row at each step.
                        let value = $splat(unsafe { *place });
                        unrolled!(VECTOR in 0..VECTORS, at most 2 {
                            sums[ROW][VECTOR] = $fused(value, columns[VECTOR], sums[ROW][VECTOR]);
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
                    let count = tile.columns - VECTOR * $lanes;
                    unrolled!(ROW in 0..ROWS, at most 14 {
                        let place = tile.output.wrapping_add(ROW * tile.output_row + VECTOR * $lanes);
                        let sum = sums[ROW][VECTOR];
                        // SAFETY: the output has this many columns in this row, and only this call accesses it.
                        unsafe {
                            if count >= $lanes {
                                $store(place, if tile.add { $add($load(place), sum) } else { sum });
                            } else {
                                let mask = ((1u32 << count) - 1) as $mask;
                                let sum = if tile.add { $add($load_some(mask, place), sum) } else { sum };
                                $store_some(place, mask, sum);
                            }
                        }
                    });
                });
            }
        }
    };
}

macro_rules! rows {
    ($vectors:literal) => {
        [
            compute_tile::<1, $vectors>,
            compute_tile::<2, $vectors>,
            compute_tile::<3, $vectors>,
            compute_tile::<4, $vectors>,
            compute_tile::<5, $vectors>,
            compute_tile::<6, $vectors>,
            compute_tile::<7, $vectors>,
            compute_tile::<8, $vectors>,
            compute_tile::<9, $vectors>,
            compute_tile::<10, $vectors>,
            compute_tile::<11, $vectors>,
            compute_tile::<12, $vectors>,
            compute_tile::<13, $vectors>,
            compute_tile::<14, $vectors>,
        ]
    };
}

kernels!(
    f32,
    16,
    __mmask16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_fmadd_ps,
    _mm512_maskz_loadu_ps,
    _mm512_mask_storeu_ps
);
kernels!(
    f64,
    8,
    __mmask8,
    _mm512_setzero_pd,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_fmadd_pd,
    _mm512_maskz_loadu_pd,
    _mm512_mask_storeu_pd
);
