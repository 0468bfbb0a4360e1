//! The kernel `oarlock.Conv`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::slice;
use std::sync::Arc;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::constant_cache;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::fused_activation::FusedActivation;
use oarlock_cpu_base::product_precision::ProductPrecision;
use oarlock_cpu_base::window::WindowAttributes;
use oarlock_cpu_gemm::ScratchBuffer;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, TensorView, bf16,
    dtype_set, ensure,
};

use super::algorithm::NhwcConv;
use super::bf16_images::Bf16Images;
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::geometry::NhwcGeometry;

pub(super) fn nhwc_conv_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(DtypeSet::F32);
    let image = OperandSpec::new(dtype_set(&[Dtype::F32, Dtype::BF16])).with_rank(3, 4);
    Kernel::new_prepared("Conv", prepare_conv)
        .with_domain(OARLOCK_DOMAIN)
        .with_support_check(|cpu, call| {
            ensure!(
                call.input(1)?.is_constant(),
                unimplemented,
                "expected weights that are constant, found some that are not"
            );
            plan_convolution(cpu, call).map(drop)
        })
        .with_workspace(|cpu, call| Ok(plan_convolution(cpu, call)?.0.scratch_size() as u64))
        .with_in_place(0, 3)
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs([
            image.with_name("X"),
            number
                .with_rank(3, 4)
                .with_name("W")
                .with_flags(OperandFlags::UNALIGNED.union(OperandFlags::ON_DEMAND)),
            number.with_name("B").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
            image.with_name("Z").with_flags(OperandFlags::OPTIONAL),
        ])
        .with_outputs([image.with_name("Y")])
}

type PreparedConv = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

fn plan_convolution(cpu: &Cpu, call: &KernelCall<'_>) -> Result<(NhwcConv, FusedActivation)> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let groups = call.int_attribute("group")?.unwrap_or(1);
    let geometry =
        NhwcGeometry::for_convolution(&WindowAttributes::new(call)?, groups, x.dims(), w.dims(), y.dims())?;
    check_epilogue(call, geometry.outputs)?;
    let (paired, activation) = (bf16_images(call)?, FusedActivation::from_attributes(call)?);
    ensure!(
        !paired.output || activation.clip_bounds().is_some(),
        unimplemented,
        "expected an activation that only cuts off for an output in bf16, found another"
    );
    let convolution = match ProductPrecision::from_attribute(call)? {
        ProductPrecision::F32 if paired == Bf16Images::NONE => NhwcConv::new(cpu, &geometry),
        ProductPrecision::F32 => {
            let has_residual = call.optional_input(3)?.is_some();
            ensure!(
                paired.input && paired.output && (paired.residual || !has_residual),
                unimplemented,
                "expected all images in bf16 or none, found some"
            );
            NhwcConv::new_bf16_depthwise(cpu, &geometry)?
        }
        ProductPrecision::Bf16 => {
            ensure!(
                cpu.isa().prefers_bf16(),
                unimplemented,
                "expected a processor that multiplies bf16 faster than f32, found one that does not"
            );
            NhwcConv::new_bf16(cpu, &geometry, paired)?
        }
    };
    Ok((convolution, activation))
}

fn bf16_images(call: &KernelCall<'_>) -> Result<Bf16Images> {
    let is_rounded = |tensor: &TensorView<'_>| tensor.dtype() == Dtype::BF16;
    Ok(Bf16Images {
        input: is_rounded(&call.input(0)?),
        residual: call.optional_input(3)?.as_ref().is_some_and(is_rounded),
        output: is_rounded(&call.output(0)?),
    })
}

/// Checks the bias and the residual of a convolution with this many output channels.
pub(super) fn check_epilogue(call: &KernelCall<'_>, outputs: usize) -> Result<()> {
    if let Some(bias) = call.optional_input(2)? {
        expect_dims("B", &bias, &[outputs as i64])?;
    }
    if let Some(residual) = call.optional_input(3)? {
        expect_dims("Z", &residual, call.output(0)?.dims())?;
    }
    Ok(())
}

fn expect_dims(name: &str, tensor: &TensorView<'_>, expected: &[i64]) -> Result<()> {
    ensure!(
        tensor.dims() == expected,
        invalid_argument,
        "expected `{name}` of the shape {expected:?}, found {:?}",
        tensor.dims()
    );
    Ok(())
}

