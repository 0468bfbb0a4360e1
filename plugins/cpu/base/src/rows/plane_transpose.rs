//! Transposes planes. Large planes are transposed tile by tile in SIMD registers, each of which contains 16 bytes of a line. Wider
//! registers transpose several tiles at once, which are neighbors in the output.

#![expect(unsafe_code, reason = "tiles are read and written through pointers")]

use std::marker::PhantomData;

use crate::device::Cpu;
use crate::isa::{Isa, SimdTarget, SimdTask};
use crate::rows::grain_for;
use crate::rows::output_parts::{OutputRows, parallel_for_parts};

/// Bytes of a line in a tile: unpack instructions interleave within 128 bits, in wider registers too.
const TILE_LINE_BYTES: usize = 16;

/// Elements on a side of a tile; 1 for element sizes that unpack instructions do not support. Callers use `const` blocks, since the
/// loops over a tile are only unrolled if this is a constant from the start.
const fn tile_side<E>() -> usize {
    match size_of::<E>() {
        size @ (1 | 2 | 4 | 8) => TILE_LINE_BYTES / size,
        _ => 1,
    }
}

/// Bytes on a side of a block, along lines of the input and of the output: two cache lines, which processors often fetch in pairs,
/// yet few enough lines that their pages all fit in the TLB.
const BLOCK_BYTES: usize = 128;

/// The minimum number of output lines in a block, so that short lines of the input are read in one piece.
const MIN_BLOCK_LINES: usize = 32;

/// A plane to transpose: element (row, column) of the output is element row + column · `stride` of the input.
pub struct PlaneTranspose<'a, T> {
    pub input: &'a [T],
    pub stride: usize,
    pub out: &'a mut [T],
    /// The distance between lines of the output.
    pub pitch: usize,
    pub rows: usize,
    pub columns: usize,
}

/// Transposes consecutive planes of `columns` lines of `rows` elements into as many planes of `rows` lines.
pub fn transpose_planes<E: Copy + Send + Sync>(
    cpu: &Cpu,
    from: &[E],
    to: &mut [E],
    rows: usize,
    columns: usize,
) {
    let size = (rows * columns).max(1);
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
        parallel_for_parts(cpu, rows, grain_for(columns), OutputRows::new(to, columns), |first, out| {
            let lines = out.len() / columns;
            PlaneTranspose { input: &from[first..], stride: rows, out, pitch: columns, rows: lines, columns }
                .transpose_plane(cpu.isa());
        });
    }
}

impl<E: Copy> PlaneTranspose<'_, E> {
    pub fn transpose_plane(self, isa: Isa) {
        let Self { stride, pitch, rows, columns, .. } = self;
        if rows == 0 || columns == 0 {
            return;
        }
        assert!(
            (columns - 1) * stride + rows <= self.input.len()
                && (rows - 1) * pitch + columns <= self.out.len(),
            "lines and columns of these sizes"
        );
        // Few channels, as in images: tiles would be mostly empty, but with constant strides the compiler interleaves in registers.
        match (columns, stride) {
            (2, _) if pitch == 2 => isa.vectorize(InterleavedPlane::<E, 2>(self)),
            (3, _) if pitch == 3 => isa.vectorize(InterleavedPlane::<E, 3>(self)),
            (4, _) if pitch == 4 => isa.vectorize(InterleavedPlane::<E, 4>(self)),
            (_, 2) => isa.vectorize(DeinterleavedPlane::<E, 2>(self)),
            (_, 3) => isa.vectorize(DeinterleavedPlane::<E, 3>(self)),
            (_, 4) => isa.vectorize(DeinterleavedPlane::<E, 4>(self)),
            (2.., _) if pitch == columns && columns < tile_side::<E>() && rows >= tile_side::<E>() => {
                isa.vectorize(NarrowPlane(self));
            }
            _ => self.transpose_in_tiles(isa),
        }
    }

    fn transpose_in_tiles(mut self, isa: Isa) {
        let Self { stride, rows, columns, .. } = self;
        let side = const { tile_side::<E>() };
        // A tile always reads 16 bytes of a line, even if there are fewer rows. Columns where that would read past the input are
        // copied element by element.
        let readable = (self.input.len() + stride).saturating_sub(side.max(rows)) / stride;
        let tiles = if side == 1 { 0 } else { columns.min(readable) / side };
        let begin = if tiles == 0 { 0 } else { columns.min(readable) };
        match isa {
            _ if tiles == 0 => {}
            #[cfg(x86_vectors)]
            Isa::Avx512 | Isa::Amx if tiles >= 4 => {
                isa.vectorize(PlaneTiles::<x86::Zmm, E>::new(&mut self, begin));
            }
            #[cfg(x86_vectors)]
            Isa::Avx2 | Isa::AvxVnni | Isa::Avx512 | Isa::Amx if tiles >= 2 => {
                isa.vectorize(PlaneTiles::<x86::Ymm, E>::new(&mut self, begin));
            }
            _ => isa.vectorize(PlaneTiles::<PortableTransposeVector, E>::new(&mut self, begin)),
        }
        for (row, line) in self.out.chunks_mut(self.pitch.max(1)).enumerate().take(rows) {
            for (column, cell) in line[..columns].iter_mut().enumerate().skip(begin) {
                *cell = self.input[row + column * stride];
            }
        }
    }
}

