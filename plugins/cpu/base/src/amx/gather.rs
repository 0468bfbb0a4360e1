//! Gathers rows for AMX. `tileloadd` needs rows at a fixed stride, so all others are copied to a buffer first.

#![expect(unsafe_code, reason = "rows are copied through pointers, with instructions a machine may lack")]

use std::arch::x86_64::*;

use crate::tile_block::TILE_ROW_BYTES;

/// Rows assembled from parts of equal length. `sources` points to the first parts of all rows, then to all second parts, and so on;
/// each part begins `skip` bytes after its pointer.
pub struct GatheredRows {
    pub sources: *const *const u8,
    pub rows: usize,
    pub parts: usize,
    pub length: usize,
    pub skip: usize,
    /// XORed into each byte: 0x80 maps signed bytes to unsigned ones with an offset of 128.
    pub sign_flip: u8,
}

impl GatheredRows {
    /// Copies all rows, `stride` bytes apart, and pads their last cache line with zeros.
    ///
    /// # Safety
    ///
    /// The machine has AVX-512, all parts are readable, and `target` has room for all rows in whole cache lines.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn copy_rows(&self, target: *mut u8, stride: usize) {
        let Self { sources, rows, parts, length, skip, sign_flip } = *self;
        let sign_flip = _mm512_set1_epi8(sign_flip.cast_signed());
        let (whole, rest) = (length / TILE_ROW_BYTES * TILE_ROW_BYTES, line_mask(length % TILE_ROW_BYTES));
        let end = parts * length;
        for row in 0..rows {
            // SAFETY: the caller vouches for the parts and for the room in `target`; masked-out bytes are not accessed.
            unsafe {
                let row_target = target.add(row * stride);
                for part in 0..parts {
                    let source = (*sources.add(part * rows + row)).add(skip);
                    let target = row_target.add(part * length);
                    for place in (0..whole).step_by(TILE_ROW_BYTES) {
                        let line = _mm512_loadu_si512(source.add(place).cast());
                        _mm512_storeu_si512(target.add(place).cast(), _mm512_xor_si512(line, sign_flip));
                    }
                    if rest != 0 {
                        let line = _mm512_maskz_loadu_epi8(rest, source.wrapping_add(whole).cast());
                        let line = _mm512_xor_si512(line, sign_flip);
                        _mm512_mask_storeu_epi8(target.wrapping_add(whole).cast(), rest, line);
                    }
                }
                let last = end / TILE_ROW_BYTES * TILE_ROW_BYTES;
                if last < end {
                    let zeros = _mm512_setzero_si512();
                    _mm512_mask_storeu_epi8(row_target.add(last).cast(), !line_mask(end - last), zeros);
                }
            }
        }
    }
}

/// A mask of the first `bytes` bytes of a line, for fewer than 64: a shift by 64 would overflow.
fn line_mask(bytes: usize) -> u64 {
    (1 << bytes) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    #[test]
    fn rows_are_put_together_from_parts_and_filled_up() {
        if Isa::best_level() < Isa::Avx512 {
            return;
        }
        let bytes: Vec<u8> = (0..1000u32).map(|index| (index * 7 + index / 256) as u8).collect();
        for (rows, parts, length, skip, sign_flip) in
            [(3, 2, 64, 0, 0), (2, 3, 20, 4, 0x80), (1, 1, 130, 1, 0x80), (4, 9, 8, 0, 0), (2, 2, 32, 5, 0)]
        {
            let starts: Vec<usize> = (0..rows * parts).map(|index| index * 13 % 400).collect();
            let sources: Vec<*const u8> = starts.iter().map(|start| bytes[*start..].as_ptr()).collect();
            let whole = (parts * length).next_multiple_of(TILE_ROW_BYTES);
            let stride = whole + 3;
            let mut target = vec![0xaa; rows * stride];
            let gathered = GatheredRows { sources: sources.as_ptr(), rows, parts, length, skip, sign_flip };
            // SAFETY: the machine has AVX-512, the bytes that are read follow the starts, and there is room for all rows.
            unsafe { gathered.copy_rows(target.as_mut_ptr(), stride) };
            for (row, found) in target.chunks(stride).enumerate() {
                let part = |part: usize| &bytes[starts[part * rows + row] + skip..][..length];
                let mut expected: Vec<u8> = (0..parts).flat_map(part).map(|byte| byte ^ sign_flip).collect();
                expected.resize(whole, 0);
                expected.resize(stride, 0xaa);
                assert!(found == expected, "row {row} of {rows} of {parts} parts of {length}");
            }
        }
    }
}
