//! Reductions over some dimensions.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, Result};

use super::MIN_COOPERATIVE_ROW;
use super::elementwise::{check_work_group_count, work_group_count};
use super::registration::{
    ALL_DTYPES, FLOAT_DTYPES, INDEX_DTYPES, NUMERIC_DTYPES, arithmetic_kernel, check_output_shape,
    contiguous_operand, host_operand, input_view, output_view, strided_operand,
};
use crate::argument_list::ArgumentList;
use crate::device::GpuDevices;
use crate::gpu::{Gpu, MAX_WORK_GROUP_SIZE};
use crate::host_operands::optional_host_integers;
use crate::launch::launch_variant;
use crate::operand_view::OperandView;
use crate::operand_walk::{OperandWalk, saturating_element_count};
use crate::source::{
    ArithmeticKind, ProgramVariant, ReduceProgram, ReductionKind, arithmetic_kind, element_size,
    needs_wide_indices,
};

/// Aim for this many work-groups by splitting long reductions into parts; a part has at least
/// [`MIN_PART_ELEMENTS`], so that the second pass that combines them stays cheap.
// Large GPUs have 100 to 300 compute units, and each hides the latency of memory by switching between groups.
const MIN_WORK_GROUPS: i64 = 512;
/// 32 elements for each of a group's 256 work-items.
const MIN_PART_ELEMENTS: i64 = 1 << 13;

const REDUCTION_OPS: &[(&str, ReductionKind, DtypeSet, u32)] = &[
    ("ReduceSum", ReductionKind::Sum, NUMERIC_DTYPES, 13),
    ("ReduceMean", ReductionKind::Mean, NUMERIC_DTYPES, 18),
    ("ReduceMax", ReductionKind::Max, ALL_DTYPES, 18),
    ("ReduceMin", ReductionKind::Min, ALL_DTYPES, 18),
    ("ReduceProd", ReductionKind::Product, NUMERIC_DTYPES, 18),
    ("ReduceL1", ReductionKind::L1, NUMERIC_DTYPES, 18),
    ("ReduceL2", ReductionKind::L2, NUMERIC_DTYPES, 18),
    ("ReduceSumSquare", ReductionKind::SumSquare, NUMERIC_DTYPES, 18),
    ("ReduceLogSum", ReductionKind::LogSum, FLOAT_DTYPES, 18),
    ("ReduceLogSumExp", ReductionKind::LogSumExp, FLOAT_DTYPES, 18),
];

pub(super) fn reduction_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let rows = REDUCTION_OPS.iter().flat_map(|(op, reduction, dtypes, axes_are_an_operand)| {
        let make = || {
            arithmetic_kernel(op, |gpus: &GpuDevices<G>, call| run_reduction(gpus, call, *reduction))
                // The host provides memory for the partial results, so that nothing is allocated while a stream runs.
                .with_workspace(|_, call| Ok(ReducePlan::new(call)?.workspace_size()))
                .with_outputs([contiguous_operand(*dtypes).with_dtype_group(1).with_name("reduced")])
        };
        let data = strided_operand(*dtypes).with_dtype_group(1).with_name("data");
        let axes = host_operand(INDEX_DTYPES).with_flags(OperandFlags::OPTIONAL).with_name("axes");
        [
            make().until_version(axes_are_an_operand - 1).with_inputs([data]),
            make().since_version(*axes_are_an_operand).with_inputs([data, axes]),
        ]
    });
    rows.collect()
}

/// Decisions about one call.
struct ReducePlan {
    x: OperandView,
    y: OperandView,
    /// Number of output elements, and of input elements that reduce to each.
    rows: i64,
    reduced: i64,
    kept_walk: OperandWalk,
    reduced_walk: OperandWalk,
    /// Number of partial results per output element; 1 if a single pass is enough.
    parts: i64,
    is_cooperative: bool,
    /// The accumulator's dtype.
    compute: Dtype,
}

