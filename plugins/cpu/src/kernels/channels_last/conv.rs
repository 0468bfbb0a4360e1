//! The row of `oarlock.Conv`.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{Call, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, ensure};

use super::convolution::Convolution;
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
    let image = number.rank(3, 4);
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
            image.named("W").flags(OperandFlags::UNALIGNED),
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
    let convolution = match Precision::of(call)? {
        Precision::F32 => Convolution::new(cpu, &geometry),
        Precision::Bf16 => Convolution::rounded(cpu, &geometry)?,
    };
    Ok((convolution, Activation::of(call)?))
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
    let packed = convolution.pack_shared(cpu, constants::place(&w), weights)?;
    let dims = [call.input(0)?.dims().to_vec(), call.output(0)?.dims().to_vec()];
    Ok(Arc::new(move |cpu, call| {
        let is_prepared = call.input(0)?.dims() == dims[0] && call.output(0)?.dims() == dims[1];
        super::expect_prepared(is_prepared)?;
        with_operands(call, convolution.outputs(), activation, |x, finish, y| {
            convolution.compute(cpu, (x, &packed), finish, y, &mut Scratch::of(call));
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
    // SAFETY: the device's memory is the host's, and the call vouches for its operands; a residual that lies where the output
    // goes is only reached through the output.
    let (x, bias, residual, y) = unsafe {
        (
            x.elements()?,
            call.optional_input(2)?.map(|bias| bias.elements()).transpose()?,
            z.filter(|_| !is_in_place).map(|z| z.elements()).transpose()?,
            y.elements_mut()?,
        )
    };
    super::expect_prepared(
        bias.is_none_or(|bias: &[f32]| bias.len() == outputs)
            && residual.is_none_or(|residual: &[f32]| residual.len() == y.len()),
    )?;
    let residual = match residual {
        _ if is_in_place => Residual::InPlace,
        Some(residual) => Residual::Apart(residual),
        None => Residual::None,
    };
    run(x, &Finish { bias, residual, activation }, y);
    Ok(())
}
