//! A `QuantizeLinear` kernel for the common case of quantized models: floats to bytes with a single scale. It rounds directly to
//! bytes and is preferred over the general kernel, which rounds to floats first.

#![expect(
    unsafe_code,
    reason = "operands are memory that the call vouches for, and threads write parts of one output"
)]

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::quantized_operand::BYTE_DTYPES;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, ensure,
};

use super::byte_operands::{tensor_bytes, tensor_bytes_mut};
use super::requantize::{ROUNDING_OFFSET, clamp_value, dtype_range};

/// Elements that make it worth waking another thread, and the size of a piece.
const MIN_WORK_PER_THREAD: usize = 1 << 15;
const PIECE_ELEMENTS: usize = 1 << 14;

pub(super) fn quantize_bytes_kernel() -> Kernel<Cpu> {
    let byte = OperandSpec::new(BYTE_DTYPES).with_dtype_group(2);
    Kernel::new("QuantizeLinear", run_quantize)
        .since_version(10)
        // Higher than the default of 100, which the general kernel has.
        .with_score(110)
        .with_support_check(|_, call| check_operands(call))
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([
            OperandSpec::new(DtypeSet::F32).with_name("x"),
            OperandSpec::new(DtypeSet::F32).with_name("y_scale"),
            byte.with_name("y_zero_point").with_flags(OperandFlags::OPTIONAL),
        ])
        .with_outputs([byte.with_name("y")])
}

fn check_operands(call: &KernelCall<'_>) -> Result<()> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.optional_input(2)?);
    let zero_count = zero.map_or(Ok(1), |zero| zero.element_count())?;
    ensure!(
        scale.element_count()? == 1 && zero_count == 1 && call.int_attribute("block_size")?.unwrap_or(0) == 0,
        unimplemented,
        "expected one scale and one zero point, found more"
    );
    ensure!(
        x.dims() == call.output(0)?.dims(),
        invalid_argument,
        "expected an output of shape {:?}, found {:?}",
        x.dims(),
        call.output(0)?.dims()
    );
    Ok(())
}

fn run_quantize(cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    check_operands(call)?;
    let (x, scale, zero, y) = (call.input(0)?, call.input(1)?, call.optional_input(2)?, call.output(0)?);
    let dtype = y.dtype();
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, scale, zero, y) = unsafe {
        let zero = zero.as_ref().map(|zero| tensor_bytes(zero)).transpose()?;
        (
            x.elements::<f32>()?,
            scale.elements::<f32>()?,
            zero.map_or(0, |zero| zero[0]),
            tensor_bytes_mut(&y)?,
        )
    };
    let number = i64::from(if dtype == Dtype::I8 { i32::from(zero.cast_signed()) } else { i32::from(zero) });
    let (least, most) = dtype_range(dtype);
    // The zero point is added after the clamp, so it is subtracted from the bounds.
    let bounds = [least - number, most - number].map(|bound| bound as f32);
    quantize_floats(cpu, x, (scale[0], zero), bounds, y);
    Ok(())
}

/// Quantizes floats to bytes. The zero point is already subtracted from the bounds.
pub(crate) fn quantize_floats(
    cpu: &Cpu,
    x: &[f32],
    (scale, zero): (f32, u8),
    bounds: [f32; 2],
    y: &mut [u8],
) {
    assert_eq!(x.len(), y.len(), "a byte for each float");
    let count = x.len();
    let pieces = if cpu.worker_count() > 1 && count >= 2 * MIN_WORK_PER_THREAD {
        count.div_ceil(PIECE_ELEMENTS)
    } else {
        1
    };
    let (share, y) = (count.div_ceil(pieces), DisjointSlice::new(y));
    ThreadTeam::parallel_for_each(cpu, pieces, &|piece| {
        let part = (piece * share).min(count)..((piece + 1) * share).min(count);
        // SAFETY: no two pieces share elements.
        let y = unsafe { y.range_mut(part.clone()) };
        cpu.isa().vectorize(QuantizePiece { x: &x[part], scale, zero, bounds, y });
    });
}

struct QuantizePiece<'a> {
    x: &'a [f32],
    scale: f32,
    zero: u8,
    bounds: [f32; 2],
    y: &'a mut [u8],
}

impl SimdTask for QuantizePiece<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { x, scale, zero, bounds, y } = self;
        for (x, y) in x.iter().zip(y) {
            // A division, as ONNX defines it: multiplying by the reciprocal would round twice, and ties would round differently.
            let step = x / scale;
            let whole = (clamp_value(step, bounds) + ROUNDING_OFFSET).to_bits() as u8;
            // NaN becomes 0, as when floats are converted to integers.
            *y = if step.is_nan() { 0 } else { whole.wrapping_add(zero) };
        }
    }
}