impl ReducePlan {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
        let named = match optional_host_integers(call, 1)? {
            Some(axes) => axes,
            None => call.ints_attribute("axes")?.unwrap_or_default().to_vec(),
        };
        let rank = x.dims.len();
        let named: Vec<usize> = named.iter().map(|at| resolve_axis(*at, rank)).collect::<Result<_>>()?;
        let nothing_means_nothing = call.int_attribute("noop_with_empty_axes")?.unwrap_or(0) != 0;
        let is_reduced = |axis: usize| named.contains(&axis) || (named.is_empty() && !nothing_means_nothing);
        let keeps = call.int_attribute("keepdims")?.unwrap_or(1) != 0;
        let of = |list: &[i64], wanted: bool| -> Vec<i64> {
            (0..rank).filter(|axis| is_reduced(*axis) == wanted).map(|axis| list[axis]).collect()
        };
        let expected: Vec<i64> = (0..rank)
            .filter(|axis| keeps || !is_reduced(*axis))
            .map(|axis| if is_reduced(axis) { 1 } else { x.dims[axis] })
            .collect();
        check_output_shape(&expected, &y)?;
        let (kept_dims, reduced_dims) = (of(&x.dims, false), of(&x.dims, true));
        let (kept_steps, reduced_steps) = (of(&x.steps, false), of(&x.steps, true));
        let (rows, reduced) = (saturating_element_count(&kept_dims), saturating_element_count(&reduced_dims));
        let is_along_memory = reduced_steps.last().is_some_and(|step| *step == 1);
        // A work-group reads one row with consecutive loads if the reduced dimension is contiguous. If it is not, neighboring
        // rows are the ones that lie together, so one row per work-item is better once there are enough rows to fill the device.
        let is_cooperative = reduced >= MIN_COOPERATIVE_ROW
            && (is_along_memory || rows < MIN_WORK_GROUPS * i64::from(MAX_WORK_GROUP_SIZE));
        // `rows × parts` is at most `MIN_WORK_GROUPS`, so the workspace never exceeds 4 KiB.
        let parts = if is_cooperative && rows < MIN_WORK_GROUPS {
            (reduced / MIN_PART_ELEMENTS).clamp(1, MIN_WORK_GROUPS / rows.max(1))
        } else {
            1
        };
        // An empty operand is never read, so it needs no walk.
        let is_empty = x.count == 0;
        let walk = |dims: &[i64], steps: &[i64]| {
            if is_empty { OperandWalk::new(&[], &[&[]]) } else { OperandWalk::new(dims, &[steps]) }
        };
        // The 11 or 8 significand bits of a narrow float would soon drop addends, so those accumulate in `f32`.
        let compute = match arithmetic_kind(x.dtype) {
            ArithmeticKind::Float if x.dtype == Dtype::F64 => Dtype::F64,
            ArithmeticKind::Float => Dtype::F32,
            // Narrow integers wrap around only once, in the store, and not after each addition.
            ArithmeticKind::Signed => Dtype::I64,
            ArithmeticKind::Unsigned | ArithmeticKind::Truth => Dtype::U64,
        };
        Ok(Self {
            kept_walk: walk(&kept_dims, &kept_steps),
            reduced_walk: walk(&reduced_dims, &reduced_steps),
            x,
            y,
            rows,
            reduced,
            parts,
            is_cooperative,
            compute,
        })
    }

    fn workspace_size(&self) -> u64 {
        if self.parts == 1 { 0 } else { (self.rows * self.parts) as u64 * element_size(self.compute) }
    }
}

fn run_reduction<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    reduction: ReductionKind,
) -> Result<()> {
    let plan = ReducePlan::new(call)?;
    let total = plan.reduced;
    if plan.rows == 0 {
        return Ok(());
    }
    if plan.parts == 1 {
        let walks = (&plan.kept_walk, &plan.reduced_walk);
        let shape = [plan.rows, plan.reduced, 1, total];
        return launch_pass(gpus, call, &plan, reduction, (&plan.x, true), (&plan.y, true), walks, shape);
    }
    let (rows, parts) = (plan.rows, plan.parts);
    // Two passes and no atomic additions: those come in any order, and sums of floats depend on the order.
    let between = OperandView::from_workspace(call, plan.compute, rows * parts)?;
    let walks = (&plan.kept_walk, &plan.reduced_walk);
    let shape = [rows * parts, plan.reduced, parts, total];
    launch_pass(gpus, call, &plan, reduction, (&plan.x, true), (&between, false), walks, shape)?;
    // Streams are in order, so the second pass finds what the first wrote: the parts of a row, side by side.
    let walks = (&OperandWalk::new(&[rows], &[&[parts]]), &OperandWalk::new(&[parts], &[&[1]]));
    launch_pass(
        gpus,
        call,
        &plan,
        reduction,
        (&between, false),
        (&plan.y, true),
        walks,
        [rows, parts, 1, total],
    )
}

/// Launches one pass. Each operand comes with a flag: true if it is the call's own and not the workspace. The shape is rows,
/// reduced elements, parts, and the element count that a mean divides by.
#[expect(clippy::too_many_arguments, reason = "each is one thing that differs between the passes")]
fn launch_pass<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    plan: &ReducePlan,
    reduction: ReductionKind,
    (x, is_first): (&OperandView, bool),
    (y, is_last): (&OperandView, bool),
    (kept, reduced): (&OperandWalk, &OperandWalk),
    shape: [i64; 4],
) -> Result<()> {
    let variant = ProgramVariant::Reduce(ReduceProgram {
        reduction,
        input: x.dtype,
        compute: plan.compute,
        output: y.dtype,
        is_first,
        is_last,
        is_cooperative: plan.is_cooperative,
        kept: (kept.rank(), kept.operand_accesses()[0]),
        reduced: (reduced.rank(), reduced.operand_accesses()[0]),
        // The length of a row counts too: with a stride of 0 it exceeds the operand.
        is_wide: needs_wide_indices([x.last_index(), y.last_index(), shape[1]]),
    });
    let arguments = ArgumentList::default()
        .with_operands([x, y])
        .with_walk(kept)
        .with_walk(reduced)
        .with_integers(&shape);
    let groups =
        if plan.is_cooperative { check_work_group_count(shape[0])? } else { work_group_count(shape[0])? };
    launch_variant(gpus, call, &variant, groups, &arguments)
}
