//! Reductions over some dimensions.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, OperandFlags, Result};

use super::elementwise::{groups, within_groups};
use super::row::{
    ALL, FLOATS, INDICES, NUMBERS, arithmetic, axis, check_shape, input, on_host, output, plain, strided,
};
use crate::arguments::Arguments;
use crate::device::Gpus;
use crate::gpu::{Gpu, WORK_GROUP};
use crate::host::optional_integers;
use crate::program::launch;
use crate::source::{Kind, Reduce, Reduction, Variant, is_wide, kind, size_of_element};
use crate::view::View;
use crate::walk::{Walk, product};

/// From this many elements on, work-items work together on one output.
const TOGETHER: i64 = 64;
/// The work-groups that a device should have at least, and how many elements a part of an output has at least.
const MANY_GROUPS: i64 = 512;
const PART: i64 = 1 << 13;

const TABLE: &[(&str, Reduction, DtypeSet, u32)] = &[
    ("ReduceSum", Reduction::Sum, NUMBERS, 13),
    ("ReduceMean", Reduction::Mean, NUMBERS, 18),
    ("ReduceMax", Reduction::Max, ALL, 18),
    ("ReduceMin", Reduction::Min, ALL, 18),
    ("ReduceProd", Reduction::Product, NUMBERS, 18),
    ("ReduceL1", Reduction::L1, NUMBERS, 18),
    ("ReduceL2", Reduction::L2, NUMBERS, 18),
    ("ReduceSumSquare", Reduction::SumSquare, NUMBERS, 18),
    ("ReduceLogSum", Reduction::LogSum, FLOATS, 18),
    ("ReduceLogSumExp", Reduction::LogSumExp, FLOATS, 18),
];

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let rows = TABLE.iter().flat_map(|(op, reduction, dtypes, axes_are_an_operand)| {
        let make = || {
            arithmetic(op, |gpus: &Gpus<G>, call| run(gpus, call, *reduction))
                .workspace(|_, call| Ok(Plan::new(call)?.workspace()))
                .outputs([plain(*dtypes).group(1).named("reduced")])
        };
        let data = strided(*dtypes).group(1).named("data");
        let axes = on_host(INDICES).flags(OperandFlags::OPTIONAL).named("axes");
        [
            make().until(axes_are_an_operand - 1).inputs([data]),
            make().since(*axes_are_an_operand).inputs([data, axes]),
        ]
    });
    rows.collect()
}

/// How one call is done.
struct Plan {
    x: View,
    y: View,
    /// Elements of the output, and elements that become one of them.
    rows: i64,
    reduced: i64,
    kept_walk: Walk,
    reduced_walk: Walk,
    /// In how many parts each output is computed before these are put together.
    parts: i64,
    is_cooperative: bool,
    /// What is summed up in.
    compute: Dtype,
}

impl Plan {
    fn new(call: &Call<'_>) -> Result<Self> {
        let (x, y) = (input(call, 0)?, output(call, 0)?);
        let named = match optional_integers(call, 1)? {
            Some(axes) => axes,
            None => call.ints("axes")?.unwrap_or_default().to_vec(),
        };
        let rank = x.dims.len();
        let named: Vec<usize> = named.iter().map(|at| axis(*at, rank)).collect::<Result<_>>()?;
        let nothing_means_nothing = call.int("noop_with_empty_axes")?.unwrap_or(0) != 0;
        let is_reduced = |axis: usize| named.contains(&axis) || (named.is_empty() && !nothing_means_nothing);
        let keeps = call.int("keepdims")?.unwrap_or(1) != 0;
        let of = |list: &[i64], wanted: bool| -> Vec<i64> {
            (0..rank).filter(|axis| is_reduced(*axis) == wanted).map(|axis| list[axis]).collect()
        };
        let expected: Vec<i64> = (0..rank)
            .filter(|axis| keeps || !is_reduced(*axis))
            .map(|axis| if is_reduced(axis) { 1 } else { x.dims[axis] })
            .collect();
        check_shape(&expected, &y)?;
        let (kept_dims, reduced_dims) = (of(&x.dims, false), of(&x.dims, true));
        let (kept_steps, reduced_steps) = (of(&x.steps, false), of(&x.steps, true));
        let (rows, reduced) = (product(&kept_dims), product(&reduced_dims));
        let is_along_memory = reduced_steps.last().is_some_and(|step| *step == 1);
        let is_cooperative =
            reduced >= TOGETHER && (is_along_memory || rows < MANY_GROUPS * i64::from(WORK_GROUP));
        let parts = if is_cooperative && rows < MANY_GROUPS {
            (reduced / PART).clamp(1, MANY_GROUPS / rows.max(1))
        } else {
            1
        };
        // Nobody walks through an operand without elements.
        let is_empty = x.count == 0;
        let walk = |dims: &[i64], steps: &[i64]| {
            if is_empty { Walk::new(&[], &[&[]]) } else { Walk::new(dims, &[steps]) }
        };
        let compute = match kind(x.dtype) {
            Kind::Float if x.dtype == Dtype::F64 => Dtype::F64,
            Kind::Float => Dtype::F32,
            Kind::Signed => Dtype::I64,
            Kind::Unsigned | Kind::Truth => Dtype::U64,
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

    fn workspace(&self) -> u64 {
        if self.parts == 1 { 0 } else { (self.rows * self.parts) as u64 * size_of_element(self.compute) }
    }
}

fn run<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, reduction: Reduction) -> Result<()> {
    let plan = Plan::new(call)?;
    let total = plan.reduced;
    if plan.rows == 0 {
        return Ok(());
    }
    if plan.parts == 1 {
        let walks = (&plan.kept_walk, &plan.reduced_walk);
        let shape = [plan.rows, plan.reduced, 1, total];
        return pass(gpus, call, &plan, reduction, (&plan.x, true), (&plan.y, true), walks, shape);
    }
    let (rows, parts) = (plan.rows, plan.parts);
    let between = View::workspace(call, plan.compute, rows * parts)?;
    let walks = (&plan.kept_walk, &plan.reduced_walk);
    let shape = [rows * parts, plan.reduced, parts, total];
    pass(gpus, call, &plan, reduction, (&plan.x, true), (&between, false), walks, shape)?;
    let walks = (&Walk::new(&[rows], &[&[parts]]), &Walk::new(&[parts], &[&[1]]));
    pass(gpus, call, &plan, reduction, (&between, false), (&plan.y, true), walks, [rows, parts, 1, total])
}

/// One launch: each operand with whether it is the call's own, and the shape: rows, elements to reduce, parts, and how
/// many elements there are for a mean.
#[expect(clippy::too_many_arguments, reason = "each is one thing that differs between the passes")]
fn pass<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    plan: &Plan,
    reduction: Reduction,
    (x, is_first): (&View, bool),
    (y, is_last): (&View, bool),
    (kept, reduced): (&Walk, &Walk),
    shape: [i64; 4],
) -> Result<()> {
    let variant = Variant::Reduce(Reduce {
        reduction,
        input: x.dtype,
        compute: plan.compute,
        output: y.dtype,
        is_first,
        is_last,
        is_cooperative: plan.is_cooperative,
        kept: (kept.rank(), kept.accesses()[0]),
        reduced: (reduced.rank(), reduced.accesses()[0]),
        is_wide: is_wide([x.last(), y.last(), shape[1]]),
    });
    let arguments = Arguments::default().operands([x, y]).walk(kept).walk(reduced).integers(&shape);
    let groups = if plan.is_cooperative { within_groups(shape[0])? } else { groups(shape[0])? };
    launch(gpus, call, &variant, groups, &arguments)
}
