//! Launches of element-wise programs.

use oarlock_sdk::shape::broadcast_dims;
use oarlock_sdk::{Dtype, KernelCall, PluginError, Result};

use crate::argument_list::{ArgumentList, FormulaNumber};
use crate::device::GpuDevices;
use crate::gpu::{Gpu, MAX_WORK_GROUP_SIZE};
use crate::launch::launch_variant;
use crate::operand_view::OperandView;
use crate::operand_walk::{OperandWalk, saturating_element_count};
use crate::source::{ElementFormula, MapProgram, ProgramVariant, needs_wide_indices};

/// An operand with its strides along the dimensions of the walk.
#[derive(Clone, Copy)]
pub(super) struct StridedOperand<'a> {
    pub(super) view: &'a OperandView,
    pub(super) steps: &'a [i64],
}

/// A formula with its compute dtype and parameters.
#[derive(Clone, Copy)]
pub(super) struct ElementwiseWork<'a> {
    pub(super) formula: ElementFormula,
    pub(super) compute: Dtype,
    pub(super) parameters: &'a [FormulaNumber],
}

impl ElementwiseWork<'_> {
    pub(super) fn without_parameters(formula: ElementFormula, compute: Dtype) -> Self {
        Self { formula, compute, parameters: &[] }
    }
}

/// Computes `output` element by element. The inputs broadcast to exactly its shape.
pub(super) fn run_elementwise<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    work: ElementwiseWork<'_>,
    inputs: &[&OperandView],
    output: &OperandView,
) -> Result<()> {
    super::registration::check_output_shape(
        &broadcast_dims(inputs.iter().map(|view| view.dims.as_slice()))?,
        output,
    )?;
    run_broadcast(gpus, call, work, inputs, output)
}

/// Like [`run_elementwise`], but the output may be larger than the inputs' common shape, as in `Expand`.
pub(super) fn run_broadcast<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    work: ElementwiseWork<'_>,
    inputs: &[&OperandView],
    output: &OperandView,
) -> Result<()> {
    let fit = |view: &&OperandView| {
        view.broadcast_strides(&output.dims).ok_or_else(|| {
            let (expected, found) = (&output.dims, &view.dims);
            PluginError::invalid_argument(format!(
                "expected a shape that can be repeated to {expected:?}, found {found:?}"
            ))
        })
    };
    let steps: Vec<Vec<i64>> = inputs.iter().map(fit).collect::<Result<_>>()?;
    let stepped: Vec<StridedOperand<'_>> =
        inputs.iter().zip(&steps).map(|(view, steps)| StridedOperand { view, steps }).collect();
    run_map(gpus, call, work, &output.dims, &stepped, StridedOperand { view: output, steps: &output.steps })
}

/// Runs a program once per element of `dims`.
pub(super) fn run_map<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    work: ElementwiseWork<'_>,
    dims: &[i64],
    inputs: &[StridedOperand<'_>],
    output: StridedOperand<'_>,
) -> Result<()> {
    let count = saturating_element_count(dims);
    // Drivers refuse a launch without work-groups.
    if count == 0 {
        return Ok(());
    }
    let operands = || inputs.iter().chain(std::iter::once(&output));
    let steps: Vec<&[i64]> = operands().map(|operand| operand.steps).collect();
    let walk = OperandWalk::new(dims, &steps);
    let mut accesses = walk.operand_accesses();
    // The output came last, and a walk has one access per operand.
    let output_access = accesses.pop().unwrap_or(crate::operand_walk::ElementAccess::Flat);
    // Nothing of the shape but its rank is compiled in, so calls of other sizes find the same program.
    let variant = ProgramVariant::Map(MapProgram {
        formula: work.formula,
        compute: work.compute,
        inputs: inputs.iter().map(|operand| operand.view.dtype).zip(accesses).collect(),
        output: (output.view.dtype, output_access),
        parameters: work.parameters.len() as u8,
        rank: walk.rank(),
        // The number of the work-item needs room too, even if every operand is smaller.
        is_wide: needs_wide_indices(operands().map(|operand| operand.view.last_index()).chain([count])),
    });
    let arguments = ArgumentList::default()
        .with_operands(operands().map(|operand| operand.view))
        .with_walk(&walk)
        .with_numbers(work.compute, work.parameters)
        .with_integers(&[count]);
    launch_variant(gpus, call, &variant, work_group_count(count)?, &arguments)
}

/// Number of work-groups that give each of `count` elements a work-item.
pub(super) fn work_group_count(count: i64) -> Result<u32> {
    check_work_group_count((count as u64).div_ceil(MAX_WORK_GROUP_SIZE.into()) as i64)
}

/// Refuses more work-groups than every driver supports in one dimension.
pub(super) fn check_work_group_count(groups: i64) -> Result<u32> {
    // The limit of CUDA. It also keeps the number of a group within `i32`, which kernels with narrow indices convert it to.
    i32::try_from(groups).map(|groups| groups as u32).map_err(|_| {
        PluginError::out_of_range(format!("expected at most {} work-groups, found {groups}", i32::MAX))
    })
}
