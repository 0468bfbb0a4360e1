//! Chooses how the products with one matrix are computed, and computes them.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::memory::ALIGNMENT;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{
    AxisLines, AxisLinesPart, OutputBlocks, OutputRows, parallel_for_parts,
};
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_sdk::{KernelCall, Result, TensorView, ensure};

use super::BlockMatmulShape;
use super::columns::{BlockQuantizedMatrix, ChunkProducts, ZeroPoints, run_columns};
use super::float_products::{FLOAT_WORDS, FloatProducts};
#[cfg(x86_vectors)]
use super::panels::{PanelProducts, run_panels};
#[cfg(x86_vectors)]
use super::rounded_products::{Avx2Products, AvxVnniProducts, VnniProducts, YMM_WORDS, ZMM_WORDS, has_vnni};

/// The rows that are in chunks at a time, so that they stay in L2 while all columns are multiplied with them.
const ROW_BLOCK: usize = 64;
/// The fewest rows for which it pays to bring panels of columns side by side.
#[cfg(x86_vectors)]
const MIN_PANEL_ROWS: usize = 4;

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
    /// Multiplies column by column.
    const fn by_columns<P: ChunkProducts<WORDS>, const WORDS: usize>(rounds_rows: bool) -> Self {
        Self { rounds_rows, row_bytes: row_bytes::<P, WORDS>, multiply: multiply_columns::<P, WORDS> }
    }

    /// Multiplies rows that are rounded, in panels of columns if there are enough rows.
    #[cfg(x86_vectors)]
    fn with_rounded_rows<P: PanelProducts<WORDS>, const WORDS: usize>(rows: usize) -> Self {
        let by_columns = Self::by_columns::<P, WORDS>(true);
        if rows < MIN_PANEL_ROWS {
            by_columns
        } else {
            Self { multiply: multiply_panels::<P, WORDS>, ..by_columns }
        }
    }

    fn choose(isa: Isa, sizes: &BlockMatmulShape) -> Self {
        #[cfg(x86_vectors)]
        if sizes.is_rounded(isa) {
            return match isa {
                _ if has_vnni(isa) => Self::with_rounded_rows::<VnniProducts, ZMM_WORDS>(sizes.rows),
                Isa::AvxVnni => Self::with_rounded_rows::<AvxVnniProducts, YMM_WORDS>(sizes.rows),
                _ => Self::with_rounded_rows::<Avx2Products, YMM_WORDS>(sizes.rows),
            };
        }
        #[cfg(not(x86_vectors))]
        let _ = isa;
        match sizes.bits() {
            4 => Self::by_columns::<FloatProducts<8>, FLOAT_WORDS>(false),
            _ => Self::by_columns::<FloatProducts<4>, FLOAT_WORDS>(false),
        }
    }
}

impl BlockMatmulPlan {
    pub(super) fn new(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        let sizes = BlockMatmulShape::new(cpu, call)?;
        let uniform_zero = match call.optional_input(3)? {
            Some(zeros) if zeros.is_constant() => uniform_byte(bytes_of(&zeros), sizes.bits()),
            Some(_) => None,
            None => Some(0),
        };
        Ok(Self { sizes, method: ProductMethod::choose(cpu.isa(), &sizes), uniform_zero })
    }

    pub(super) fn description(&self, cpu: &Cpu) -> String {
        let way = if self.method.rounds_rows {
            "weights of 4 bits, rows rounded to 8 bits"
        } else {
            "weights dequantized in registers"
        };
        format!("{way}, {}", cpu.isa().without_amx())
    }

    /// The bytes of rows in chunks, and as many as aligning them may take.
    pub(super) fn workspace_bytes(&self) -> usize {
        (self.method.row_bytes)(&self.sizes) + ALIGNMENT
    }

