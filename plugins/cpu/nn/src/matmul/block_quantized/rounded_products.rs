//! Products of 4-bit integers with rows that are rounded to 8 bits, which a call permits with `accuracy_level` 4. They take a quarter of
//! the instructions of products of floats, so that reading the weights becomes the limit.
//!
//! The low and the high half of each byte of weights are each multiplied with a byte of the row. The sum of the eight products of a
//! word is exact.

#![expect(unsafe_code, reason = "instructions that multiply bytes are only there where a machine has them")]

use std::arch::x86_64::*;

use oarlock_cpu_base::isa::{FmaTarget, Isa, SimdTarget, SimdTask};

use super::columns::ChunkProducts;
use super::panels::{PanelBlock, PanelProducts, UNIT_WORDS};
use super::rounded_chunk::{RoundedChunk, WORD_ELEMENTS};

/// The words of a zmm and of a ymm.
pub(super) const ZMM_WORDS: usize = 16;
pub(super) const YMM_WORDS: usize = 8;

/// Multiplies with VNNI of AVX-512. Its tasks run only where the machine has it.
pub(super) struct VnniProducts;

/// Multiplies with AVX-VNNI. Its tasks run only where the machine has it.
pub(super) struct AvxVnniProducts;

/// Multiplies with AVX2. Its tasks run only where the machine has it.
pub(super) struct Avx2Products;

/// Implements products in vectors of so many words. `$add_products` adds those of the halves of each word and the bytes of a row to
/// sums, which `$finish` makes sums of 32 bits.
macro_rules! rounded_products {
    (
        $name:ident, $words:expr, $has_eight_rows:literal, $unit_words:expr, $load:ident, $zero:ident, $splat_byte:ident, $splat_word:ident,
        $and:ident, $shift:ident, $add:ident, $floats:ident, $splat_float:ident, $convert:ident, $multiply:ident,
        $add_product:ident, $subtract_product:ident, $add_products:ident, $finish:expr, $run_task:item
    ) => {
        impl ChunkProducts<$words> for $name {
            const WORD_ELEMENTS: usize = WORD_ELEMENTS;

            type RowChunk = RoundedChunk<$words>;

            #[inline(always)]
            fn fill_chunk(chunk: &mut RoundedChunk<$words>, elements: &[f32], block: usize) {
                chunk.round_elements(elements, block);
            }

            #[inline(always)]
            fn multiply_words<T: SimdTarget, const ROWS: usize>(
                words: [u32; $words],
                rows: [&RoundedChunk<$words>; ROWS],
            ) -> [[f32; $words]; ROWS] {
                let mut sums = [[0f32; $words]; ROWS];
                // SAFETY: `run_task` runs this code only where the machine has the instructions. Arrays of so many words are read.
                unsafe {
                    let (words, mask) = ($load(words.as_ptr().cast()), $splat_byte(15));
                    let halves = [$and(words, mask), $and($shift::<4>(words), mask)];
                    for row in 0..ROWS {
                        let bytes = [rows[row].low.as_ptr(), rows[row].high.as_ptr()];
                        let bytes = [$load(bytes[0].cast()), $load(bytes[1].cast())];
                        let products = $finish($add_products($zero(), halves, bytes));
                        let products: [i32; $words] = std::mem::transmute(products);
                        for lane in 0..$words {
                            sums[row][lane] = products[lane] as f32;
                        }
                    }
                }
                sums
            }

            #[inline(always)]
            fn word_sums(chunk: &RoundedChunk<$words>) -> &[f32; $words] {
                &chunk.sums
            }

            #[inline(always)]
            fn word_scales(chunk: &RoundedChunk<$words>) -> Option<&[f32; $words]> {
                Some(&chunk.scales)
            }

            $run_task
        }

        impl PanelProducts<$words> for $name {
            const HAS_EIGHT_ROWS: bool = $has_eight_rows;

            type Sums = $floats;

            #[inline(always)]
            fn load_sums(sums: &[f32; $words]) -> $floats {
                // SAFETY: both are as many floats, for which all bits are valid.
                unsafe { std::mem::transmute(*sums) }
            }

            #[inline(always)]
            fn store_sums(sums: $floats) -> [f32; $words] {
                // SAFETY: as above.
                unsafe { std::mem::transmute(sums) }
            }

            #[inline(always)]
            fn add_block<const ROWS: usize>(
                block: PanelBlock<'_, $words>,
                rows: [&RoundedChunk<$words>; ROWS],
                first: usize,
                sums: &mut [$floats; ROWS],
            ) {
                assert!(first + block.words.len() <= $words, "a block of a chunk");
                // SAFETY: `run_task` runs this code only where the machine has the instructions. Words of the block are read, whose
                // index is within a chunk, and arrays of so many floats.
                unsafe {
                    let (mask, mut totals) = ($splat_byte(15), [$zero(); ROWS]);
                    for (unit, words) in block.words.as_chunks::<UNIT_WORDS>().0.iter().enumerate() {
                        let mut units = [$zero(); ROWS];
                        for (place, words) in words[..$unit_words].iter().enumerate() {
                            let columns = $load(words.as_ptr().cast());
                            let halves = [$and(columns, mask), $and($shift::<4>(columns), mask)];
                            let at = first + unit * UNIT_WORDS + place;
                            for row in 0..ROWS {
                                let low = rows[row].low.as_ptr().add(at).cast::<i32>().read_unaligned();
                                let high = rows[row].high.as_ptr().add(at).cast::<i32>().read_unaligned();
                                units[row] =
                                    $add_products(units[row], halves, [$splat_word(low), $splat_word(high)]);
                            }
                        }
                        for row in 0..ROWS {
                            totals[row] = $add(totals[row], $finish(units[row]));
                        }
                    }
                    let (scales, zeros) = (Self::load_sums(block.scales), Self::load_sums(block.zeros));
                    for row in 0..ROWS {
                        let own = $multiply($splat_float(rows[row].scales[first]), scales);
                        let sum = $splat_float(rows[row].sums[first]);
                        let products = $subtract_product(zeros, sum, $convert(totals[row]));
                        sums[row] = $add_product(products, own, sums[row]);
                    }
                }
            }
        }
    };
}

