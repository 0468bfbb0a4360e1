//! What all rows have in common: their flags, the dtypes they take, and what they refuse.

use oarlock_sdk::{
    Call, Code, Dtype, DtypeSet, Error, Kernel, KernelFlags, MemoryKind, Operand, OperandFlags, Result,
    dtype_set,
};

use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::view::{MOST_DIMENSIONS, View, check_steps};

/// `f16`, `bf16`, `f32`, `f64`.
pub(super) const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);
pub(super) const SIGNED: DtypeSet = dtype_set(&[Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]);
pub(super) const UNSIGNED: DtypeSet = dtype_set(&[Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]);
pub(super) const INTEGERS: DtypeSet = SIGNED.union(UNSIGNED);
pub(super) const NUMBERS: DtypeSet = FLOATS.union(INTEGERS);
/// All that kernels of this crate know.
pub(super) const ALL: DtypeSet = NUMBERS.union(DtypeSet::BOOL);
/// Indices.
pub(super) const INDICES: DtypeSet = dtype_set(&[Dtype::I32, Dtype::I64]);

/// A kernel that does its work in a stream and the same way each time.
pub(super) fn row<G: Gpu>(
    op: &'static str,
    run: impl Fn(&Gpus<G>, &Call<'_>) -> Result<()> + Send + Sync + 'static,
) -> Kernel<Gpus<G>> {
    let flags = KernelFlags::DETERMINISTIC | KernelFlags::ASYNCHRONOUS;
    Kernel::new(op, run).flags(flags).supports(|_, call| goes_forwards(call))
}

/// A kernel that computes with its elements, so that the device must know their dtypes.
pub(super) fn arithmetic<G: Gpu>(
    op: &'static str,
    run: impl Fn(&Gpus<G>, &Call<'_>) -> Result<()> + Send + Sync + 'static,
) -> Kernel<Gpus<G>> {
    row(op, run).supports(can_compute)
}

/// What is asked before a kernel that computes is chosen, so that another device may do what this one cannot.
pub(super) fn can_compute<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    goes_forwards(call)?;
    device_has_dtypes(gpus, call)
}

/// Passes on what a kernel has no way to do. What is wrong with the call itself is said when it is made.
pub(super) fn refused<T>(planned: Result<T>) -> Result<()> {
    match planned {
        Err(error) if error.code() == Code::UNIMPLEMENTED => Err(error),
        _ => Ok(()),
    }
}

/// Refuses operands that are read backwards.
fn goes_forwards(call: &Call<'_>) -> Result<()> {
    (0..call.input_count()).try_for_each(|index| {
        call.optional_input(index)?.map_or(Ok(()), |tensor| check_steps(tensor.strides()))
    })
}

/// Refuses 64-bit floating point on devices without it.
fn device_has_dtypes<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    if gpus.facts(call.device())?.has_f64 {
        return Ok(());
    }
    let inputs = (0..call.input_count()).map(|index| call.optional_input(index));
    let outputs = (0..call.output_count()).map(|index| call.optional_output(index));
    for tensor in inputs.chain(outputs) {
        if tensor?.is_some_and(|tensor| tensor.dtype() == Dtype::F64) {
            return Err(Error::unimplemented(format!(
                "expected a device with 64-bit floating point for f64, found device {} without it",
                call.device()
            )));
        }
    }
    Ok(())
}

/// A contiguous operand.
pub(super) fn plain(dtypes: DtypeSet) -> Operand {
    Operand::new(dtypes).rank(0, MOST_DIMENSIONS as u32)
}

/// An operand that may have strides.
pub(super) fn strided(dtypes: DtypeSet) -> Operand {
    plain(dtypes).flags(OperandFlags::STRIDED)
}

/// An operand that shapes depend on, so that its values are needed before anything is launched.
pub(super) fn on_host(dtypes: DtypeSet) -> Operand {
    Operand::new(dtypes).on(MemoryKind::HOST)
}

pub(super) fn input(call: &Call<'_>, index: usize) -> Result<View> {
    View::new(&call.input(index)?)
}

pub(super) fn optional_input(call: &Call<'_>, index: usize) -> Result<Option<View>> {
    call.optional_input(index)?.map(|tensor| View::new(&tensor)).transpose()
}

pub(super) fn output(call: &Call<'_>, index: usize) -> Result<View> {
    View::new(&call.output(index)?)
}

/// The error of an output whose shape is not the one that follows from the inputs.
pub(super) fn check_shape(expected: &[i64], output: &View) -> Result<()> {
    oarlock_sdk::ensure!(
        expected == output.dims,
        invalid_argument,
        "expected an output of shape {expected:?}, found {:?}",
        output.dims
    );
    Ok(())
}

/// An axis, which counts from the last dimension when it is negative.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let counted = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    let found = counted.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank);
    found.ok_or_else(|| Error::out_of_range(format!("expected an axis of {rank} dimensions, found {axis}")))
}
