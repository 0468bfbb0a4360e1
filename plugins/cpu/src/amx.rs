//! The unit of a processor that multiplies whole matrices, AMX: eight registers of it hold a tile each, sixteen lines of 64
//! bytes. The compiler has no names for them on stable Rust, so they are reached by their instructions.
//!
//! The sums of a block are four tiles, to which a step adds the products of two tiles of rows, a line of each, with two tiles of
//! columns.

#![expect(unsafe_code, reason = "the registers are only reached by instructions that a machine may lack")]

mod gather;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::marker::PhantomData;
use std::sync::OnceLock;

pub(crate) use gather::GatheredRows;

use crate::row_blocks::{BLOCK_LINES, BlockOperands, LINE_BYTES, TILE_LINES};

/// Whether the machine has the unit, for bf16 and for bytes, and the system lets this process use its registers. They are large,
/// so a process has to ask before its first use of them.
pub(crate) fn is_amx_available() -> bool {
    static AMX_AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AMX_AVAILABLE.get_or_init(|| has_amx_unit() && request_tile_permission())
}

fn has_amx_unit() -> bool {
    const AMX_BF16_BIT: u32 = 1 << 22;
    const AMX_TILE_BIT: u32 = 1 << 24;
    const AMX_INT8_BIT: u32 = 1 << 25;
    __cpuid(0).eax >= 7
        && __cpuid_count(7, 0).edx & (AMX_BF16_BIT | AMX_TILE_BIT | AMX_INT8_BIT)
            == AMX_BF16_BIT | AMX_TILE_BIT | AMX_INT8_BIT
}

#[cfg(target_os = "linux")]
fn request_tile_permission() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers. A system that does not know it says so.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn request_tile_permission() -> bool {
    false
}

/// The registers of this thread, ready to be used as long as this lives.
pub(crate) struct TileRegisters(PhantomData<*const ()>);

/// What each register holds, as the processor wants to be told.
#[repr(C, align(64))]
struct TileConfig {
    palette: u8,
    first_line: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    lines: [u8; 16],
}

impl TileRegisters {
    /// Makes the registers ready.
    ///
    /// # Safety
    ///
    /// They are permitted, as [`is_amx_available`] says.
    pub(crate) unsafe fn new() -> Self {
        let all = |value: u8| std::array::from_fn(|register| if register < 8 { value } else { 0 });
        let (bytes, lines) = (all(LINE_BYTES as u8).map(u16::from), all(TILE_LINES as u8));
        let shape = TileConfig { palette: 1, first_line: 0, reserved: [0; 14], bytes, lines };
        // SAFETY: the caller vouches for the unit, and the shape is one that every such unit has.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shape, options(nostack, readonly)) };
        Self(PhantomData)
    }
}

