//! Float micro-kernels of NEON. Its multiply-add can take one factor from a lane of a register, so one load of the left operand
//! provides the factors of several rows, if the panel is packed, or of several steps, if rows are read in place. Otherwise there
//! would be a load for every two multiply-adds.

#![expect(unsafe_code, reason = "panels are read and tiles written through pointers")]

use oarlock_cpu_base::simd::{FloatVector, LaneProducts};
use oarlock_cpu_base::unrolled;

use super::{GemmElement, GemmTile};

/// Rows of the largest tile: 12 rows by 2 vectors take 24 accumulators; with 2 vectors of the right panel and 3 of the left, 29 of
/// the 32 registers are in use.
const MAX_ROWS: usize = 12;

/// Steps between two updates of the pointers into packed panels.
const STEPS_AT_ONCE: usize = 4;

type TileSums<V> = [[V; 2]; MAX_ROWS];

/// Computes a tile. Rows that are read in place are computed in an upper and a lower part, because each needs a register for its
/// factors besides its accumulators.
///
/// # Safety
///
/// As for [`super::GemmMicroKernel`].
#[inline(always)]
unsafe fn compute_tile<
    T: GemmElement,
    V: LaneProducts<T>,
    const ROWS: usize,
    const UPPER: usize,
    const LOWER: usize,
    const VECTORS: usize,
>(
    tile: &GemmTile<T>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if tile.left_row != 1 {
            store_sums::<T, V, UPPER, VECTORS>(tile, 0, sum_rows::<T, V, UPPER, VECTORS>(tile, 0));
            store_sums::<T, V, LOWER, VECTORS>(tile, UPPER, sum_rows::<T, V, LOWER, VECTORS>(tile, UPPER));
            return;
        }
        let is_full = ROWS == MAX_ROWS && VECTORS == 2;
        let are_dense = tile.left_depth == ROWS as isize && tile.right_depth == (2 * V::LANES) as isize;
        let sums = if is_full && are_dense {
            sum_full_panels::<T, V, ROWS, VECTORS>(tile)
        } else {
            let mut sums = [[V::splat(T::default()); 2]; MAX_ROWS];
            let (mut left, mut right) = (tile.left, tile.right);
            for _ in 0..tile.depth {
                add_panel_step::<T, V, ROWS, VECTORS>(&mut sums, left, right);
                left = left.wrapping_offset(tile.left_depth);
                right = right.wrapping_offset(tile.right_depth);
            }
            sums
        };
        store_sums::<T, V, ROWS, VECTORS>(tile, 0, sums);
    }
}

/// The sums of a full tile of packed panels, whose steps follow each other without gaps: offsets are constants, and pointers advance
/// every few steps.
#[inline(always)]
unsafe fn sum_full_panels<T: GemmElement, V: LaneProducts<T>, const ROWS: usize, const VECTORS: usize>(
    tile: &GemmTile<T>,
) -> TileSums<V> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut sums = [[V::splat(T::default()); 2]; MAX_ROWS];
        let (mut left, mut right) = (tile.left, tile.right);
        for _ in 0..tile.depth / STEPS_AT_ONCE {
            unrolled!(STEP in 0..4, at most 4 {
                let (left, right) = (left.add(STEP * ROWS), right.add(STEP * 2 * V::LANES));
                add_panel_step::<T, V, ROWS, VECTORS>(&mut sums, left, right);
            });
            left = left.add(STEPS_AT_ONCE * ROWS);
            right = right.add(STEPS_AT_ONCE * 2 * V::LANES);
        }
        for _ in 0..tile.depth % STEPS_AT_ONCE {
            add_panel_step::<T, V, ROWS, VECTORS>(&mut sums, left, right);
            left = left.add(ROWS);
            right = right.add(2 * V::LANES);
        }
        sums
    }
}

/// Adds the products of one step of a packed left panel, whose rows are adjacent.
#[inline(always)]
unsafe fn add_panel_step<T: GemmElement, V: LaneProducts<T>, const ROWS: usize, const VECTORS: usize>(
    sums: &mut TileSums<V>,
    left: *const T,
    right: *const T,
) {
    // SAFETY: the caller guarantees the rows and whole vectors of columns.
    unsafe {
        let columns = load_columns::<T, V, VECTORS>(right);
        let mut factors = columns[0];
        unrolled!(ROW in 0..ROWS, at most 12 {
            // Fewer rows than lanes are loaded one by one, because nothing may follow them.
            if ROWS - ROW / V::LANES * V::LANES < V::LANES {
                let value = V::splat(*left.add(ROW));
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] = sums[ROW][VECTOR].add_product(columns[VECTOR], value);
                });
            } else {
                if ROW.is_multiple_of(V::LANES) {
                    factors = V::load(left.add(ROW));
                }
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] =
                        sums[ROW][VECTOR].add_product_of_lane(columns[VECTOR], factors, ROW % V::LANES);
                });
            }
        });
    }
}

