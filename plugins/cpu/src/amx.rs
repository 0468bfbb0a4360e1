//! The unit of a processor that multiplies whole matrices, AMX: eight registers of it hold a tile each, sixteen lines of 64
//! bytes. The compiler has no names for them on stable Rust, so they are reached by their instructions.
//!
//! Sums of 32 bits are computed for up to 32 rows and 32 columns at a time: four tiles of them, to which a step adds the
//! products of two tiles of left rows, a line of each, with two tiles of right columns.

#![expect(unsafe_code, reason = "the registers are only reached by instructions that a machine may lack")]

mod gather;

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::marker::PhantomData;
use std::sync::OnceLock;

pub(crate) use gather::Gathered;

/// Lines of a tile, and bytes of a line.
pub(crate) const LINES: usize = 16;
pub(crate) const LINE: usize = 64;

/// The most rows and columns that are computed at a time.
pub(crate) const MOST: usize = 2 * LINES;

/// Whether the machine has the unit, for bf16 and for bytes, and the system lets this process use its registers. They are large,
/// so a process has to ask before its first use of them.
pub(crate) fn is_permitted() -> bool {
    static PERMITTED: OnceLock<bool> = OnceLock::new();
    *PERMITTED.get_or_init(|| has_unit() && permit())
}

fn has_unit() -> bool {
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    const BYTES: u32 = 1 << 25;
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & (BF16 | TILES | BYTES) == BF16 | TILES | BYTES
}

#[cfg(target_os = "linux")]
fn permit() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers. A system that does not know it says so.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn permit() -> bool {
    false
}

/// The registers of this thread, ready to be used as long as this lives.
pub(crate) struct Tiles(PhantomData<*const ()>);

/// What each register holds, as the processor wants to be told.
#[repr(C, align(64))]
struct Shape {
    palette: u8,
    first_line: u8,
    reserved: [u8; 14],
    bytes: [u16; 16],
    lines: [u8; 16],
}

