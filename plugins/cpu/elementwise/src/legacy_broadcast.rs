//! The first versions of binary ops, in which attributes control broadcasting of the second input: `broadcast` enables it, and
//! `axis` names the dimension of the first input where those of the second begin.

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Kernel, KernelCall, OperandSpec, Result, TensorView, ensure};

use super::iteration_space::OperandShape;
use super::prepared_loop::{self, PreparedLoop};
use super::registration::prepared_kernel;

/// The kernel of versions up to 6.
pub(super) fn legacy_kernel(
    op: &'static str,
    inputs: [OperandSpec; 2],
    output: OperandSpec,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let axis = |call: &KernelCall<'_>| {
        let is_broadcast = call.int_attribute("broadcast")?.unwrap_or(0) != 0;
        // Without `broadcast` the attribute `axis` has no meaning.
        let axis = if is_broadcast { call.int_attribute("axis")? } else { None };
        Ok(axis.map_or(BroadcastAlignment::Last, BroadcastAlignment::At))
    };
    aligned_kernel(op, inputs, output, pass, axis)
}

/// The kernel of versions up to 6 of an op whose second input has an element for each channel, or one for all.
pub(super) fn legacy_channel_kernel(
    op: &'static str,
    inputs: [OperandSpec; 2],
    output: OperandSpec,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    aligned_kernel(op, inputs, output, pass, |_| Ok(BroadcastAlignment::Channels))
}

/// How the dimensions of the second input align with those of the first.
#[derive(Clone, Copy)]
enum BroadcastAlignment {
    /// The last dimensions are the same.
    Last,
    /// They begin at this one, counted from the end if negative.
    At(i64),
    /// A single dimension, at dimension 1 of the first input if it has one.
    Channels,
}

fn aligned_kernel(
    op: &'static str,
    inputs: [OperandSpec; 2],
    output: OperandSpec,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
    alignment: impl Fn(&KernelCall<'_>) -> Result<BroadcastAlignment> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared_kernel(op, 1, move |call| {
        let (pass, alignment) = (pass(call)?, alignment(call)?);
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| run_aligned(&pass, alignment, cpu, call))
    })
    .until_version(6)
    .with_inputs(inputs)
    .with_outputs([output])
}

fn run_aligned(
    pass: &PreparedLoop,
    alignment: BroadcastAlignment,
    cpu: &Cpu,
    call: &KernelCall<'_>,
) -> Result<()> {
    let (first, second, output) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let behind = trailing_dimensions(&first, &second, alignment)?;
    let mut dims = second.dims().to_vec();
    // Dimensions of size 1 after its own move the second input to the named axis, where it broadcasts like any other.
    dims.resize(dims.len() + behind, 1);
    let mut strides = second.strides().to_vec();
    if !strides.is_empty() {
        // A dimension of size 1 is never walked, so its stride may be any.
        strides.resize(dims.len(), 1);
    }
    let first = prepared_loop::LoopOperand::from_tensor(&first, &pass.input_conversions()[0])?;
    let second = prepared_loop::LoopOperand::from_tensor(&second, &pass.input_conversions()[1])?;
    let second =
        prepared_loop::LoopOperand { shape: OperandShape { dims: &dims, strides: &strides }, ..second };
    pass.run_on_operands(
        cpu,
        &[first, second],
        prepared_loop::LoopOperand::from_tensor(&output, pass.output_conversion())?,
    )
}

/// The number of dimensions of the first input after those of the second.
fn trailing_dimensions(
    first: &TensorView<'_>,
    second: &TensorView<'_>,
    alignment: BroadcastAlignment,
) -> Result<usize> {
    let (rank, own) = (first.dims().len(), second.dims().len());
    let axis = match alignment {
        // A single slope is for all channels, and broadcasts without help.
        BroadcastAlignment::Channels if own == 1 && second.dims() != [1] && rank > 1 => 1,
        BroadcastAlignment::At(axis) if axis < 0 => axis + rank as i64,
        BroadcastAlignment::At(axis) => axis,
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
