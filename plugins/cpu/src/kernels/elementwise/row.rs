//! Rows of kernels: what they demand of their operands, and how a prepared loop is run.

use std::sync::Arc;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, dtype_set};

use super::pass::Pass;
use crate::device::Cpu;

/// The floats with a kernel each; those of 16 bits are computed as `f32`.
pub(super) const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);
/// The integers of whole bytes.
pub(super) const INTEGERS: DtypeSet = SIGNED.union(UNSIGNED);
/// The integers with a sign.
pub(super) const SIGNED: DtypeSet = dtype_set(&[Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]);
/// The integers without a sign.
pub(super) const UNSIGNED: DtypeSet = dtype_set(&[Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]);
/// The floats of 8 bits.
pub(super) const BYTE_FLOATS: DtypeSet =
    dtype_set(&[Dtype::F8E4M3, Dtype::F8E4M3FNUZ, Dtype::F8E5M2, Dtype::F8E5M2FNUZ, Dtype::F8E8M0]);
/// What shares bytes.
pub(super) const PACKED: DtypeSet = dtype_set(&[Dtype::I2, Dtype::U2, Dtype::I4, Dtype::U4, Dtype::F4E2M1]);
/// Floats and integers.
pub(super) const NUMBERS: DtypeSet = FLOATS.union(INTEGERS);
/// `bool`.
pub(super) const BOOL: DtypeSet = DtypeSet::BOOL;

/// An input with one of these dtypes, contiguous or not.
pub(super) fn input(name: &'static str, dtypes: DtypeSet) -> Operand {
    Operand::new(dtypes).named(name).flags(OperandFlags::STRIDED)
}

/// An output with one of these dtypes.
pub(super) fn output(name: &'static str, dtypes: DtypeSet) -> Operand {
    Operand::new(dtypes).named(name)
}

/// A kernel that is one pass over all its inputs, made when it is prepared.
pub(super) fn row<const N: usize>(
    op: &'static str,
    since: u32,
    inputs: [Operand; N],
    output: Operand,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared(op, since, move |call| {
        let pass = pass(call)?;
        Ok(move |cpu: &Cpu, call: &Call<'_>| pass.run::<N>(cpu, call))
    })
    .inputs(inputs)
    .outputs([output])
}

/// A kernel that is run by what a function makes of its first call.
pub(super) fn prepared<R>(
    op: &'static str,
    since: u32,
    prepare: impl Fn(&Call<'_>) -> Result<R> + Send + Sync + 'static,
) -> Kernel<Cpu>
where
    R: Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync + 'static,
{
    Kernel::prepared(op, move |_: &Cpu, call| {
        let run = prepare(call)?;
        Ok(Arc::new(run))
    })
    .since(since)
    .flags(KernelFlags::DETERMINISTIC)
}