/// The sums of some rows, from row `first` on, that are read in place.
#[inline(always)]
unsafe fn sum_rows<T: GemmElement, V: LaneProducts<T>, const ROWS: usize, const VECTORS: usize>(
    tile: &GemmTile<T>,
    first: usize,
) -> TileSums<V> {
    // SAFETY: the caller guarantees the rows at each step, and whole vectors of columns.
    unsafe {
        let left = tile.left.offset(first as isize * tile.left_row);
        let mut sums = [[V::splat(T::default()); 2]; MAX_ROWS];
        let whole = if tile.left_depth == 1 { tile.depth / (2 * V::LANES) * (2 * V::LANES) } else { 0 };
        if VECTORS == 2 && tile.right_depth == (2 * V::LANES) as isize {
            add_row_steps::<T, V, ROWS, VECTORS>(
                &mut sums,
                (left, tile.left_row),
                (tile.right, 2 * V::LANES as isize),
                whole,
            );
        } else {
            add_row_steps::<T, V, ROWS, VECTORS>(
                &mut sums,
                (left, tile.left_row),
                (tile.right, tile.right_depth),
                whole,
            );
        }
        for step in whole..tile.depth {
            let columns = load_columns::<T, V, VECTORS>(tile.right.offset(step as isize * tile.right_depth));
            unrolled!(ROW in 0..ROWS, at most 12 {
                let place = left.offset(ROW as isize * tile.left_row + step as isize * tile.left_depth);
                let value = V::splat(*place);
                unrolled!(VECTOR in 0..VECTORS, at most 2 {
                    sums[ROW][VECTOR] = sums[ROW][VECTOR].add_product(columns[VECTOR], value);
                });
            });
        }
        sums
    }
}

/// Adds the products of whole pairs of vectors of steps of rows whose steps are adjacent. Operands are given with the distances
/// between rows and between steps.
#[inline(always)]
unsafe fn add_row_steps<T: GemmElement, V: LaneProducts<T>, const ROWS: usize, const VECTORS: usize>(
    sums: &mut TileSums<V>,
    (left, left_row): (*const T, isize),
    (mut right, right_depth): (*const T, isize),
    steps: usize,
) {
    // SAFETY: the caller guarantees the rows at each step, and whole vectors of columns.
    unsafe {
        for step in (0..steps).step_by(2 * V::LANES) {
            // Two vectors for each row: one instruction loads both, and pointers advance half as often.
            let mut factors = [[V::splat(T::default()); 2]; MAX_ROWS];
            unrolled!(ROW in 0..ROWS, at most 12 {
                let place = left.offset(ROW as isize * left_row).add(step);
                factors[ROW] = [V::load(place), V::load(place.add(V::LANES))];
            });
            unrolled!(STEP in 0..8, at most 8 {
                if STEP < 2 * V::LANES {
                    let columns = load_columns::<T, V, VECTORS>(right);
                    unrolled!(ROW in 0..ROWS, at most 12 {
                        unrolled!(VECTOR in 0..VECTORS, at most 2 {
                            sums[ROW][VECTOR] = sums[ROW][VECTOR].add_product_of_lane(
                                columns[VECTOR],
                                factors[ROW][STEP / V::LANES],
                                STEP % V::LANES,
                            );
                        });
                    });
                    right = right.wrapping_offset(right_depth);
                }
            });
        }
    }
}

#[inline(always)]
unsafe fn load_columns<T: GemmElement, V: FloatVector<T>, const VECTORS: usize>(right: *const T) -> [V; 2] {
    // SAFETY: the caller guarantees whole vectors.
    unsafe {
        let mut columns = [V::load(right); 2];
        unrolled!(VECTOR in 0..VECTORS, at most 2 { columns[VECTOR] = V::load(right.add(VECTOR * V::LANES)); });
        columns
    }
}

/// Stores the sums of some rows, from row `first` on.
#[inline(always)]
unsafe fn store_sums<T: GemmElement, V: FloatVector<T>, const ROWS: usize, const VECTORS: usize>(
    tile: &GemmTile<T>,
    first: usize,
    sums: TileSums<V>,
) {
    unrolled!(VECTOR in 0..VECTORS, at most 2 {
        let count = tile.columns - VECTOR * V::LANES;
        unrolled!(ROW in 0..ROWS, at most 12 {
            let place = tile.output.wrapping_add((first + ROW) * tile.output_row + VECTOR * V::LANES);
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

/// Generates the table of an element type. Each number of rows is followed by those of its upper and its lower part.
macro_rules! kernels {
    ($name:ident: $element:ident in $vector:ident, rows: [$($rows:literal = $upper:literal + $lower:literal),*]) => {
        pub(super) mod $name {
            use oarlock_cpu_base::simd::{FloatVector, $vector};

            use crate::tile::dot::dot_products;
            use crate::tile::{GemmMicroKernels, GemmTile};

            pub(crate) static MICRO_KERNELS: GemmMicroKernels<$element> = GemmMicroKernels {
                vector: $vector::LANES,
                tiles: &[
                    &[$(run_tile::<$rows, $upper, $lower, 1>),*],
                    &[$(run_tile::<$rows, $upper, $lower, 2>),*],
                ],
                dot: dot_products::<$element, $vector>,
            };

            unsafe fn run_tile<const ROWS: usize, const UPPER: usize, const LOWER: usize, const VECTORS: usize>(
                tile: &GemmTile<$element>,
            ) {
                // SAFETY: guaranteed by the caller.
                unsafe { super::compute_tile::<$element, $vector, ROWS, UPPER, LOWER, VECTORS>(tile) }
            }
        }
    };
    ($name:ident: $element:ident in $vector:ident) => {
        kernels!(
            $name: $element in $vector,
            rows: [
                1 = 1 + 0, 2 = 2 + 0, 3 = 3 + 0, 4 = 4 + 0, 5 = 5 + 0, 6 = 6 + 0,
                7 = 4 + 3, 8 = 4 + 4, 9 = 5 + 4, 10 = 5 + 5, 11 = 6 + 5, 12 = 6 + 6
            ]
        );
    };
}

kernels!(neon_f32: f32 in NeonF32Vector);
kernels!(neon_f64: f64 in NeonF64Vector);