/// A plane of few columns, such as the channels of an image, to be interleaved without gaps.
struct InterleavedPlane<'a, E, const COLUMNS: usize>(PlaneTranspose<'a, E>);

impl<E: Copy, const COLUMNS: usize> SimdTask for InterleavedPlane<'_, E, COLUMNS> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let PlaneTranspose { input, stride, out, rows, .. } = self.0;
        let mut columns = [input; COLUMNS];
        for (index, column) in columns.iter_mut().enumerate() {
            *column = &input[index * stride..][..rows];
        }
        let (lines, _) = out.as_chunks_mut::<COLUMNS>();
        for (index, line) in lines.iter_mut().enumerate().take(rows) {
            for (cell, column) in line.iter_mut().zip(columns) {
                *cell = column[index];
            }
        }
    }
}

/// A plane whose columns are a small constant distance apart, such as an image with interleaved channels: each line of the output
/// is every `STRIDE`th element.
struct DeinterleavedPlane<'a, E, const STRIDE: usize>(PlaneTranspose<'a, E>);

impl<E: Copy, const STRIDE: usize> SimdTask for DeinterleavedPlane<'_, E, STRIDE> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let PlaneTranspose { input, out, pitch, rows, columns, .. } = self.0;
        for (row, line) in out.chunks_mut(pitch).enumerate().take(rows) {
            let (groups, rest) = input[row..].as_chunks::<STRIDE>();
            let (cells, last) = line[..columns].split_at_mut(columns.min(groups.len()));
            for (cell, group) in cells.iter_mut().zip(groups) {
                *cell = group[0];
            }
            // The last group may be incomplete, but has the elements that are needed.
            for (cell, element) in last.iter_mut().zip(rest) {
                *cell = *element;
            }
        }
    }
}

/// A plane with fewer columns than a tile and no fewer rows, whose output lines follow each other without gaps.
struct NarrowPlane<'a, E>(PlaneTranspose<'a, E>);

impl<E: Copy> SimdTask for NarrowPlane<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let PlaneTranspose { input, stride, out, rows, columns, .. } = self.0;
        let side = const { tile_side::<E>() };
        // A tile's lines spill into the following lines, which are written later, but must not spill past the last line.
        let end = rows - side.div_ceil(columns) + 1;
        for top in (0..rows).step_by(side) {
            let top = top.min(rows - side);
            let lines = side.min(end.saturating_sub(top));
            // SAFETY: the input has these columns, each with as many elements as a tile has lines, and `lines` lines of tiles from
            // this one on end within the plane.
            unsafe {
                let (input, out) =
                    (input.as_ptr().add(top).cast(), out.as_mut_ptr().add(top * columns).cast());
                let (stride, pitch) = (stride * size_of::<E>(), columns * size_of::<E>());
                transpose_tile::<PortableTransposeVector, E>((input, stride, columns), (out, pitch, lines));
            }
        }
        for (row, line) in out.chunks_exact_mut(columns).enumerate().take(rows).skip(end) {
            for (column, cell) in line.iter_mut().enumerate() {
                *cell = input[row + column * stride];
            }
        }
    }
}

