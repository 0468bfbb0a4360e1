//! Micro-kernels for AVX2 with FMA. A tile of 6 rows by 2 vectors takes 12 accumulators; with 2 vectors of the right panel and 1
//! broadcast element of the left, 15 of the 16 ymm registers are in use.
//!
//! The 12 chains also hide the latency of FMA: 4 cycles at 2 FMAs a cycle need at least 8.

#![expect(unsafe_code, reason = "panels are read and tiles written through pointers")]

/// Generates the module of a type from its lane count and intrinsics.
macro_rules! kernels {
    ($float:ident, $lanes:literal, $zero:ident, $splat:ident, $load:ident, $store:ident, $add:ident, $fused:ident) => {
        pub(crate) mod $float {
            use std::arch::x86_64::*;

            use super::super::{GemmMicroKernel, GemmMicroKernels, GemmTile};
use oarlock_cpu_base::unrolled;

use super::super::super::gemv::PREFETCH_DISTANCE;
use oarlock_cpu_base::prefetch::prefetch_l2;

            pub(crate) static MICRO_KERNELS: GemmMicroKernels<$float> =
                GemmMicroKernels { vector: $lanes, tiles: &[&ONE_VECTOR_TILES, &TWO_VECTOR_TILES], dot: dot_product };

            static ONE_VECTOR_TILES: [GemmMicroKernel<$float>; 6] = rows!(1);
            static TWO_VECTOR_TILES: [GemmMicroKernel<$float>; 6] = rows!(2);

            /// The right operand may have any alignment. Each FMA needs two loads, so at two loads a cycle one FMA starts per
            /// cycle: four accumulators cover its latency of 4 cycles.
            #[target_feature(enable = "avx2,fma")]
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
                    // Lanes are added pairwise, which rounds less than adding them one by one.
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

            #[target_feature(enable = "avx2,fma")]
            unsafe fn compute_tile<const ROWS: usize, const VECTORS: usize>(tile: &GemmTile<$float>) {
                let mut sums = [[$zero(); 2]; 6];
                let mut right = tile.right;
                // One pointer per three rows: an x86 address can add one or two strides to a register, which reaches the other
                // two. So 6 rows take 2 pointers instead of 6.
                let mut left = [tile.left, tile.left.wrapping_offset(3 * tile.left_row)];
                for _ in 0..tile.depth {
                    let mut columns = [$zero(); 2];
                    unrolled!(VECTOR in 0..VECTORS, at most 2 {
                        // SAFETY: the right panel has whole vectors at each step.
                        columns[VECTOR] = unsafe { $load(right.add(VECTOR * $lanes)) };
                    });
                    unrolled!(ROW in 0..ROWS, at most 6 {
                        let place = left[ROW / 3].wrapping_offset((ROW % 3) as isize * tile.left_row);
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
                }
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    let count = (tile.columns - VECTOR * $lanes).min($lanes);
                    unrolled!(ROW in 0..ROWS, at most 6 {
                        let place = tile.output.wrapping_add(ROW * tile.output_row + VECTOR * $lanes);
                        let sum = sums[ROW][VECTOR];
                        // SAFETY: the output has this many columns in this row, and only this call accesses it.
                        unsafe {
                            if count == $lanes {
                                $store(place, if tile.add { $add($load(place), sum) } else { sum });
                            } else {
                                let mut elements = [0.0; $lanes];
                                $store(elements.as_mut_ptr(), sum);
                                for (index, element) in elements[..count].iter().enumerate() {
                                    let place = place.add(index);
                                    *place = if tile.add { *place + element } else { *element };
                                }
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
        ]
    };
}

kernels!(
    f32,
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_fmadd_ps
);
kernels!(
    f64,
    4,
    _mm256_setzero_pd,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_fmadd_pd
);
