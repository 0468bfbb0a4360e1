//! Micro-kernels in plain Rust, which the compiler vectorizes for the instruction set. They are for types and processors without
//! specific kernels.

#![expect(unsafe_code, reason = "panels are read and tiles written through pointers")]

use oarlock_cpu_base::isa::Isa;

use super::{DotRows, GemmElement, GemmMicroKernel, GemmMicroKernels, GemmTile};

/// The kernels for any processor. 4 rows by 8 columns of 4-byte elements are 8 xmm accumulators, which leaves 8 of the 16 registers
/// for operands.
pub(super) fn baseline_kernels<T: GemmElement>() -> &'static GemmMicroKernels<T> {
    struct BaselineTable<T>(T);
    impl<T: GemmElement> BaselineTable<T> {
        const ROWS: &'static [GemmMicroKernel<T>] = &[
            compute_tile::<T, 1, 8>,
            compute_tile::<T, 2, 8>,
            compute_tile::<T, 3, 8>,
            compute_tile::<T, 4, 8>,
        ];
        const KERNELS: &'static GemmMicroKernels<T> =
            &GemmMicroKernels { vector: 8, tiles: &[Self::ROWS], dot: dot_products::<T> };
    }
    BaselineTable::<T>::KERNELS
}

/// The kernels for an instruction set that the machine has. A tile is always 4 rows by 2 vectors of 4-byte elements, that is, 8
/// accumulators, so its width grows with the vectors.
#[cfg(target_arch = "x86_64")]
pub(super) fn best_kernels<T: GemmElement>(isa: Isa) -> &'static GemmMicroKernels<T> {
    struct VectorizedTable<T>(T);
    impl<T: GemmElement> VectorizedTable<T> {
        const SSE41_ROWS: &'static [GemmMicroKernel<T>] =
            &[sse41_tile::<T, 1>, sse41_tile::<T, 2>, sse41_tile::<T, 3>, sse41_tile::<T, 4>];
        const SSE41: &'static GemmMicroKernels<T> =
            &GemmMicroKernels { vector: 8, tiles: &[Self::SSE41_ROWS], dot: sse41_dot::<T> };
        #[cfg(x86_vectors)]
        const AVX2_ROWS: &'static [GemmMicroKernel<T>] =
            &[avx2_tile::<T, 1>, avx2_tile::<T, 2>, avx2_tile::<T, 3>, avx2_tile::<T, 4>];
        #[cfg(x86_vectors)]
        const AVX2: &'static GemmMicroKernels<T> =
            &GemmMicroKernels { vector: 16, tiles: &[Self::AVX2_ROWS], dot: avx2_dot::<T> };
        #[cfg(x86_vectors)]
        const AVX512_ROWS: &'static [GemmMicroKernel<T>] =
            &[avx512_tile::<T, 1>, avx512_tile::<T, 2>, avx512_tile::<T, 3>, avx512_tile::<T, 4>];
        #[cfg(x86_vectors)]
        const AVX512: &'static GemmMicroKernels<T> =
            &GemmMicroKernels { vector: 32, tiles: &[Self::AVX512_ROWS], dot: avx512_dot::<T> };
    }
    match isa {
        Isa::Sse41 => VectorizedTable::<T>::SSE41,
        #[cfg(x86_vectors)]
        Isa::Avx2 | Isa::AvxVnni => VectorizedTable::<T>::AVX2,
        #[cfg(x86_vectors)]
        Isa::Avx512 | Isa::Amx => VectorizedTable::<T>::AVX512,
        _ => baseline_kernels(),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn best_kernels<T: GemmElement>(_isa: Isa) -> &'static GemmMicroKernels<T> {
    baseline_kernels()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1,ssse3")]
unsafe fn sse41_tile<T: GemmElement, const ROWS: usize>(tile: &GemmTile<T>) {
    // SAFETY: the caller keeps the promises of `GemmMicroKernel`.
    unsafe { self::compute_tile::<T, ROWS, 8>(tile) }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_tile<T: GemmElement, const ROWS: usize>(tile: &GemmTile<T>) {
    // SAFETY: the caller keeps the promises of `GemmMicroKernel`.
    unsafe { self::compute_tile::<T, ROWS, 16>(tile) }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512_tile<T: GemmElement, const ROWS: usize>(tile: &GemmTile<T>) {
    // SAFETY: the caller keeps the promises of `GemmMicroKernel`.
    unsafe { self::compute_tile::<T, ROWS, 32>(tile) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1,ssse3")]
unsafe fn sse41_dot<T: GemmElement>(product: &DotRows<T>, sums: &mut [T]) {
    // SAFETY: guaranteed by the caller.
    unsafe { dot_products(product, sums) }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2_dot<T: GemmElement>(product: &DotRows<T>, sums: &mut [T]) {
    // SAFETY: guaranteed by the caller.
    unsafe { dot_products(product, sums) }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn avx512_dot<T: GemmElement>(product: &DotRows<T>, sums: &mut [T]) {
    // SAFETY: guaranteed by the caller.
    unsafe { dot_products(product, sums) }
}

#[inline(always)]
unsafe fn dot_products<T: GemmElement>(product: &DotRows<T>, sums: &mut [T]) {
    for (row, sum) in sums.iter_mut().enumerate() {
        let right = product.right.wrapping_add(row * product.right_row);
        // SAFETY: the caller guarantees the range and this row.
        *sum = unsafe { dot_product(product.left, right, product.depth) };
    }
}

#[inline(always)]
unsafe fn dot_product<T: GemmElement>(left: *const T, right: *const T, count: usize) -> T {
    // 64 accumulators of 4 bytes are 4 zmm or 8 ymm registers: enough independent chains to hide the latency of an addition.
    const LANES: usize = 64;
    let mut sums = [T::default(); LANES];
    let whole = count / LANES * LANES;
    for block in (0..whole).step_by(LANES) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the caller guarantees `count` elements on both sides; the right one may have any alignment.
            let (left, right) =
                unsafe { (*left.add(block + lane), right.add(block + lane).read_unaligned()) };
            *sum = sum.add_product::<false>(left, right);
        }
    }
    for (place, sum) in (whole..count).zip(&mut sums) {
        // SAFETY: as above.
        let (left, right) = unsafe { (*left.add(place), right.add(place).read_unaligned()) };
        *sum = sum.add_product::<false>(left, right);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] = sums[lane].plus(sums[lane + half]);
        }
        half /= 2;
    }
    sums[0]
}

#[inline(always)]
unsafe fn compute_tile<T: GemmElement, const ROWS: usize, const COLUMNS: usize>(tile: &GemmTile<T>) {
    let mut sums = [[T::default(); COLUMNS]; ROWS];
    let (mut left, mut right) = (tile.left, tile.right);
    for _ in 0..tile.depth {
        // SAFETY: the panel has a whole vector at each step.
        let columns = unsafe { right.cast::<[T; COLUMNS]>().read_unaligned() };
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the left panel has this row at each step.
            let value = unsafe { left.offset(row as isize * tile.left_row).read() };
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.add_product::<false>(value, column);
            }
        }
        left = left.wrapping_offset(tile.left_depth);
        right = right.wrapping_offset(tile.right_depth);
    }
    for (row, sums) in sums.iter().enumerate() {
        // SAFETY: the output has this row, of this many columns, and only this call accesses it.
        let output =
            unsafe { std::slice::from_raw_parts_mut(tile.output.add(row * tile.output_row), tile.columns) };
        for (output, sum) in output.iter_mut().zip(sums) {
            *output = if tile.add { output.plus(*sum) } else { *sum };
        }
    }
}