impl Tiles {
    /// Makes the registers ready.
    ///
    /// # Safety
    ///
    /// They are permitted, as [`is_permitted`] says.
    pub(crate) unsafe fn new() -> Self {
        let all = |value: u8| std::array::from_fn(|register| if register < 8 { value } else { 0 });
        let (bytes, lines) = (all(LINE as u8).map(u16::from), all(LINES as u8));
        let shape = Shape { palette: 1, first_line: 0, reserved: [0; 14], bytes, lines };
        // SAFETY: the caller vouches for the unit, and the shape is one that every such unit has.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shape, options(nostack, readonly)) };
        Self(PhantomData)
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the unit is there. What is in no use needs not be saved when the thread stops.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// Left rows and right columns that are multiplied.
pub(crate) struct Factors {
    /// Where the left rows begin, how many there are, and how many bytes they are apart. Rows up to a whole tile of them are
    /// read, and their sums are of no use.
    pub(crate) left: *const u8,
    pub(crate) rows: usize,
    pub(crate) stride: usize,
    /// For each four bytes of a row, those of all columns, of which there are one tile or two.
    pub(crate) right: *const u8,
    pub(crate) tiles: usize,
    /// How many lines each row has.
    pub(crate) lines: usize,
    /// What the sums begin with, for the most columns.
    pub(crate) start: *const u8,
}

/// The sums of all rows and columns.
#[repr(C, align(64))]
pub(crate) struct Sums<T>(pub(crate) [[T; MOST]; MOST]);

/// Whether so many rows, with so many steps of each sum, are worth it. Of fewer it takes time to read the right side, which
/// vectors do as fast.
pub(crate) fn pays(rows: usize, steps: usize) -> bool {
    const FEW_ROWS: usize = 4;
    rows > FEW_ROWS && steps > 0
}

/// How numbers are multiplied.
pub(crate) trait Product {
    /// What their sums are.
    type Sum;

    /// Computes the sums.
    ///
    /// # Safety
    ///
    /// The registers are ready on this thread, as [`Tiles`] makes them, the factors can be read and have lines, and there is room
    /// for the sums.
    unsafe fn multiply(factors: &Factors, sums: *mut Sums<Self::Sum>);
}

/// Pairs of bf16 on both sides.
pub(crate) struct Pairs;

/// Unsigned bytes on the left, and signed ones on the right.
pub(crate) struct Bytes;

/// Implements [`Product`] with an instruction.
macro_rules! product {
    ($product:ident, $sum:ty, $instruction:literal) => {
        impl Product for $product {
            type Sum = $sum;

            #[inline]
            unsafe fn multiply(factors: &Factors, sums: *mut Sums<$sum>) {
                let Factors { left, rows, stride, right, tiles, lines, start } = *factors;
                // Where there is one tile it is taken for both: that takes no longer than to wait for what is read.
                let below = if rows > LINES { left.wrapping_add(LINES * stride) } else { left };
                let beside = right.wrapping_add((tiles - 1) * LINE);
                // SAFETY: the caller vouches for the registers and for what is read, and there is room for all sums.
                unsafe {
                    asm!(
                        // All rows begin with the same line.
                        "tileloadd tmm0, [{start} + {none}]",
                        "tileloadd tmm1, [{start} + {none} + 64]",
                        "tileloadd tmm2, [{start} + {none}]",
                        "tileloadd tmm3, [{start} + {none} + 64]",
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
                        "dec {lines}",
                        "jnz 2b",
                        "tilestored [{sums} + {apart}], tmm0",
                        "tilestored [{sums} + {apart} + 64], tmm1",
                        "tilestored [{sums} + {apart} + 2048], tmm2",
                        "tilestored [{sums} + {apart} + 2112], tmm3",
                        left = inout(reg) left => _,
                        below = inout(reg) below => _,
                        right = inout(reg) right => _,
                        beside = inout(reg) beside => _,
                        lines = inout(reg) lines => _,
                        stride = in(reg) stride,
                        across = in(reg) tiles * LINE,
                        step = in(reg) tiles * LINES * LINE,
                        sums = in(reg) sums,
                        start = in(reg) start,
                        none = in(reg) 0usize,
                        apart = in(reg) MOST * size_of::<$sum>(),
                        out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                        out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                        options(nostack),
                    );
                }
            }
        }
    };
}

product!(Pairs, f32, "tdpbf16ps");
product!(Bytes, i32, "tdpbusd");

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the left rows and of the right columns, which begin at lines.
    #[derive(Clone, Copy)]
    #[repr(C, align(64))]
    struct Line([u8; LINE]);

    /// Computes the sums of some rows and tiles of columns, and compares them with those of `sum`, which is told the bytes of a
    /// row and, four by four, those of a column.
    fn check<P: Product>(
        (rows, tiles, lines): (usize, usize, usize),
        byte: impl Fn(usize) -> u8,
        start: [P::Sum; MOST],
        sum: impl Fn(P::Sum, &[u8], &[u8]) -> P::Sum,
    ) where
        P::Sum: Copy + Default + PartialEq + std::fmt::Debug,
    {
        if !is_permitted() {
            return;
        }
        let fill = |lines: usize, seed: usize| -> Vec<Line> {
            (0..lines)
                .map(|line| Line(std::array::from_fn(|place| byte(seed + line * LINE + place))))
                .collect()
        };
        // A line between the rows, so that they are not where the next one is expected to begin.
        let stride = lines + 1;
        let (left, right) = (fill(MOST * stride, 3), fill(lines * LINES * tiles, 70_001));
        let mut sums = Sums([[P::Sum::default(); MOST]; MOST]);
        let factors = Factors {
            left: left.as_ptr().cast(),
            rows,
            stride: stride * LINE,
            right: right.as_ptr().cast(),
            tiles,
            lines,
            start: start.as_ptr().cast(),
        };
        // SAFETY: the unit is permitted, and there are as many lines as the factors say.
        unsafe {
            let _registers = Tiles::new();
            P::multiply(&factors, &raw mut sums);
        }
        let bytes = |lines: &[Line]| lines.iter().flat_map(|line| line.0).collect::<Vec<_>>();
        let right = bytes(&right);
        for (row, sums) in sums.0.iter().enumerate().take(rows) {
            let left = bytes(&left[row * stride..][..lines]);
            for (column, found) in sums.iter().enumerate().take(tiles * LINES) {
                let quads = right.chunks_exact(tiles * LINE);
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
            check::<Bytes>(sizes, byte, start, |start, left, right| {
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
            check::<Pairs>(sizes, byte, start, |start, left, right| {
                let products =
                    numbers(left).into_iter().zip(numbers(right)).map(|(left, right)| left * right);
                start + products.sum::<f32>()
            });
        }
    }
}