/// Transposes the tiles of a plane with vectors `V`.
struct PlaneTiles<V, E> {
    input: *const E,
    out: *mut E,
    stride: usize,
    pitch: usize,
    rows: usize,
    columns: usize,
    vectors: PhantomData<V>,
}

impl<V: TransposeVector, E: Copy> PlaneTiles<V, E> {
    fn new(plane: &mut PlaneTranspose<'_, E>, columns: usize) -> Self {
        let PlaneTranspose { input, stride, out, pitch, rows, .. } = plane;
        Self {
            input: input.as_ptr(),
            out: out.as_mut_ptr(),
            stride: *stride,
            pitch: *pitch,
            rows: *rows,
            columns,
            vectors: PhantomData,
        }
    }
}

impl<V: TransposeVector, E: Copy> SimdTask for PlaneTiles<V, E> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { rows, columns, stride, pitch, .. } = self;
        let side = const { tile_side::<E>() };
        let (width, block) = (V::TILES * side, const { BLOCK_BYTES / size_of::<E>() });
        let lines = block.max(MIN_BLOCK_LINES);
        let blocks = (0..rows)
            .step_by(lines)
            .flat_map(|row| (0..columns).step_by(block).map(move |column| (row, column)));
        for (row, column) in blocks {
            for top in (row..rows.min(row + lines)).step_by(side) {
                // The last tiles overlap the previous ones, which is cheaper than a scalar remainder.
                let top = top.min(rows.saturating_sub(side));
                for left in (column..columns.min(column + block)).step_by(width) {
                    let left = left.min(columns - width);
                    // SAFETY: the plane has these columns, with 16 readable bytes each, and the output has these rows. The machine
                    // has the level for which this was called, and with it the instructions of the vectors.
                    unsafe {
                        let input = self.input.add(top + left * stride).cast();
                        let out = self.out.add(top * pitch + left).cast();
                        let (stride, pitch) = (stride * size_of::<E>(), pitch * size_of::<E>());
                        transpose_tile::<V, E>((input, stride, side), (out, pitch, rows.min(side)));
                    }
                }
            }
        }
    }
}

/// Transposes a tile whose columns are `stride` bytes apart, and writes its first lines `pitch` bytes apart. Elements of a line
/// past those of the columns are unspecified.
#[inline(always)]
unsafe fn transpose_tile<V: TransposeVector, E>(
    (input, stride, columns): (*const u8, usize, usize),
    (out, pitch, lines): (*mut u8, usize, usize),
) {
    let side = const { tile_side::<E>() };
    // SAFETY: the caller vouches for the memory and the instructions.
    unsafe {
        let mut tile = [V::load_lines(input, side * stride); TILE_LINE_BYTES];
        for (index, line) in tile.iter_mut().enumerate().take(side).skip(1) {
            *line = V::load_lines(input.add(index.min(columns - 1) * stride), side * stride);
        }
        // Each round rotates the bits of an element's position by one. After as many rounds as a line number has bits, rows and
        // columns are swapped.
        for _ in 0..side.ilog2() {
            tile = interleave_round::<V, E>(tile);
        }
        // With a constant number of lines, no line leaves its register before it is stored.
        if lines == side {
            for (index, line) in tile.into_iter().enumerate().take(side) {
                line.store_line(out.add(index * pitch));
            }
        } else {
            for (index, line) in tile.into_iter().enumerate().take(lines) {
                line.store_line(out.add(index * pitch));
            }
        }
    }
}

/// Interleaves the elements of lines that are half a tile apart. If the bits of an element's position are those of its line
/// followed by those of its column, this rotates them by one. The lines are written out instead of looped over, because otherwise
/// those of the largest tiles might not stay in registers.
#[inline(always)]
unsafe fn interleave_round<V: TransposeVector, E>(before: [V; TILE_LINE_BYTES]) -> [V; TILE_LINE_BYTES] {
    let half = const { tile_side::<E>() / 2 };
    let mut tile = before;
    macro_rules! interleave {
        ($($index:literal)*) => {
            $(if $index < half {
                [tile[2 * $index], tile[2 * $index + 1]] =
                    V::interleave::<E>(before[$index], before[$index + half]);
            })*
        };
    }
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        interleave!(0 1 2 3 4 5 6 7);
    }
    tile
}