    pub(super) fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let (found, sizes) = (BlockMatmulShape::new(cpu, call)?, &self.sizes);
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

/// The bytes of the rows of a block in chunks.
fn row_bytes<P: ChunkProducts<WORDS>, const WORDS: usize>(sizes: &BlockMatmulShape) -> usize {
    let row_chunks = sizes.depth.div_ceil(WORDS * P::WORD_ELEMENTS);
    sizes.rows.min(ROW_BLOCK) * row_chunks * size_of::<P::RowChunk>()
}

/// Fills the chunks of some rows, which begin with the chunk `first`.
struct ChunkFill<'a, P: ChunkProducts<WORDS>, const WORDS: usize> {
    rows: &'a [f32],
    depth: usize,
    block: usize,
    first: usize,
    chunks: &'a mut [P::RowChunk],
}

impl<P: ChunkProducts<WORDS>, const WORDS: usize> SimdTask for ChunkFill<'_, P, WORDS> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let size = WORDS * P::WORD_ELEMENTS;
        let row_chunks = self.depth.div_ceil(size);
        for (chunk, filled) in (self.first..).zip(self.chunks) {
            let (row, at) = (chunk / row_chunks, chunk % row_chunks * size);
            let elements = &self.rows[row * self.depth..][at..self.depth.min(at + size)];
            P::fill_chunk(filled, elements, self.block);
        }
    }
}

/// Multiplies the chunks of some rows with the columns of some results.
type ChunkMultiply<C> = fn(Isa, BlockQuantizedMatrix<'_>, &[C], AxisLinesPart<'_, f32>);

/// Brings rows into chunks, a block of rows at a time, and multiplies them with columns, of which threads share groups of `group`.
fn multiply_chunks<P: ChunkProducts<WORDS>, const WORDS: usize>(
    product: BlockProduct<'_>,
    group: usize,
    multiply: ChunkMultiply<P::RowChunk>,
) {
    let BlockProduct { cpu, sizes, matrix, a, y, room } = product;
    let (columns, depth) = (sizes.columns, sizes.depth);
    // SAFETY: chunks of rows consist of numbers, for which all bits are valid.
    let (_, room, _) = unsafe { room.align_to_mut::<P::RowChunk>() };
    let row_chunks = depth.div_ceil(WORDS * P::WORD_ELEMENTS);
    for (rows, y) in a.chunks(ROW_BLOCK * depth).zip(y.chunks_mut(ROW_BLOCK * columns)) {
        let count = rows.len() / depth;
        let chunks = &mut room[..count * row_chunks];
        let grain = grain_for(WORDS * P::WORD_ELEMENTS);
        parallel_for_parts(cpu, chunks.len(), grain, OutputRows::new(chunks, 1), |first, chunks| {
            P::run_task(cpu.isa(), ChunkFill::<P, WORDS> { rows, depth, block: sizes.block, first, chunks });
        });
        let chunks = &*chunks;
        let results = OutputBlocks { parts: AxisLines::new(y, count, columns), count: columns, size: group };
        let grain = grain_for(count * depth * group);
        parallel_for_parts(cpu, columns.div_ceil(group), grain, results, |_, results| {
            multiply(cpu.isa(), matrix, chunks, results);
        });
    }
}

fn multiply_columns<P: ChunkProducts<WORDS>, const WORDS: usize>(product: BlockProduct<'_>) {
    // Chosen once, so that the loops have no branch on it.
    let multiply = match WORDS * P::WORD_ELEMENTS / product.sizes.block {
        0 | 1 => run_columns::<P, WORDS, 1>,
        2 => run_columns::<P, WORDS, 2>,
        _ => run_columns::<P, WORDS, 4>,
    };
    multiply_chunks::<P, WORDS>(product, 1, multiply);
}

#[cfg(x86_vectors)]
fn multiply_panels<P: PanelProducts<WORDS>, const WORDS: usize>(product: BlockProduct<'_>) {
    let multiply = match WORDS * P::WORD_ELEMENTS / product.sizes.block {
        0 | 1 => run_panels::<P, WORDS, 1>,
        2 => run_panels::<P, WORDS, 2>,
        _ => run_panels::<P, WORDS, 4>,
    };
    multiply_chunks::<P, WORDS>(product, WORDS, multiply);
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