impl Drop for TileRegisters {
    fn drop(&mut self) {
        // SAFETY: the unit is there. What is in no use needs not be saved when the thread stops.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// The sums of a block.
#[repr(C, align(64))]
pub(crate) struct TileAccumulators<T>(pub(crate) [[T; BLOCK_LINES]; BLOCK_LINES]);

/// How numbers are multiplied.
pub(crate) trait TileProduct {
    /// What their sums are.
    type Accumulator;

    /// Computes the sums of a block. Those of all rows begin with what stands in the first one.
    ///
    /// # Safety
    ///
    /// The registers are ready on this thread, as [`TileRegisters`] makes them; the rows and columns of the block can be read, and there
    /// are lines of them; and the sums can be written.
    unsafe fn multiply_block(block: &BlockOperands, sums: *mut TileAccumulators<Self::Accumulator>);
}

/// Pairs of bf16 on both sides.
pub(crate) struct Bf16Pairs;

/// Unsigned bytes on the left, and signed ones on the right.
pub(crate) struct UnsignedSignedBytes;

/// Implements [`TileProduct`] with an instruction.
macro_rules! product {
    ($product:ident, $sum:ty, $instruction:literal) => {
        impl TileProduct for $product {
            type Accumulator = $sum;

            #[inline]
            unsafe fn multiply_block(block: &BlockOperands, sums: *mut TileAccumulators<$sum>) {
                let BlockOperands { left, rows, stride, right, tiles, lines, soon, share } = *block;
                // Where there is one tile it is taken for both: that takes no longer than to wait for what is read.
                let below = if rows > TILE_LINES { left.wrapping_add(TILE_LINES * stride) } else { left };
                let beside = right.wrapping_add((tiles - 1) * LINE_BYTES);
                // SAFETY: the caller vouches for the registers, for what is read, and for the sums. What is asked for needs not
                // be there.
                unsafe {
                    asm!(
                        "xor {end:e}, {end:e}",
                        "tileloadd tmm0, [{sums} + {end}]",
                        "tileloadd tmm1, [{sums} + {end} + 64]",
                        "tileloadd tmm2, [{sums} + {end}]",
                        "tileloadd tmm3, [{sums} + {end} + 64]",
                        "mov {end}, {soon}",
                        "2:",
                        "tileloadd tmm6, [{right} + {across}]",
                        "tileloadd tmm4, [{left} + {stride}]",
                        concat!($instruction, " tmm0, tmm4, tmm6"),
                        "tileloadd tmm7, [{beside} + {across}]",
                        concat!($instruction, " tmm1, tmm4, tmm7"),
                        "tileloadd tmm5, [{below} + {stride}]",
                        concat!($instruction, " tmm2, tmm5, tmm6"),
                        concat!($instruction, " tmm3, tmm5, tmm7"),
                        "add {left}, 64",
                        "add {below}, 64",
                        "add {right}, {step}",
                        "add {beside}, {step}",
                        "add {end}, {share}",
                        "cmp {soon}, {end}",
                        "jae 4f",
                        "3:",
                        "prefetcht1 [{soon}]",
                        "add {soon}, 64",
                        "cmp {soon}, {end}",
                        "jb 3b",
                        "4:",
                        "dec {lines}",
                        "jnz 2b",
                        "mov {across:e}, 128",
                        "tilestored [{sums} + {across}], tmm0",
                        "tilestored [{sums} + {across} + 64], tmm1",
                        "tilestored [{sums} + {across} + 2048], tmm2",
                        "tilestored [{sums} + {across} + 2112], tmm3",
                        left = inout(reg) left => _,
                        below = inout(reg) below => _,
                        right = inout(reg) right => _,
                        beside = inout(reg) beside => _,
                        lines = inout(reg) lines => _,
                        stride = in(reg) stride,
                        across = inout(reg) tiles * LINE_BYTES => _,
                        step = in(reg) tiles * TILE_LINES * LINE_BYTES,
                        soon = inout(reg) soon => _,
                        share = in(reg) share,
                        end = out(reg) _,
                        sums = in(reg) sums,
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    );
                }
            }
        }
    };
}

product!(Bf16Pairs, f32, "tdpbf16ps");
product!(UnsignedSignedBytes, i32, "tdpbusd");

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the left rows and of the right columns, which begin at lines.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    struct AlignedLines([u8; LINE_BYTES]);

    /// Computes the sums of some rows and tiles of columns, and compares them with those of `sum`, which is told the bytes of a
    /// row and, four by four, those of a column.
    fn check_block_product<P: TileProduct>(
        (rows, tiles, lines): (usize, usize, usize),
        byte: impl Fn(usize) -> u8,
        start: [P::Accumulator; BLOCK_LINES],
        sum: impl Fn(P::Accumulator, &[u8], &[u8]) -> P::Accumulator,
    ) where
        P::Accumulator: Copy + PartialEq + std::fmt::Debug,
    {
        if !is_amx_available() {
            return;
        }
        let fill = |lines: usize, seed: usize| -> Vec<AlignedLines> {
            (0..lines)
                .map(|line| AlignedLines(std::array::from_fn(|place| byte(seed + line * LINE_BYTES + place))))
                .collect()
        };
        // A line between the rows, so that they are not where the next one is expected to begin.
        let stride = lines + 1;
        let (left, right) = (fill(BLOCK_LINES * stride, 0), fill(lines * TILE_LINES * tiles, 70_000));
        let mut sums = TileAccumulators([start; BLOCK_LINES]);
        let block = BlockOperands {
            left: left.as_ptr().cast(),
            rows,
            stride: stride * LINE_BYTES,
            right: right.as_ptr().cast(),
            tiles,
            lines,
            soon: right.as_ptr().cast(),
            share: 100 * (rows % 2),
        };
        // SAFETY: the unit is permitted, and there are as many lines as the block says.
        unsafe {
            let _registers = TileRegisters::new();
            P::multiply_block(&block, &raw mut sums);
        }
        let bytes = |lines: &[AlignedLines]| lines.iter().flat_map(|line| line.0).collect::<Vec<_>>();
        let right = bytes(&right);
        for (row, sums) in sums.0.iter().enumerate().take(rows) {
            let left = bytes(&left[row * stride..][..lines]);
            for (column, found) in sums.iter().enumerate().take(tiles * TILE_LINES) {
                let quads = right.chunks_exact(tiles * LINE_BYTES);
                let of_column: Vec<u8> = quads.flat_map(|quad| quad[4 * column..][..4].to_vec()).collect();
                let expected = sum(start[column], &left, &of_column);
                assert_eq!(*found, expected, "row {row}, column {column} of {rows}, {tiles}, {lines}");
            }
        }
    }

    const SIZES: [(usize, usize, usize); 7] =
        [(1, 1, 1), (5, 2, 3), (16, 1, 2), (17, 2, 1), (31, 1, 5), (32, 2, 1), (32, 2, 9)];

    #[test]
    fn unsigned_bytes_are_multiplied_with_signed_ones() {
        for sizes in SIZES {
            let byte = |place: usize| (place * 167 + place / 251) as u8;
            let start = std::array::from_fn(|column| column as i32 * 1_000_003 - 7);
            check_block_product::<UnsignedSignedBytes>(sizes, byte, start, |start, left, right| {
                let products = left
                    .iter()
                    .zip(right)
                    .map(|(left, right)| i32::from(*left) * i32::from(right.cast_signed()));
                start + products.sum::<i32>()
            });
        }
    }

    #[test]
    fn pairs_of_bf16_are_multiplied() {
        for sizes in SIZES {
            // Whole numbers of at most 7, whose sums are exact in any order.
            let number = |place: usize| ((place * 29 + place / 61) % 15) as f32 - 7.0;
            let byte = |place: usize| (number(place / 2).to_bits() >> 16).to_le_bytes()[place % 2];
            let start = std::array::from_fn(|column| column as f32 - 20.0);
            let numbers = |bytes: &[u8]| -> Vec<f32> {
                let halves =
                    bytes.chunks_exact(2).map(|half| u32::from(half[0]) << 16 | u32::from(half[1]) << 24);
                halves.map(f32::from_bits).collect()
            };
            check_block_product::<Bf16Pairs>(sizes, byte, start, |start, left, right| {
                let products =
                    numbers(left).into_iter().zip(numbers(right)).map(|(left, right)| left * right);
                start + products.sum::<f32>()
            });
        }
    }
}
