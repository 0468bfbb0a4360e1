//! A table of 256 bytes, and the lookup of many bytes in it.

#![cfg_attr(
    x86_vectors,
    expect(unsafe_code, reason = "instructions that look up bytes are only there where a machine has them")
)]

#[cfg(x86_vectors)]
use std::arch::x86_64::*;

use oarlock_cpu_base::isa::Isa;

/// The values of a byte.
pub(super) const VALUES: usize = 256;
/// Bytes of a zmm.
#[cfg(x86_vectors)]
const ZMM_BYTES: usize = 64;

/// Looks up each byte in a table.
pub(super) fn look_up_bytes(isa: Isa, table: &[u8; VALUES], from: &[u8], to: &mut [u8]) {
    #[cfg(x86_vectors)]
    if isa >= Isa::Avx512 {
        let (from, rest) = from.as_chunks::<ZMM_BYTES>();
        let (to, rest_to) = to.as_chunks_mut::<ZMM_BYTES>();
        // SAFETY: the machine has the instructions of the level.
        unsafe { look_up_vectors(table, from, to) };
        return look_up_each(table, rest, rest_to);
    }
    let _ = isa;
    look_up_each(table, from, to);
}

fn look_up_each(table: &[u8; VALUES], from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = table[usize::from(*from)];
    }
}

/// Looks up the low four bits in each sixteenth of the table, and selects one of the results by the high four bits.
#[cfg(x86_vectors)]
#[target_feature(enable = "avx512f,avx512bw")]
fn look_up_vectors(table: &[u8; VALUES], from: &[[u8; ZMM_BYTES]], to: &mut [[u8; ZMM_BYTES]]) {
    let mut rows = [_mm512_setzero_si512(); 16];
    for (row, bytes) in rows.iter_mut().zip(table.as_chunks::<16>().0) {
        // SAFETY: the row has 16 bytes.
        *row = _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) });
    }
    for (from, to) in from.iter().zip(to) {
        // SAFETY: the array has as many bytes as the vector.
        let bytes = unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
        let low = _mm512_and_si512(bytes, _mm512_set1_epi8(15));
        let has_bit = |bit: i8| _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(bit));
        let [first, second, third, fourth] = [has_bit(16), has_bit(32), has_bit(64), has_bit(-128)];
        let pair = |row: usize| {
            let [even, odd] = [rows[row], rows[row + 1]].map(|row| _mm512_shuffle_epi8(row, low));
            _mm512_mask_blend_epi8(first, even, odd)
        };
        let four = |row: usize| _mm512_mask_blend_epi8(second, pair(row), pair(row + 2));
        let eight = |row: usize| _mm512_mask_blend_epi8(third, four(row), four(row + 4));
        let found = _mm512_mask_blend_epi8(fourth, eight(0), eight(8));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), found) };
    }
}
