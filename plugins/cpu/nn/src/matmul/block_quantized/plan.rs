//! Chooses how the products with one matrix are computed, and computes them.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::memory::ALIGNMENT;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{AxisLines, parallel_for_parts};
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_sdk::{KernelCall, Result, TensorView, ensure};

use super::BlockMatmulShape;
use super::columns::{BlockQuantizedMatrix, ChunkProducts, ColumnProducts, ZeroPoints};
use super::float_products::{FLOAT_WORDS, FloatProducts};
#[cfg(x86_vectors)]
use super::rounded_products::{Avx2Products, VnniProducts, YMM_WORDS, ZMM_WORDS, has_vnni};

/// How products with one matrix are computed.
pub(super) struct BlockMatmulPlan {
    sizes: BlockMatmulShape,
    method: ProductMethod,
    /// The byte of which all zero points consist, if that is known.
    uniform_zero: Option<u8>,
}

/// A way to multiply.
#[derive(Clone, Copy)]
struct ProductMethod {
    rounds_rows: bool,
    row_bytes: fn(&BlockMatmulShape) -> usize,
    multiply: fn(BlockProduct<'_>),
}

impl ProductMethod {
    const fn of<P: ChunkProducts<WORDS>, const WORDS: usize>(rounds_rows: bool) -> Self {
        let row_bytes = |sizes: &BlockMatmulShape| {
            sizes.rows * sizes.depth.div_ceil(WORDS * P::WORD_ELEMENTS) * size_of::<P::RowChunk>()
        };
        Self { rounds_rows, row_bytes, multiply: multiply_all::<P, WORDS> }
    }

    fn choose(isa: Isa, sizes: &BlockMatmulShape) -> Self {
        #[cfg(x86_vectors)]
        if sizes.may_round && sizes.bits() == 4 && isa >= Isa::Avx2 {
            return if has_vnni(isa) {
                Self::of::<VnniProducts, ZMM_WORDS>(true)
            } else {
                Self::of::<Avx2Products, YMM_WORDS>(true)
            };
        }
        #[cfg(not(x86_vectors))]
        let _ = isa;
        match sizes.bits() {
            4 => Self::of::<FloatProducts<8>, FLOAT_WORDS>(false),
            _ => Self::of::<FloatProducts<4>, FLOAT_WORDS>(false),
        }
    }
}

impl BlockMatmulPlan {
    pub(super) fn new(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        let sizes = BlockMatmulShape::new(call)?;
        let uniform_zero = match call.optional_input(3)? {
            Some(zeros) if zeros.is_constant() => uniform_byte(bytes_of(&zeros), sizes.bits()),
            Some(_) => None,
            None => Some(0),
        };
        Ok(Self { sizes, method: ProductMethod::choose(cpu.isa(), &sizes), uniform_zero })
    }

    pub(super) fn description(&self, cpu: &Cpu) -> String {
        let rows = if self.method.rounds_rows { ", rows rounded to 8 bits" } else { "" };
        format!("weights dequantized in registers{rows}, {}", cpu.isa().without_amx())
    }

    /// The bytes of all rows in chunks, and as many as aligning them may take.
    pub(super) fn workspace_bytes(&self) -> usize {
        (self.method.row_bytes)(&self.sizes) + ALIGNMENT
    }

    pub(super) fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (found, sizes) = (BlockMatmulShape::new(call)?, &self.sizes);
        ensure!(
            found == *sizes,
            invalid_argument,
            "expected operands of the shapes that were prepared for, found others"
        );
        let blocks = sizes.columns * sizes.depth / sizes.block;
        let (weights, zeros) =
            (bytes_of(&call.input(1)?), call.optional_input(3)?.map(|zeros| bytes_of(&zeros)));
        // SAFETY: device memory is host memory, and the call guarantees its operands.
        let (a, scales, y) = unsafe {
            (
                call.input(0)?.elements::<f32>()?,
                call.input(2)?.elements::<f32>()?,
                call.output(0)?.elements_mut::<f32>()?,
            )
        };
        ensure!(
            weights.len() == sizes.packed_bytes(sizes.columns * sizes.depth)
                && scales.len() == blocks
                && zeros.is_none_or(|zeros| zeros.len() == sizes.packed_bytes(blocks))
                && a.len() == sizes.rows * sizes.depth
                && y.len() == sizes.rows * sizes.columns,
            invalid_argument,
            "expected operands as large as their shapes say, found others"
        );
        let matrix = BlockQuantizedMatrix {
            column_bytes: sizes.packed_bytes(sizes.depth),
            blocks: sizes.depth / sizes.block,
            block: sizes.block,
            weights,
            scales,
            zeros: match (self.uniform_zero, zeros) {
                (None, Some(zeros)) => ZeroPoints::Packed(zeros),
                (zero, _) => {
                    let integer = (zero.unwrap_or(0) ^ sizes.sign_bits()) & (u8::MAX >> (8 - sizes.bits()));
                    ZeroPoints::Uniform(f32::from(integer))
                }
            },
            sign_bits: sizes.sign_bits(),
        };
        let mut scratch = ScratchBuffer::from_call(call);
        let room = scratch.allocate_elements::<f32>((self.method.row_bytes)(sizes) / size_of::<f32>());
        (self.method.multiply)(BlockProduct { cpu, sizes, matrix, a, y, room });
        Ok(())
    }
}

