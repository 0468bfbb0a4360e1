//! The rows of the reductions over axes: which versions take the axes as an attribute, which as an input.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, MemoryKind, Operand, OperandFlags, Result, bf16, dtype_set,
    f16, unexpected_dtype,
};

use super::finish;
use super::range::mend;
use super::reduction::{FloatSum, FloatSumSquare, L1, LogSumExp, Maximum, Minimum, Product, Sum, SumSquare};
use super::shape::{Shape, expect_reduced};
use super::walk::reduce;
use crate::device::Cpu;
use crate::kernels::rows::axis;
use crate::kernels::rows::number::{Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};

/// What the reductions take, and the extremes beyond that.
const NUMBERS: DtypeSet = dtype_set(&[
    Dtype::U32,
    Dtype::U64,
    Dtype::I32,
    Dtype::I64,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
]);
const ORDERED: DtypeSet = NUMBERS.union(dtype_set(&[Dtype::U8, Dtype::I8, Dtype::BOOL]));

/// The reductions that are ops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReductionOp {
    Sum,
    Mean,
    Product,
    L1,
    L2,
    LogSum,
    LogSumExp,
    SumSquare,
    Maximum,
    Minimum,
}

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    [
        rows("ReduceSum", 13, NUMBERS, ReductionOp::Sum),
        rows("ReduceMean", 18, NUMBERS, ReductionOp::Mean),
        rows("ReduceProd", 18, NUMBERS, ReductionOp::Product),
        rows("ReduceL1", 18, NUMBERS, ReductionOp::L1),
        rows("ReduceL2", 18, NUMBERS, ReductionOp::L2),
        rows("ReduceLogSum", 18, NUMBERS, ReductionOp::LogSum),
        rows("ReduceLogSumExp", 18, NUMBERS, ReductionOp::LogSumExp),
        rows("ReduceSumSquare", 18, NUMBERS, ReductionOp::SumSquare),
        rows("ReduceMax", 18, ORDERED, ReductionOp::Maximum),
        rows("ReduceMin", 18, ORDERED, ReductionOp::Minimum),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The attributes of a reduction.
struct Options {
    keeps_dims: bool,
    /// No axes mean none instead of all.
    keeps_all_without_axes: bool,
    axes: Vec<i64>,
}

impl Options {
    fn new(call: &Call<'_>) -> Result<Self> {
        Ok(Self {
            keeps_dims: call.int("keepdims")?.unwrap_or(1) != 0,
            keeps_all_without_axes: call.int("noop_with_empty_axes")?.unwrap_or(0) != 0,
            axes: call.ints("axes")?.unwrap_or_default().to_vec(),
        })
    }

    /// For each dimension whether it is reduced.
    fn is_reduced(&self, operands: &Operands<'_, '_>, rank: usize) -> Result<Vec<bool>> {
        let axes = operands.read_optional::<i64>(1)?.unwrap_or(&self.axes);
        if axes.is_empty() {
            return Ok(vec![!self.keeps_all_without_axes; rank]);
        }
        axis::mask(axes, rank)
    }
}

/// The row with the axes as an attribute, and the row with the axes as an input.
fn rows(name: &'static str, axes_since: u32, dtypes: DtypeSet, op: ReductionOp) -> [Kernel<Cpu>; 2] {
    let data = Operand::new(dtypes).group(1);
    let axes = Operand::new(DtypeSet::I64).named("axes").rank(1, 1).flags(OperandFlags::OPTIONAL);
    let row = |inputs: &[Operand]| {
        kernel(name, Options::new, move |cpu, options, operands| run(op, cpu, options, operands))
            .flags(KernelFlags::DETERMINISTIC)
            .inputs(inputs.iter().copied())
            .outputs([data.named("reduced")])
    };
    [
        row(&[data.named("data")]).since(1).until(axes_since - 1),
        row(&[data.named("data"), axes.on(MemoryKind::HOST)]).since(axes_since),
    ]
}

fn run(op: ReductionOp, cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    match operands.call().input(0)?.dtype() {
        Dtype::F32 => reduce_operand::<f32>(cpu, options, operands, op, reduce_floats),
        Dtype::F64 => reduce_operand::<f64>(cpu, options, operands, op, reduce_floats),
        Dtype::F16 => reduce_operand::<f16>(cpu, options, operands, op, reduce_floats),
        Dtype::BF16 => reduce_operand::<bf16>(cpu, options, operands, op, reduce_floats),
        Dtype::I32 => reduce_operand::<i32>(cpu, options, operands, op, reduce_integers),
        Dtype::I64 => reduce_operand::<i64>(cpu, options, operands, op, reduce_integers),
        Dtype::U32 => reduce_operand::<u32>(cpu, options, operands, op, reduce_integers),
        Dtype::U64 => reduce_operand::<u64>(cpu, options, operands, op, reduce_integers),
        Dtype::I8 => reduce_operand::<i8>(cpu, options, operands, op, reduce_extremes),
        Dtype::U8 => reduce_operand::<u8>(cpu, options, operands, op, reduce_extremes),
        Dtype::BOOL => reduce_operand::<bool>(cpu, options, operands, op, reduce_extremes),
        other => Err(unexpected_dtype(&["numbers", "truth values"], other)),
    }
}

/// Does a reduction with elements of a type.
type Reduce<T> = fn(ReductionOp, &Cpu, &Shape, &[T], &mut [T]);

fn reduce_operand<T: Number>(
    cpu: &Cpu,
    options: &Options,
    operands: &Operands<'_, '_>,
    op: ReductionOp,
    reduce: Reduce<T>,
) -> Result<()> {
    let (data, reduced) = (operands.call().input(0)?, operands.call().output(0)?);
    let is_reduced = options.is_reduced(operands, data.dims().len())?;
    expect_reduced(data.dims(), &is_reduced, options.keeps_dims, reduced.dims())?;
    let shape = Shape::new(data.dims(), &is_reduced)?;
    reduce(op, cpu, &shape, operands.read(0)?, operands.write(0)?);
    Ok(())
}

/// Sums of floats are exact ones in the float that the type is calculated in, so each is compiled once, whatever becomes of it.
fn reduce_floats<T: Real>(op: ReductionOp, cpu: &Cpu, shape: &Shape, x: &[T], y: &mut [T]) {
    match op {
        ReductionOp::Sum => {
            reduce::<T, Sum>(cpu, shape, x, y, finish::plain::<T, Sum>);
            mend(cpu, shape, x, y, |sum, _| sum);
        }
        ReductionOp::Mean => {
            reduce::<T, Sum>(cpu, shape, x, y, finish::mean);
            mend(cpu, shape, x, y, |sum, count| sum / count as f64);
        }
        ReductionOp::LogSum => reduce::<T, Sum>(cpu, shape, x, y, finish::logarithm),
        ReductionOp::SumSquare => reduce::<T, SumSquare>(cpu, shape, x, y, finish::plain::<T, SumSquare>),
        ReductionOp::L2 => reduce::<T, SumSquare>(cpu, shape, x, y, finish::root),
        ReductionOp::L1 => reduce::<T, L1>(cpu, shape, x, y, finish::plain::<T, L1>),
        ReductionOp::Product => reduce::<T, Product>(cpu, shape, x, y, finish::plain::<T, Product>),
        ReductionOp::LogSumExp => reduce::<T, LogSumExp>(cpu, shape, x, y, finish::plain::<T, LogSumExp>),
        ReductionOp::Maximum | ReductionOp::Minimum => reduce_extremes(op, cpu, shape, x, y),
    }
}

fn reduce_integers<T: Number>(op: ReductionOp, cpu: &Cpu, shape: &Shape, x: &[T], y: &mut [T]) {
    match op {
        ReductionOp::Sum => reduce::<T, Sum>(cpu, shape, x, y, finish::plain::<T, Sum>),
        ReductionOp::Mean => reduce::<T, FloatSum>(cpu, shape, x, y, finish::mean),
        ReductionOp::LogSum => reduce::<T, FloatSum>(cpu, shape, x, y, finish::logarithm),
        ReductionOp::SumSquare => reduce::<T, SumSquare>(cpu, shape, x, y, finish::plain::<T, SumSquare>),
        ReductionOp::L2 => reduce::<T, FloatSumSquare>(cpu, shape, x, y, finish::root),
        ReductionOp::L1 => reduce::<T, L1>(cpu, shape, x, y, finish::plain::<T, L1>),
        ReductionOp::Product => reduce::<T, Product>(cpu, shape, x, y, finish::plain::<T, Product>),
        ReductionOp::LogSumExp => reduce::<T, LogSumExp>(cpu, shape, x, y, finish::plain::<T, LogSumExp>),
        ReductionOp::Maximum | ReductionOp::Minimum => reduce_extremes(op, cpu, shape, x, y),
    }
}

/// The greatest element, or the least: of the narrowest types there is nothing else.
fn reduce_extremes<T: Number>(op: ReductionOp, cpu: &Cpu, shape: &Shape, x: &[T], y: &mut [T]) {
    if op == ReductionOp::Minimum {
        reduce::<T, Minimum>(cpu, shape, x, y, finish::plain::<T, Minimum>);
    } else {
        reduce::<T, Maximum>(cpu, shape, x, y, finish::plain::<T, Maximum>);
    }
}
