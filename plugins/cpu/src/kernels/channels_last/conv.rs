//! The row of `oarlock.Conv`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use std::slice;

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, bf16, dtype_set,
    ensure,
};

use super::convolution::Convolution;
use super::dense::Paired;
use super::finish::{Finish, Residual};
use super::geometry::Geometry;
use crate::constants;
use crate::device::Cpu;
use crate::gemm::Scratch;
use crate::kernels::activation::Activation;
use crate::kernels::conv::window::Settings;
use crate::kernels::precision::Precision;

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Operand::new(DtypeSet::F32);
    let image = Operand::new(dtype_set(&[Dtype::F32, Dtype::BF16])).rank(3, 4);
    Kernel::prepared("Conv", prepare)
        .domain("oarlock")
        .supports(|cpu, call| {
            ensure!(
                call.input(1)?.is_constant(),
                unimplemented,
                "expected weights that are constant, found some that are not"
            );
            convolution(cpu, call).map(drop)
        })
        .workspace(|cpu, call| Ok(convolution(cpu, call)?.0.scratch_size() as u64))
        .in_place(0, 3)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            image.named("X"),
            number.rank(3, 4).named("W").flags(OperandFlags::UNALIGNED),
            number.named("B").rank(1, 1).flags(OperandFlags::OPTIONAL),
            image.named("Z").flags(OperandFlags::OPTIONAL),
        ])
        .outputs([image.named("Y")])
}

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

/// The convolution of a call, and what follows it.
fn convolution(cpu: &Cpu, call: &Call<'_>) -> Result<(Convolution, Activation)> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let groups = call.int("group")?.unwrap_or(1);
    let geometry = Geometry::of_convolution(&Settings::new(call)?, groups, x.dims(), w.dims(), y.dims())?;
    check_finish(call, geometry.outputs)?;
    let (paired, activation) = (paired(call)?, Activation::of(call)?);
    ensure!(
        !paired.output || activation.bounds().is_some(),
        unimplemented,
        "expected an activation that only cuts off for an output in bf16, found another"
    );
    let convolution = match Precision::of(call)? {
        Precision::F32 if paired == Paired::NONE => Convolution::new(cpu, &geometry),
        Precision::F32 => {
            let has_residual = call.optional_input(3)?.is_some();
            ensure!(
                paired.input && paired.output && (paired.residual || !has_residual),
                unimplemented,
                "expected all images in bf16 or none, found some"
            );
            Convolution::of_rounded_images(cpu, &geometry)?
        }
        Precision::Bf16 => {
            ensure!(
                cpu.isa().gains_by_bf16(),
                unimplemented,
                "expected a processor that multiplies bf16 faster than f32, found one that does not"
            );
            Convolution::rounded(cpu, &geometry, paired)?
        }
    };
    Ok((convolution, activation))
}

/// Which images of a call are in bf16.
fn paired(call: &Call<'_>) -> Result<Paired> {
    let is_rounded = |tensor: &Tensor<'_>| tensor.dtype() == Dtype::BF16;
    Ok(Paired {
        input: is_rounded(&call.input(0)?),
        residual: call.optional_input(3)?.as_ref().is_some_and(is_rounded),
        output: is_rounded(&call.output(0)?),
    })
}

/// Checks the bias and the residual of a convolution with so many output channels.
pub(super) fn check_finish(call: &Call<'_>, outputs: usize) -> Result<()> {
    if let Some(bias) = call.optional_input(2)? {
        expect_dims("B", &bias, &[outputs as i64])?;
    }
    if let Some(residual) = call.optional_input(3)? {
        expect_dims("Z", &residual, call.output(0)?.dims())?;
    }
    Ok(())
}

fn expect_dims(name: &str, tensor: &Tensor<'_>, expected: &[i64]) -> Result<()> {
    ensure!(
        tensor.dims() == expected,
        invalid_argument,
        "expected `{name}` of the shape {expected:?}, found {:?}",
        tensor.dims()
    );
    Ok(())
}

fn prepare(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let (convolution, activation) = convolution(cpu, call)?;
    let w = call.input(1)?;
    ensure!(w.is_constant(), unimplemented, "expected weights that are constant, found some that are not");
    call.describe(&convolution.description(cpu));
    // SAFETY: the device's memory is the host's, and the operand is constant.
    let weights = || unsafe { w.constant_elements() };
    let packed = convolution.pack_shared(cpu, constants::place(&w), Dtype::F32, weights)?;
    let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
    Ok(Arc::new(move |cpu, call| {
        let is_prepared = call.input(0)?.dims() == dims[0] && call.output(0)?.dims() == dims[1];
        super::expect_prepared(is_prepared)?;
        // SAFETY: as above.
        let weights = unsafe { call.input(1)?.element_bytes::<f32>()? }.as_chunks().0;
        let given = |first: usize, to: &mut [f32]| {
            for (to, weight) in to.iter_mut().zip(&weights[first..]) {
                *to = f32::from_ne_bytes(*weight);
            }
        };
        with_operands(call, convolution.outputs(), activation, |x, finish, y| {
            convolution.compute(cpu, (x, &packed, &given), finish, y, &mut Scratch::of(call));
        })
    }))
}

/// Runs a convolution with so many output channels on the images of a call and what follows it.
pub(super) fn with_operands(
    call: &Call<'_>,
    outputs: usize,
    activation: Activation,
    run: impl FnOnce(&[f32], &Finish<'_>, &mut [f32]),
) -> Result<()> {
    let (x, z, y) = (call.input(0)?, call.optional_input(3)?, call.output(0)?);
    let is_in_place = z.is_some_and(|z| z.place() == y.place());
    super::expect_prepared(
        z.is_none_or(|z| z.dims() == y.dims() && (!is_in_place || z.dtype() == y.dtype())),
    )?;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands; a residual that lies where the output
    // goes is only reached through the output.
    let (x, bias, residual, y) = unsafe {
        (
            words(&x)?,
            call.optional_input(2)?.map(|bias| bias.elements()).transpose()?,
            z.filter(|_| !is_in_place).map(|z| words(&z)).transpose()?,
            words_mut(&y)?,
        )
    };
    super::expect_prepared(bias.is_none_or(|bias: &[f32]| bias.len() == outputs))?;
    let residual = match residual {
        _ if is_in_place => Residual::InPlace,
        Some(residual) => Residual::Apart(residual),
        None => Residual::None,
    };
    run(x, &Finish { bias, residual, activation }, y);
    Ok(())
}

/// The numbers of an image, or the pairs that it holds in their places.
///
/// # Safety
///
/// As for [`Tensor::elements`].
unsafe fn words<'a>(image: &Tensor<'a>) -> Result<&'a [f32]> {
    // SAFETY: as the caller vouches.
    unsafe {
        if image.dtype() != Dtype::BF16 {
            return image.elements();
        }
        let numbers = image.elements::<bf16>()?;
        expect_pairs(numbers.as_ptr(), numbers.len())?;
        // Two of them are as many bytes as a number of f32, of which every pattern is one.
        Ok(slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len() / 2))
    }
}

/// The same, to be written.
///
/// # Safety
///
/// As for [`Tensor::elements_mut`].
unsafe fn words_mut<'a>(image: &Tensor<'a>) -> Result<&'a mut [f32]> {
    // SAFETY: as the caller vouches.
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