/// [`rounded_products`] in vectors of AVX2.
macro_rules! ymm_products {
    ($name:ident, $add_products:ident, $finish:expr, $run_task:item) => {
        rounded_products!(
            $name,
            YMM_WORDS,
            false,
            // If the compiler knew the number of words, it would load the bytes of all rows before it multiplies, and spill them.
            std::hint::black_box(UNIT_WORDS),
            _mm256_loadu_si256,
            _mm256_setzero_si256,
            _mm256_set1_epi8,
            _mm256_set1_epi32,
            _mm256_and_si256,
            _mm256_srli_epi16,
            _mm256_add_epi32,
            __m256,
            _mm256_set1_ps,
            _mm256_cvtepi32_ps,
            _mm256_mul_ps,
            _mm256_fmadd_ps,
            _mm256_fnmadd_ps,
            $add_products,
            $finish,
            $run_task
        );
    };
}

rounded_products!(
    VnniProducts,
    ZMM_WORDS,
    true,
    UNIT_WORDS,
    _mm512_loadu_si512,
    _mm512_setzero_si512,
    _mm512_set1_epi8,
    _mm512_set1_epi32,
    _mm512_and_si512,
    _mm512_srli_epi16,
    _mm512_add_epi32,
    __m512,
    _mm512_set1_ps,
    _mm512_cvtepi32_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    _mm512_fnmadd_ps,
    add_zmm_products,
    std::convert::identity,
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        assert!(has_vnni(isa), "a level for this code");
        // SAFETY: the machine has the instructions.
        unsafe { run_vnni(task) }
    }
);

ymm_products!(
    AvxVnniProducts,
    add_avx_vnni_products,
    std::convert::identity,
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        assert!(isa == Isa::AvxVnni && isa.is_available(), "a level for this code");
        // SAFETY: the machine has the instructions.
        unsafe { run_avx_vnni(task) }
    }
);

ymm_products!(
    Avx2Products,
    add_ymm_products,
    add_neighbors,
    fn run_task(isa: Isa, task: impl SimdTask<Output = ()>) {
        assert!(isa >= Isa::Avx2, "a level for this code");
        isa.vectorize(task);
    }
);

/// # Safety
///
/// The machine has VNNI.
#[inline(always)]
unsafe fn add_zmm_products(sums: __m512i, halves: [__m512i; 2], bytes: [__m512i; 2]) -> __m512i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let low = _mm512_dpbusd_epi32(sums, halves[0], bytes[0]);
        _mm512_dpbusd_epi32(low, halves[1], bytes[1])
    }
}

/// # Safety
///
/// The machine has AVX-VNNI.
#[inline(always)]
unsafe fn add_avx_vnni_products(sums: __m256i, halves: [__m256i; 2], bytes: [__m256i; 2]) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let low = _mm256_dpbusd_avx_epi32(sums, halves[0], bytes[0]);
        _mm256_dpbusd_avx_epi32(low, halves[1], bytes[1])
    }
}

/// Adds to sums of 16 bits. A unit adds the products of eight pairs, each at most 2 · 15 · 127, so that they cannot overflow, nor can
/// those of `vpmaddubsw`, which would saturate.
///
/// # Safety
///
/// The machine has AVX2.
#[inline(always)]
unsafe fn add_ymm_products(sums: __m256i, halves: [__m256i; 2], bytes: [__m256i; 2]) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe {
        let low = _mm256_add_epi16(sums, _mm256_maddubs_epi16(halves[0], bytes[0]));
        _mm256_add_epi16(low, _mm256_maddubs_epi16(halves[1], bytes[1]))
    }
}

/// # Safety
///
/// The machine has AVX2.
#[inline(always)]
unsafe fn add_neighbors(sums: __m256i) -> __m256i {
    // SAFETY: the caller guarantees the instructions.
    unsafe { _mm256_madd_epi16(sums, _mm256_set1_epi16(1)) }
}

/// True if [`VnniProducts`] may be used.
pub(super) fn has_vnni(isa: Isa) -> bool {
    isa >= Isa::Avx512 && is_x86_feature_detected!("avx512vnni")
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
fn run_vnni(task: impl SimdTask<Output = ()>) {
    task.run_on_target::<FmaTarget>();
}

#[target_feature(enable = "avxvnni,avx2,fma,f16c")]
fn run_avx_vnni(task: impl SimdTask<Output = ()>) {
    task.run_on_target::<FmaTarget>();
}