fn bytes_of<'a>(operand: &TensorView<'a>) -> &'a [u8] {
    let (block, offset) = operand.memory_location();
    let address = block.0.wrapping_add(offset) as *const u8;
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    unsafe { std::slice::from_raw_parts(address, operand.size_in_bytes() as usize) }
}

/// The byte of which all consist, if its integers are equal too.
fn uniform_byte(bytes: &[u8], bits: usize) -> Option<u8> {
    let first = bytes.first().copied().filter(|first| bytes.iter().all(|byte| byte == first));
    first.filter(|byte| bits == 8 || byte >> 4 == byte & 15)
}

/// One product, with room for its rows in chunks.
struct BlockProduct<'a> {
    cpu: &'a Cpu,
    sizes: &'a BlockMatmulShape,
    matrix: BlockQuantizedMatrix<'a>,
    a: &'a [f32],
    y: &'a mut [f32],
    room: &'a mut [f32],
}

fn multiply_all<P: ChunkProducts<WORDS>, const WORDS: usize>(product: BlockProduct<'_>) {
    let BlockProduct { cpu, sizes, matrix, a, y, room } = product;
    let chunk = WORDS * P::WORD_ELEMENTS;
    let row_chunks = sizes.depth.div_ceil(chunk);
    // SAFETY: chunks of rows consist of numbers, for which all bits are valid.
    let (_, chunks, _) = unsafe { room.align_to_mut::<P::RowChunk>() };
    let chunks = &mut chunks[..sizes.rows * row_chunks];
    for (row, chunks) in a.chunks_exact(sizes.depth).zip(chunks.chunks_exact_mut(row_chunks)) {
        for (elements, filled) in row.chunks(chunk).zip(chunks) {
            P::fill_chunk(filled, elements, sizes.block);
        }
    }
    // Chosen once, so that the loops have no branch on it.
    let multiply = match chunk / sizes.block {
        0 | 1 => ColumnProducts::<P, WORDS, 1>::compute,
        2 => ColumnProducts::<P, WORDS, 2>::compute,
        _ => ColumnProducts::<P, WORDS, 4>::compute,
    };
    let (rows, results) = (&*chunks, AxisLines::new(y, sizes.rows, sizes.columns));
    parallel_for_parts(cpu, sizes.columns, grain_for(sizes.rows * sizes.depth), results, |_, results| {
        multiply(cpu.isa(), matrix, rows, results);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_points_are_uniform_if_all_integers_are_equal() {
        assert_eq!(uniform_byte(&[0x88, 0x88], 4), Some(0x88));
        assert_eq!(uniform_byte(&[0x38, 0x38], 8), Some(0x38));
        assert_eq!(uniform_byte(&[0x38, 0x38], 4), None);
        assert_eq!(uniform_byte(&[0x88, 0x87], 4), None);
        assert_eq!(uniform_byte(&[], 8), None);
    }

    #[test]
    #[cfg(x86_vectors)]
    fn rows_of_four_bit_weights_are_rounded_from_avx2_on_if_they_may_be() {
        use oarlock_sdk::Dtype;

        let rounds = |isa, dtype, may_round| {
            let sizes = BlockMatmulShape { rows: 1, columns: 1, depth: 128, block: 32, dtype, may_round };
            ProductMethod::choose(isa, &sizes).rounds_rows
        };
        for dtype in [Dtype::U4, Dtype::I4] {
            assert!(rounds(Isa::Avx2, dtype, true) && rounds(Isa::AvxVnni, dtype, true));
            assert!(!rounds(Isa::Avx2, dtype, false) && !rounds(Isa::Sse41, dtype, true));
        }
        assert!(!rounds(Isa::Avx2, Dtype::U8, true));
    }
}