fn prepare_conv(cpu: &Cpu, call: &KernelCall<'_>) -> Result<Arc<PreparedConv>> {
    let (convolution, activation) = plan_convolution(cpu, call)?;
    let w = call.input(1)?;
    ensure!(w.is_constant(), unimplemented, "expected weights that are constant, found some that are not");
    call.describe_kernel(&convolution.description(cpu));
    let weights = || {
        call.read_constant(1, false)?;
        // SAFETY: device memory is host memory, and the operand is a constant that was just read.
        unsafe { w.constant_elements() }
    };
    let reads_original = convolution.reads_original_weights();
    if reads_original {
        call.read_constant(1, true)?;
    }
    let packed =
        convolution.pack_shared_weights(cpu, constant_cache::constant_range(&w), Dtype::F32, weights)?;
    let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
    Ok(Arc::new(move |cpu, call| {
        let is_prepared = call.input(0)?.dims() == dims[0] && call.output(0)?.dims() == dims[1];
        super::expect_prepared(is_prepared)?;
        let weights = match reads_original {
            // SAFETY: as above, and the weights were read for as long as this lives.
            true => unsafe { call.input(1)?.element_bytes::<f32>()? }.as_chunks().0,
            false => &[],
        };
        let given = |first: usize, to: &mut [f32]| {
            for (to, weight) in to.iter_mut().zip(&weights[first..]) {
                *to = f32::from_ne_bytes(*weight);
            }
        };
        with_conv_operands(call, convolution.output_channels(), activation, |x, epilogue, y| {
            convolution.compute(cpu, (x, &packed, &given), epilogue, y, &mut ScratchBuffer::from_call(call));
        })
    }))
}

/// Runs a convolution with its epilogue on the operands of a call.
pub(super) fn with_conv_operands(
    call: &KernelCall<'_>,
    outputs: usize,
    activation: FusedActivation,
    run: impl FnOnce(&[f32], &ConvEpilogue<'_>, &mut [f32]),
) -> Result<()> {
    let (x, z, y) = (call.input(0)?, call.optional_input(3)?, call.output(0)?);
    let is_in_place = z.is_some_and(|z| z.memory_location() == y.memory_location());
    super::expect_prepared(
        z.is_none_or(|z| z.dims() == y.dims() && (!is_in_place || z.dtype() == y.dtype())),
    )?;
    // SAFETY: device memory is host memory, and the call guarantees its operands; a residual in the memory of the output is only
    // accessed through the output.
    let (x, bias, residual, y) = unsafe {
        (
            image_words(&x)?,
            call.optional_input(2)?.map(|bias| bias.elements()).transpose()?,
            z.filter(|_| !is_in_place).map(|z| image_words(&z)).transpose()?,
            image_words_mut(&y)?,
        )
    };
    super::expect_prepared(bias.is_none_or(|bias: &[f32]| bias.len() == outputs))?;
    let residual = match residual {
        _ if is_in_place => ResidualSource::InPlace,
        Some(residual) => ResidualSource::Apart(residual),
        None => ResidualSource::None,
    };
    run(x, &ConvEpilogue { bias, residual, activation }, y);
    Ok(())
}

/// The words of an image: its numbers, or pairs of bf16.
///
/// # Safety
///
/// As for [`TensorView::elements`].
unsafe fn image_words<'a>(image: &TensorView<'a>) -> Result<&'a [f32]> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if image.dtype() != Dtype::BF16 {
            return image.elements();
        }
        let numbers = image.elements::<bf16>()?;
        expect_pairs(numbers.as_ptr(), numbers.len())?;
        // Two bf16 have the size of an `f32`, and every bit pattern is a valid `f32`.
        Ok(slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len() / 2))
    }
}

/// Mutable version of [`image_words`].
///
/// # Safety
///
/// As for [`TensorView::elements_mut`].
unsafe fn image_words_mut<'a>(image: &TensorView<'a>) -> Result<&'a mut [f32]> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if image.dtype() != Dtype::BF16 {
            return image.elements_mut();
        }
        let numbers = image.elements_mut::<bf16>()?;
        expect_pairs(numbers.as_ptr(), numbers.len())?;
        Ok(slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), numbers.len() / 2))
    }
}

fn expect_pairs(place: *const bf16, count: usize) -> Result<()> {
    ensure!(
        place.cast::<f32>().is_aligned() && count.is_multiple_of(2),
        invalid_argument,
        "expected whole pairs of bf16 at places that are multiples of four bytes, found others"
    );
    Ok(())
}
