//! The first versions of ops of two inputs, in which attributes say how the second is repeated: `broadcast` whether it is, and
//! `axis` at which dimension of the first its own begin.

use oarlock_sdk::{Call, Kernel, Operand, Result, Tensor, ensure};

use super::pass::{self, Pass};
use super::plan::Shape;
use super::row::prepared;
use crate::device::Cpu;

/// The row of versions up to the sixth.
pub(super) fn row(
    op: &'static str,
    inputs: [Operand; 2],
    output: Operand,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let axis = |call: &Call<'_>| {
        let is_broadcast = call.int("broadcast")?.unwrap_or(0) != 0;
        let axis = if is_broadcast { call.int("axis")? } else { None };
        Ok(axis.map_or(Alignment::Last, Alignment::At))
    };
    row_aligned(op, inputs, output, pass, axis)
}

/// The row of versions up to the sixth of an op whose second input has an element for each channel, or one for all.
pub(super) fn row_with_channels(
    op: &'static str,
    inputs: [Operand; 2],
    output: Operand,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    row_aligned(op, inputs, output, pass, |_| Ok(Alignment::Channels))
}

/// Where the dimensions of the second input begin in the first.
#[derive(Clone, Copy)]
enum Alignment {
    /// So that the last are the same.
    Last,
    /// At this one, counted from the last where negative.
    At(i64),
    /// A single dimension at the second of the first, if there is one.
    Channels,
}

fn row_aligned(
    op: &'static str,
    inputs: [Operand; 2],
    output: Operand,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
    alignment: impl Fn(&Call<'_>) -> Result<Alignment> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared(op, 1, move |call| {
        let (pass, alignment) = (pass(call)?, alignment(call)?);
        Ok(move |cpu: &Cpu, call: &Call<'_>| run(&pass, alignment, cpu, call))
    })
    .until(6)
    .inputs(inputs)
    .outputs([output])
}

fn run(pass: &Pass, alignment: Alignment, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
    let (first, second, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let behind = dimensions_behind(&first, &second, alignment)?;
    let mut dims = second.dims().to_vec();
    dims.resize(dims.len() + behind, 1);
    let mut strides = second.strides().to_vec();
    if !strides.is_empty() {
        strides.resize(dims.len(), 1);
    }
    let first = pass::Operand::of(&first, &pass.inputs()[0])?;
    let second = pass::Operand::of(&second, &pass.inputs()[1])?;
    let second = pass::Operand { shape: Shape { dims: &dims, strides: &strides }, ..second };
    pass.run_over(cpu, &[first, second], pass::Operand::of(&output, pass.output())?)
}

/// How many dimensions the first input has behind those of the second.
fn dimensions_behind(first: &Tensor<'_>, second: &Tensor<'_>, alignment: Alignment) -> Result<usize> {
    let (rank, own) = (first.dims().len(), second.dims().len());
    let axis = match alignment {
        Alignment::Channels if own == 1 && second.dims() != [1] && rank > 1 => 1,
        Alignment::At(axis) if axis < 0 => axis + rank as i64,
        Alignment::At(axis) => axis,
        _ => return Ok(0),
    };
    let behind = usize::try_from(axis).ok().and_then(|axis| rank.checked_sub(axis)?.checked_sub(own));
    ensure!(
        behind.is_some(),
        invalid_argument,
        "expected an `axis` at which {:?} fits into {:?}, found {axis}",
        second.dims(),
        first.dims()
    );
    Ok(behind.unwrap_or(0))
}
