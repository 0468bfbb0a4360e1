//! `BlockMatMul` of the domain `oarlock`: rows times 4-bit or 8-bit weights in blocks.
//!
//! Dequantizing the weights first would write and read them again at several times their size. Instead, integers are multiplied in
//! registers, as floats or with rows that are rounded to 8 bits, and the sums of their products are multiplied by the scale of the block.

mod columns;
mod float_products;
#[cfg(x86_vectors)]
mod panels;
mod plan;
#[cfg(x86_vectors)]
mod rounded_chunk;
#[cfg(x86_vectors)]
mod rounded_products;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::Isa;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, dtype_set, ensure,
};

use float_products::FLOAT_WORDS;
use plan::BlockMatmulPlan;

const INTEGER_DTYPES: DtypeSet = dtype_set(&[Dtype::I4, Dtype::U4, Dtype::I8, Dtype::U8]);
/// The most rows that are multiplied as floats. With more, arithmetic takes so long that dequantizing the weights does not matter, and a
/// product of floats is faster.
const MAX_FLOAT_ROWS: usize = 16;
/// The value of `accuracy_level` from which on rows may be rounded to 8 bits, as in ONNX Runtime.
const ROUNDED_ACCURACY: i64 = 4;
/// The most blocks of a chunk.
const MAX_CHUNK_BLOCKS: usize = 4;

pub(super) fn block_matmul_kernel() -> Kernel<Cpu> {
    let [floats, weights] =
        [OperandSpec::new(DtypeSet::F32), OperandSpec::new(INTEGER_DTYPES).with_dtype_group(1)];
    let optional = weights.with_flags(OperandFlags::OPTIONAL);
    Kernel::new_prepared("BlockMatMul", |cpu: &Cpu, call| {
        let plan = BlockMatmulPlan::new(cpu, call)?;
        call.describe_kernel(&plan.description(cpu));
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| plan.run(cpu, call)))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_support_check(|cpu, call| BlockMatmulShape::new(cpu, call).map(drop))
    .with_workspace(|cpu, call| Ok(BlockMatmulPlan::new(cpu, call)?.workspace_bytes() as u64))
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        floats.with_name("A").with_rank(1, u32::MAX),
        weights.with_name("W").with_rank(2, 2),
        floats.with_name("scale").with_rank(2, 2),
        optional.with_name("zero").with_rank(2, 2),
    ])
    .with_outputs([floats.with_name("Y")])
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockMatmulShape {
    rows: usize,
    columns: usize,
    depth: usize,
    block: usize,
    dtype: Dtype,
    /// True if rows may be rounded to 8 bits.
    may_round: bool,
}

impl BlockMatmulShape {
    fn new(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Self> {
        let (a, w, scale) = (call.input(0)?.dims(), call.input(1)?, call.input(2)?.dims());
        let block = usize::try_from(call.int_attribute("block_size")?.unwrap_or(0)).unwrap_or(0);
        let ([rows @ .., depth], [columns, length]) = (a, w.dims()) else {
            return Err(oarlock_sdk::PluginError::invalid_argument(
                "expected rows and a matrix, found others",
            ));
        };
        let count = rows.iter().try_fold(1i64, |count, rows| count.checked_mul(*rows)).unwrap_or(i64::MAX);
        ensure!(
            depth == length,
            invalid_argument,
            "expected weights of {depth} elements a row, found {length}"
        );
        ensure!(
            count > 0 && *columns > 0 && *depth > 0,
            unimplemented,
            "expected rows of some elements, and some columns, found {count}, {depth} and {columns}"
        );
        let sizes = Self {
            rows: count as usize,
            columns: *columns as usize,
            depth: *depth as usize,
            block,
            dtype: w.dtype(),
            may_round: call.int_attribute("accuracy_level")?.unwrap_or(0) >= ROUNDED_ACCURACY,
        };
        ensure!(
            sizes.rows <= MAX_FLOAT_ROWS || sizes.is_rounded(cpu.isa()),
            unimplemented,
            "expected 1 to {MAX_FLOAT_ROWS} rows, found {count}"
        );
        let chunk = FLOAT_WORDS * sizes.word_elements();
        let step = chunk / MAX_CHUNK_BLOCKS;
        let is_even =
            block.is_multiple_of(step) && (chunk.is_multiple_of(block) || block.is_multiple_of(chunk));
        ensure!(
            block > 0 && is_even && sizes.depth.is_multiple_of(block),
            unimplemented,
            "expected whole blocks of {step}, {} or a multiple of {chunk} elements, found blocks of {block} in rows of {depth}",
            2 * step
        );
        let expected = [*columns, depth / block as i64];
        let zero = call.optional_input(3)?;
        ensure!(
            scale == expected && zero.is_none_or(|zero| zero.dims() == expected),
            invalid_argument,
            "expected scales and zero points of shape {expected:?}, found {scale:?} and {:?}",
            zero.map(|zero| zero.dims())
        );
        Ok(sizes)
    }

    /// True if rows are rounded to 8 bits.
    fn is_rounded(&self, isa: Isa) -> bool {
        self.may_round && self.bits() == 4 && isa >= Isa::Avx2
    }

    /// Bits of an integer.
    fn bits(&self) -> usize {
        if [Dtype::I4, Dtype::U4].contains(&self.dtype) { 4 } else { 8 }
    }

    /// The integers of a 32-bit word.
    fn word_elements(&self) -> usize {
        32 / self.bits()
    }

    /// The bytes of so many integers.
    fn packed_bytes(&self, integers: usize) -> usize {
        (integers * self.bits()).div_ceil(8)
    }

    /// The sign bits of the integers of a byte, if these are signed.
    fn sign_bits(&self) -> u8 {
        match self.dtype {
            Dtype::I4 => 0x88,
            Dtype::I8 => 0x80,
            _ => 0,
        }
    }
}
