//! Rows of kernels: what they require of their operands, and how a prepared loop is run.

use std::sync::Arc;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, dtype_set,
};

use super::prepared_loop::PreparedLoop;

/// Floats with a kernel each; those of 16 bits are computed as `f32`.
pub(super) const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);
/// Integers of whole bytes.
pub(super) const INTEGERS: DtypeSet = SIGNED.union(UNSIGNED);
pub(super) const SIGNED: DtypeSet = dtype_set(&[Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]);
pub(super) const UNSIGNED: DtypeSet = dtype_set(&[Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]);
pub(super) const BYTE_FLOATS: DtypeSet =
    dtype_set(&[Dtype::F8E4M3, Dtype::F8E4M3FNUZ, Dtype::F8E5M2, Dtype::F8E5M2FNUZ, Dtype::F8E8M0]);
/// Dtypes whose elements share bytes.
pub(super) const PACKED: DtypeSet = dtype_set(&[Dtype::I2, Dtype::U2, Dtype::I4, Dtype::U4, Dtype::F4E2M1]);
pub(super) const NUMBERS: DtypeSet = FLOATS.union(INTEGERS);
pub(super) const BOOL: DtypeSet = DtypeSet::BOOL;

/// An input of one of these dtypes, contiguous or not.
pub(super) fn input_operand(name: &'static str, dtypes: DtypeSet) -> OperandSpec {
    OperandSpec::new(dtypes).with_name(name).with_flags(OperandFlags::STRIDED)
}

pub(super) fn output_operand(name: &'static str, dtypes: DtypeSet) -> OperandSpec {
    OperandSpec::new(dtypes).with_name(name)
}

/// A kernel that is one loop over all its inputs, made when it is prepared.
pub(super) fn elementwise_kernel<const N: usize>(
    op: &'static str,
    since: u32,
    inputs: [OperandSpec; N],
    output: OperandSpec,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared_kernel(op, since, move |call| {
        let pass = pass(call)?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| pass.run::<N>(cpu, call))
    })
    .with_inputs(inputs)
    .with_outputs([output])
}

/// A kernel that is run by what a function makes of its first call.
pub(super) fn prepared_kernel<R>(
    op: &'static str,
    since: u32,
    prepare: impl Fn(&KernelCall<'_>) -> Result<R> + Send + Sync + 'static,
) -> Kernel<Cpu>
where
    R: Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
{
    Kernel::new_prepared(op, move |_: &Cpu, call| {
        let run = prepare(call)?;
        Ok(Arc::new(run))
    })
    .since_version(since)
    .with_flags(KernelFlags::DETERMINISTIC)
}
