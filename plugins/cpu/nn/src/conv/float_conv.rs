//! The kernel `Conv` for floats.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_cpu_gemm::{
    ConvertTo, GemmEpilogue, GemmOperand, OperandForm, PackedOperand, ScratchBuffer, StoredElement, add_bias,
    compute_stored_gemm, gemm_scratch_size,
};
use oarlock_cpu_nhwc::channels_last::HalfFloatConv;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, bf16, dispatch,
    dtype_set, ensure, f16,
};

use super::conv_shape::ConvShape;
use super::direct;

/// The dtypes of convolutions in ONNX.
pub(super) const CONV_DTYPES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

pub(super) fn conv_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(CONV_DTYPES).with_dtype_group(1);
    Kernel::new_prepared("Conv", |cpu: &Cpu, call| {
        let narrow = match call.output(0)?.dtype() {
            Dtype::F16 => prepare_narrow::<f16>(cpu, call)?,
            Dtype::BF16 => prepare_narrow::<bf16>(cpu, call)?,
            _ => None,
        };
        // The NHWC algorithm for 16-bit floats does not support every shape; the general one converts elements while it packs.
        if let Some(run) = narrow {
            return Ok(run);
        }
        dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => prepare_conv::<T>(cpu, call))
    })
    .with_workspace(|cpu, call| {
        if matches!(call.output(0)?.dtype(), Dtype::F16 | Dtype::BF16)
            && let Some(convolution) =
                HalfFloatConv::from_call(cpu, call, &WindowAttributes::new(call)?, group_count(call)?)?
        {
            return Ok(convolution.scratch_size() as u64);
        }
        dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => workspace_size::<T>(cpu, call))
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        number.with_name("X").with_rank(3, u32::MAX),
        number.with_name("W").with_rank(3, u32::MAX),
        number.with_name("B").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([number.with_name("Y").with_rank(3, u32::MAX)])
}

type PreparedFloatConv = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

fn call_shape(call: &KernelCall<'_>, settings: &WindowAttributes, groups: i64) -> Result<ConvShape> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    ConvShape::new(settings, groups, x.dims(), w.dims(), y.dims())
}

fn group_count(call: &KernelCall<'_>) -> Result<i64> {
    Ok(call.int_attribute("group")?.unwrap_or(1))
}

/// Prepares the NHWC algorithm for narrow floats if it is faster.
fn prepare_narrow<E: StoredElement + ComputeElement<Float = f32>>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
) -> Result<Option<Arc<PreparedFloatConv>>> {
    let (settings, groups) = (WindowAttributes::new(call)?, group_count(call)?);
    let Some(convolution) = HalfFloatConv::from_call(cpu, call, &settings, groups)? else {
        return Ok(None);
    };
    let weights = convolution.pack_weights::<E>(cpu, call)?;
    Ok(Some(Arc::new(move |cpu, call| {
        if !convolution.matches_call(call)? {
            // The shapes differ from those that were prepared for: slower, but correct.
            return convolve::<E>(cpu, call, &settings, groups, None);
        }
        with_float_operands::<E>(call, convolution.output_channels(), |x, w, bias, y| {
            convolution.compute(cpu, (x, bias), (&weights, w), y, &mut ScratchBuffer::from_call(call));
            Ok(())
        })
    })))
}

fn prepare_conv<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedFloatConv>> {
    let (settings, groups) = (WindowAttributes::new(call)?, group_count(call)?);
    let layer = call_shape(call, &settings, groups)?;
    let w = call.input(1)?;
    // The direct algorithm reads each weight once per output row, so packing would gain nothing.
    let packed = if w.is_constant() && !layer.is_direct() {
        // SAFETY: device memory is host memory, and a constant is never written.
        let left = layer.weights_operand::<E>(unsafe { w.elements() }?)?;
        Some(PackedOperand::pack_left(cpu, &left, layer.rows, layer.depth()))
    } else {
        None
    };
    Ok(Arc::new(move |cpu, call| convolve::<E>(cpu, call, &settings, groups, packed.as_ref())))
}

