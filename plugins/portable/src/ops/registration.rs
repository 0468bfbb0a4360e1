//! Shared parts of kernel records: flags, accepted dtypes, and support checks.

use oarlock_sdk::{
    Code, Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, MemoryKind, OperandFlags, OperandSpec,
    PluginError, Result, dtype_set,
};

use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::operand_view::{MAX_DIMENSIONS, OperandView, check_strides};

pub(super) const FLOAT_DTYPES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);
pub(super) const SIGNED_DTYPES: DtypeSet = dtype_set(&[Dtype::I8, Dtype::I16, Dtype::I32, Dtype::I64]);
pub(super) const UNSIGNED_DTYPES: DtypeSet = dtype_set(&[Dtype::U8, Dtype::U16, Dtype::U32, Dtype::U64]);
pub(super) const INTEGER_DTYPES: DtypeSet = SIGNED_DTYPES.union(UNSIGNED_DTYPES);
pub(super) const NUMERIC_DTYPES: DtypeSet = FLOAT_DTYPES.union(INTEGER_DTYPES);
/// Every dtype that kernels of this crate support.
pub(super) const ALL_DTYPES: DtypeSet = NUMERIC_DTYPES.union(DtypeSet::BOOL);
pub(super) const INDEX_DTYPES: DtypeSet = dtype_set(&[Dtype::I32, Dtype::I64]);

/// A deterministic kernel that enqueues its work on a stream.
pub(super) fn stream_kernel<G: Gpu>(
    op: &'static str,
    run: impl Fn(&GpuDevices<G>, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
) -> Kernel<GpuDevices<G>> {
    // No kernel adds with atomics, and every tree combines in a fixed order, so equal inputs give equal bits on a device.
    let flags = KernelFlags::DETERMINISTIC | KernelFlags::ASYNCHRONOUS;
    Kernel::new(op, run).with_flags(flags).with_support_check(|_, call| check_forward_strides(call))
}

/// A kernel that computes with its elements, so the device must support their dtypes.
pub(super) fn arithmetic_kernel<G: Gpu>(
    op: &'static str,
    run: impl Fn(&GpuDevices<G>, &KernelCall<'_>) -> Result<()> + Send + Sync + 'static,
) -> Kernel<GpuDevices<G>> {
    stream_kernel(op, run).with_support_check(check_computable)
}

/// Support check of kernels that compute; a refusal here lets another device run the call.
pub(super) fn check_computable<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    check_forward_strides(call)?;
    check_device_dtypes(gpus, call)
}

/// Passes on only `unimplemented` errors. Errors in the call itself are reported when it is made.
pub(super) fn check_planned<T>(planned: Result<T>) -> Result<()> {
    match planned {
        Err(error) if error.code() == Code::UNIMPLEMENTED => Err(error),
        _ => Ok(()),
    }
}

/// Refuses operands with negative strides.
fn check_forward_strides(call: &KernelCall<'_>) -> Result<()> {
    // `OperandView` refuses them too, but only when the call runs, and no other device takes it then.
    (0..call.input_count()).try_for_each(|index| {
        call.optional_input(index)?.map_or(Ok(()), |tensor| check_strides(tensor.strides()))
    })
}

/// Refuses `f64` on devices that lack it.
fn check_device_dtypes<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    if gpus.device_properties(call.device())?.has_f64 {
        return Ok(());
    }
    // Everything else is computed in `f32` or in integers of up to 64 bits, which all devices have.
    let inputs = (0..call.input_count()).map(|index| call.optional_input(index));
    let outputs = (0..call.output_count()).map(|index| call.optional_output(index));
    for tensor in inputs.chain(outputs) {
        if tensor?.is_some_and(|tensor| tensor.dtype() == Dtype::F64) {
            return Err(PluginError::unimplemented(format!(
                "expected a device with 64-bit floating point for f64, found device {} without it",
                call.device()
            )));
        }
    }
    Ok(())
}

pub(super) fn contiguous_operand(dtypes: DtypeSet) -> OperandSpec {
    OperandSpec::new(dtypes).with_rank(0, MAX_DIMENSIONS as u32)
}

pub(super) fn strided_operand(dtypes: DtypeSet) -> OperandSpec {
    contiguous_operand(dtypes).with_flags(OperandFlags::STRIDED)
}

/// An operand that shapes depend on: it must lie in host memory, to be read before the launch.
pub(super) fn host_operand(dtypes: DtypeSet) -> OperandSpec {
    OperandSpec::new(dtypes).in_memory(MemoryKind::HOST)
}

pub(super) fn input_view(call: &KernelCall<'_>, index: usize) -> Result<OperandView> {
    OperandView::new(&call.input(index)?)
}

pub(super) fn optional_input_view(call: &KernelCall<'_>, index: usize) -> Result<Option<OperandView>> {
    call.optional_input(index)?.map(|tensor| OperandView::new(&tensor)).transpose()
}

pub(super) fn output_view(call: &KernelCall<'_>, index: usize) -> Result<OperandView> {
    OperandView::new(&call.output(index)?)
}

/// Checks the output shape against the one inferred here.
pub(super) fn check_output_shape(expected: &[i64], output: &OperandView) -> Result<()> {
    // Kernels derive their indices from this shape: another one would lead out of the output.
    oarlock_sdk::ensure!(
        expected == output.dims,
        invalid_argument,
        "expected an output of shape {expected:?}, found {:?}",
        output.dims
    );
    Ok(())
}