/// A vector that contains the same line of several tiles, which are transposed at once.
///
/// # Safety
///
/// All functions need the instructions of the vector; those with pointers access the bytes that they name.
trait TransposeVector: Copy {
    const TILES: usize;

    /// Loads a line of each tile, 16 bytes each; the tiles are `apart` bytes apart.
    unsafe fn load_lines(place: *const u8, apart: usize) -> Self;
    unsafe fn store_line(self, place: *mut u8);
    /// Interleaves the elements of two lines within each tile: first those of the lower halves, then those of the upper halves.
    unsafe fn interleave<E>(a: Self, b: Self) -> [Self; 2];
}

#[cfg(target_arch = "x86_64")]
use x86::Xmm as PortableTransposeVector;

#[cfg(arm_vectors)]
use neon::NeonLine as PortableTransposeVector;

#[cfg(arm_vectors)]
mod neon {
    use std::arch::aarch64::*;

    use super::TransposeVector;

    /// NEON, which every 64-bit ARM processor has.
    #[derive(Clone, Copy)]
    pub(crate) struct NeonLine(uint8x16_t);

    impl TransposeVector for NeonLine {
        const TILES: usize = 1;

        #[inline(always)]
        unsafe fn load_lines(place: *const u8, _apart: usize) -> Self {
            // SAFETY: the caller vouches for the bytes.
            Self(unsafe { vld1q_u8(place) })
        }

        #[inline(always)]
        unsafe fn store_line(self, place: *mut u8) {
            // SAFETY: as above.
            unsafe { vst1q_u8(place, self.0) };
        }

