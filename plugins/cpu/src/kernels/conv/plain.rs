//! `Conv`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, bf16, dispatch, dtype_set,
    ensure, f16,
};

use super::direct;
use super::layer::Layer;
use super::window::Settings;
use crate::device::Cpu;
use crate::gemm::{self, Convert, Finish, Form, Packed, Scratch, Side, Stored, add_bias, compute_stored};
use crate::kernels::channels_last::NarrowConvolution;
use crate::kernels::rows;

/// What convolutions take, as ONNX has it.
pub(super) const NUMBERS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(NUMBERS).group(1);
    Kernel::prepared("Conv", |cpu: &Cpu, call| {
        let narrow = match call.output(0)?.dtype() {
            Dtype::F16 => prepare_narrow::<f16>(cpu, call)?,
            Dtype::BF16 => prepare_narrow::<bf16>(cpu, call)?,
            _ => None,
        };
        if let Some(run) = narrow {
            return Ok(run);
        }
        dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => prepare::<T>(cpu, call))
    })
    .workspace(|cpu, call| {
        if matches!(call.output(0)?.dtype(), Dtype::F16 | Dtype::BF16)
            && let Some(convolution) = NarrowConvolution::of(cpu, call, &Settings::new(call)?, groups(call)?)?
        {
            return Ok(convolution.scratch_size() as u64);
        }
        dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => workspace::<T>(cpu, call))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        number.named("X").rank(3, u32::MAX),
        number.named("W").rank(3, u32::MAX),
        number.named("B").rank(1, 1).flags(OperandFlags::OPTIONAL),
    ])
    .outputs([number.named("Y").rank(3, u32::MAX)])
}

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

fn layer(call: &Call<'_>, settings: &Settings, groups: i64) -> Result<Layer> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    Layer::new(settings, groups, x.dims(), w.dims(), y.dims())
}

fn groups(call: &Call<'_>) -> Result<i64> {
    Ok(call.int("group")?.unwrap_or(1))
}

/// Narrow floats, where that is faster.
fn prepare_narrow<E: Stored + rows::number::Number<Float = f32>>(
    cpu: &Cpu,
    call: &Call<'_>,
) -> Result<Option<Arc<Run>>> {
    let (settings, groups) = (Settings::new(call)?, groups(call)?);
    let Some(convolution) = NarrowConvolution::of(cpu, call, &settings, groups)? else { return Ok(None) };
    let weights = convolution.pack::<E>(cpu, call)?;
    Ok(Some(Arc::new(move |cpu, call| {
        if !convolution.fits(call)? {
            return convolve::<E>(cpu, call, &settings, groups, None);
        }
        with_operands::<E>(call, convolution.outputs(), |x, w, bias, y| {
            convolution.compute(cpu, (x, bias), (&weights, w), y, &mut Scratch::of(call));
            Ok(())
        })
    })))
}

fn prepare<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let (settings, groups) = (Settings::new(call)?, groups(call)?);
    let layer = layer(call, &settings, groups)?;
    let w = call.input(1)?;
    let packed = if w.is_constant() && !layer.is_direct() {
        // SAFETY: the device's memory is the host's, and a constant is never written.
        let left = layer.left::<E>(unsafe { w.elements() }?)?;
        Some(Packed::left(cpu, &left, layer.rows, layer.depth()))
    } else {
        None
    };
    Ok(Arc::new(move |cpu, call| convolve::<E>(cpu, call, &settings, groups, packed.as_ref())))
}

fn workspace<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<u64> {
    let layer = layer(call, &Settings::new(call)?, groups(call)?)?;
    if layer.is_direct() {
        return Ok(0);
    }
    let as_stored = <E as Convert<E::Computed>>::SAME;
    let left = match (call.input(1)?.is_constant(), as_stored) {
        (true, _) => Form::Packed,
        (false, true) => Form::InPlace { items: layer.groups, side_by_side: false },
        (false, false) => Form::Anew { items: layer.groups },
    };
    let sides = (left, layer.right_form(as_stored));
    Ok(gemm::scratch_size::<E::Computed>(cpu, layer.sizes(), sides, !as_stored))
}

fn convolve<E: Stored>(
    cpu: &Cpu,
    call: &Call<'_>,
    settings: &Settings,
    groups: i64,
    packed: Option<&Packed<E::Computed>>,
) -> Result<()> {
    let layer = layer(call, settings, groups)?;
    with_operands::<E>(call, layer.groups * layer.rows, |x, w, bias, y| {
        multiply(cpu, call, &layer, (x, w, bias), y, packed)
    })
}

/// The operands of a convolution with so many outputs: the images, the weights, the bias and the output.
fn with_operands<E: Stored>(
    call: &Call<'_>,
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
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
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

fn multiply<E: Stored>(
    cpu: &Cpu,
    call: &Call<'_>,
    layer: &Layer,
    (x, w, bias): (&[E], &[E], Option<&[E]>),
    y: &mut [E],
    packed: Option<&Packed<E::Computed>>,
) -> Result<()> {
    if layer.is_direct() {
        direct::compute(cpu, layer, x, w, bias, y);
        return Ok(());
    }
    let left = layer.left(w)?;
    let fits = |packed: &&Packed<_>| (packed.lanes(), packed.depth()) == (layer.rows, layer.depth());
    let left = match packed.filter(fits) {
        Some(packed) => Side::Packed(packed),
        None => Side::Operand(&left),
    };
    let right = layer.right(x, cpu.isa())?;
    let add_bias = bias.map(|bias| add_bias(bias, layer.groups));
    let finish = add_bias.as_ref().map(|add_bias| add_bias as &Finish<'_, E::Computed>);
    compute_stored(cpu, layer.sizes(), (left, Side::Operand(&*right)), y, finish, &mut Scratch::of(call));
    Ok(())
}