fn workspace_size<E: StoredElement>(cpu: &Cpu, call: &KernelCall<'_>) -> Result<u64> {
    let layer = call_shape(call, &WindowAttributes::new(call)?, group_count(call)?)?;
    if layer.is_direct() {
        return Ok(0);
    }
    // Narrow floats are summed in `f32`, so the product cannot write to the output and needs a buffer.
    let as_stored = <E as ConvertTo<E::ComputeType>>::IS_IDENTITY;
    let left = match (call.input(1)?.is_constant(), as_stored) {
        (true, _) => OperandForm::Packed,
        (false, true) => OperandForm::InPlace { items: layer.groups, side_by_side: false },
        (false, false) => OperandForm::Anew { items: layer.groups },
    };
    let sides = (left, layer.images_form(as_stored));
    Ok(gemm_scratch_size::<E::ComputeType>(cpu, layer.gemm_shape(), sides, !as_stored))
}

fn convolve<E: StoredElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    settings: &WindowAttributes,
    groups: i64,
    packed: Option<&PackedOperand<E::ComputeType>>,
) -> Result<()> {
    let layer = call_shape(call, settings, groups)?;
    with_float_operands::<E>(call, layer.groups * layer.rows, |x, w, bias, y| {
        convolve_by_gemm(cpu, call, &layer, (x, w, bias), y, packed)
    })
}

/// Runs a function with the images, weights, bias and output of a convolution with this many outputs.
fn with_float_operands<E: StoredElement>(
    call: &KernelCall<'_>,
    outputs: usize,
    run: impl FnOnce(&[E], &[E], Option<&[E]>, &mut [E]) -> Result<()>,
) -> Result<()> {
    let bias = call.optional_input(2)?;
    if let Some(bias) = &bias {
        ensure!(
            bias.element_count()? == outputs,
            invalid_argument,
            "expected {outputs} biases, one for each output channel, found shape {:?}",
            bias.dims()
        );
    }
    // SAFETY: device memory is host memory, and the call guarantees its operands.
    let (x, w, y) = unsafe {
        (
            call.input(0)?.elements::<E>()?,
            call.input(1)?.elements::<E>()?,
            call.output(0)?.elements_mut::<E>()?,
        )
    };
    // SAFETY: as above.
    let bias = bias.map(|bias| unsafe { bias.elements::<E>() }).transpose()?;
    if y.is_empty() {
        return Ok(());
    }
    run(x, w, bias, y)
}

fn convolve_by_gemm<E: StoredElement>(
    cpu: &Cpu,
    call: &KernelCall<'_>,
    layer: &ConvShape,
    (x, w, bias): (&[E], &[E], Option<&[E]>),
    y: &mut [E],
    packed: Option<&PackedOperand<E::ComputeType>>,
) -> Result<()> {
    if layer.is_direct() {
        direct::compute_direct(cpu, layer, x, w, bias, y);
        return Ok(());
    }
    let left = layer.weights_operand(w)?;
    // A call may pass other weights than the constant that was packed.
    let fits =
        |packed: &&PackedOperand<_>| (packed.lane_count(), packed.depth()) == (layer.rows, layer.depth());
    let left = match packed.filter(fits) {
        Some(packed) => GemmOperand::Packed(packed),
        None => GemmOperand::Operand(&left),
    };
    let right = layer.images_operand(x, cpu.isa())?;
    let add_bias = bias.map(|bias| add_bias(bias, layer.groups));
    let epilogue = add_bias.as_ref().map(|add_bias| add_bias as &GemmEpilogue<'_, E::ComputeType>);
    compute_stored_gemm(
        cpu,
        layer.gemm_shape(),
        (left, GemmOperand::Operand(&*right)),
        y,
        epilogue,
        &mut ScratchBuffer::from_call(call),
    );
    Ok(())
}