        #[inline(always)]
        unsafe fn interleave<E>(Self(a): Self, Self(b): Self) -> [Self; 2] {
            macro_rules! zip {
                ($zip1:ident $zip2:ident $from:ident $to:ident) => {{
                    let (a, b) = ($from(a), $from(b));
                    [Self($to($zip1(a, b))), Self($to($zip2(a, b)))]
                }};
            }
            // SAFETY: every processor of the architecture has the instructions.
            unsafe {
                match size_of::<E>() {
                    1 => [Self(vzip1q_u8(a, b)), Self(vzip2q_u8(a, b))],
                    2 => zip!(vzip1q_u16 vzip2q_u16 vreinterpretq_u16_u8 vreinterpretq_u8_u16),
                    4 => zip!(vzip1q_u32 vzip2q_u32 vreinterpretq_u32_u8 vreinterpretq_u8_u32),
                    _ => zip!(vzip1q_u64 vzip2q_u64 vreinterpretq_u64_u8 vreinterpretq_u8_u64),
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::TransposeVector;

    macro_rules! vectors {
        ($($(#[$docs:meta])* $name:ident($vector:ident) of $tiles:literal: |$line:ident| $load:expr, $store:ident,
            $low8:ident $high8:ident $low16:ident $high16:ident $low32:ident $high32:ident $low64:ident $high64:ident;)*) => {
            $(
                $(#[$docs])*
                #[derive(Clone, Copy)]
                pub(crate) struct $name($vector);

                impl TransposeVector for $name {
                    const TILES: usize = $tiles;

                    #[inline(always)]
                    unsafe fn load_lines(place: *const u8, apart: usize) -> Self {
                        // SAFETY: the caller vouches for the bytes and the instructions.
                        unsafe {
                            let $line = |tile: usize| _mm_loadu_si128(place.add(tile * apart).cast());
                            Self($load)
                        }
                    }

                    #[inline(always)]
                    unsafe fn store_line(self, place: *mut u8) {
                        // SAFETY: as above.
                        unsafe { $store(place.cast(), self.0) };
                    }

                    #[inline(always)]
                    unsafe fn interleave<E>(Self(a): Self, Self(b): Self) -> [Self; 2] {
                        // SAFETY: as above.
                        unsafe {
                            match size_of::<E>() {
                                1 => [Self($low8(a, b)), Self($high8(a, b))],
                                2 => [Self($low16(a, b)), Self($high16(a, b))],
                                4 => [Self($low32(a, b)), Self($high32(a, b))],
                                _ => [Self($low64(a, b)), Self($high64(a, b))],
                            }
                        }
                    }
                }
            )*
        };
    }

    vectors! {
        /// SSE2, which every x86-64 processor has.
        Xmm(__m128i) of 1: |line| line(0), _mm_storeu_si128,
            _mm_unpacklo_epi8 _mm_unpackhi_epi8 _mm_unpacklo_epi16 _mm_unpackhi_epi16
            _mm_unpacklo_epi32 _mm_unpackhi_epi32 _mm_unpacklo_epi64 _mm_unpackhi_epi64;
    }

    #[cfg(x86_vectors)]
    vectors! {
        /// AVX2.
        Ymm(__m256i) of 2: |line| _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(line(0)), line(1)), _mm256_storeu_si256,
            _mm256_unpacklo_epi8 _mm256_unpackhi_epi8 _mm256_unpacklo_epi16 _mm256_unpackhi_epi16
            _mm256_unpacklo_epi32 _mm256_unpackhi_epi32 _mm256_unpacklo_epi64 _mm256_unpackhi_epi64;
        /// AVX-512.
        Zmm(__m512i) of 4: |line| {
            let vector = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(line(0)), line(1));
            _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(vector, line(2)), line(3))
        }, _mm512_storeu_si512,
            _mm512_unpacklo_epi8 _mm512_unpackhi_epi8 _mm512_unpacklo_epi16 _mm512_unpackhi_epi16
            _mm512_unpacklo_epi32 _mm512_unpackhi_epi32 _mm512_unpacklo_epi64 _mm512_unpackhi_epi64;
    }
}

/// A vector in plain Rust, for other architectures.
#[cfg(not(any(target_arch = "x86_64", arm_vectors)))]
#[derive(Clone, Copy)]
struct PortableTransposeVector([u8; TILE_LINE_BYTES]);

#[cfg(not(any(target_arch = "x86_64", arm_vectors)))]
impl TransposeVector for PortableTransposeVector {
    const TILES: usize = 1;

    #[inline(always)]
    unsafe fn load_lines(place: *const u8, _apart: usize) -> Self {
        // SAFETY: the caller vouches for the bytes.
        Self(unsafe { place.cast::<[u8; TILE_LINE_BYTES]>().read() })
    }

    #[inline(always)]
    unsafe fn store_line(self, place: *mut u8) {
        // SAFETY: as above.
        unsafe { place.cast::<[u8; TILE_LINE_BYTES]>().write(self.0) };
    }

    #[inline(always)]
    unsafe fn interleave<E>(Self(a): Self, Self(b): Self) -> [Self; 2] {
        let half = |begin: usize| {
            Self(std::array::from_fn(|at| {
                let (element, byte) = (at / size_of::<E>(), at % size_of::<E>());
                let from = if element % 2 == 0 { &a } else { &b };
                from[begin + element / 2 * size_of::<E>() + byte]
            }))
        };
        [half(0), half(TILE_LINE_BYTES / 2)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_plane_transposes<E: Copy + PartialEq + std::fmt::Debug>(blank: E, element: impl Fn(usize) -> E) {
        let levels = Isa::ALL.into_iter().filter(|isa| isa.is_available());
        for isa in levels {
            for rows in [1, 2, 3, 4, 5, 15, 16, 17, 40, 150] {
                for columns in [1, 2, 3, 4, 5, 6, 7, 11, 15, 16, 31, 64, 65, 130] {
                    for (stride, pitch) in [(rows, columns), (rows + 1, columns + 3), (rows + 70, columns)] {
                        let input: Vec<E> = (0..(columns - 1) * stride + rows).map(&element).collect();
                        let mut out = vec![blank; (rows - 1) * pitch + columns];
                        PlaneTranspose { input: &input, stride, out: &mut out, pitch, rows, columns }
                            .transpose_plane(isa);
                        for (place, found) in out.iter().enumerate() {
                            let (row, column) = (place / pitch, place % pitch);
                            let expected =
                                if column < columns { input[row + column * stride] } else { blank };
                            assert_eq!(*found, expected, "{isa} {rows} {columns} {stride} {pitch} {place}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn planes_of_elements_of_every_size_are_transposed() {
        check_plane_transposes(0u8, |at| (at * 7 % 251) as u8 + 1);
        check_plane_transposes(0u16, |at| at as u16 + 1);
        check_plane_transposes(0u32, |at| at as u32 + 1);
        check_plane_transposes(0u64, |at| at as u64 + 1);
        check_plane_transposes(0u128, |at| at as u128 + 1);
    }
}
