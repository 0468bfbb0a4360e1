//! The rows of the reductions over axes: some versions take the axes as an attribute, others as an input.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::axis;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, MemoryKind, OperandFlags, OperandSpec, Result, bf16,
    dtype_set, f16, unexpected_dtype,
};

use super::finalize;
use super::overflow::repair_overflow;
use super::reduction::{FloatSum, FloatSumSquare, L1, LogSumExp, Maximum, Minimum, Product, Sum, SumSquare};
use super::shape::{ReduceShape, expect_reduced_dims};
use super::traversal::reduce_elements;

/// The dtypes of all reductions; extremes take more.
const REDUCED_DTYPES: DtypeSet = dtype_set(&[
    Dtype::U32,
    Dtype::U64,
    Dtype::I32,
    Dtype::I64,
    Dtype::F16,
    Dtype::BF16,
    Dtype::F32,
    Dtype::F64,
]);
const EXTREME_DTYPES: DtypeSet = REDUCED_DTYPES.union(dtype_set(&[Dtype::U8, Dtype::I8, Dtype::BOOL]));

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

pub(super) fn axis_reduction_kernels() -> Vec<Kernel<Cpu>> {
    [
        // In opset 13 only `ReduceSum` got its axes as an input; the others followed in opset 18.
        versioned_kernels("ReduceSum", 13, REDUCED_DTYPES, ReductionOp::Sum),
        versioned_kernels("ReduceMean", 18, REDUCED_DTYPES, ReductionOp::Mean),
        versioned_kernels("ReduceProd", 18, REDUCED_DTYPES, ReductionOp::Product),
        versioned_kernels("ReduceL1", 18, REDUCED_DTYPES, ReductionOp::L1),
        versioned_kernels("ReduceL2", 18, REDUCED_DTYPES, ReductionOp::L2),
        versioned_kernels("ReduceLogSum", 18, REDUCED_DTYPES, ReductionOp::LogSum),
        versioned_kernels("ReduceLogSumExp", 18, REDUCED_DTYPES, ReductionOp::LogSumExp),
        versioned_kernels("ReduceSumSquare", 18, REDUCED_DTYPES, ReductionOp::SumSquare),
        versioned_kernels("ReduceMax", 18, EXTREME_DTYPES, ReductionOp::Maximum),
        versioned_kernels("ReduceMin", 18, EXTREME_DTYPES, ReductionOp::Minimum),
    ]
    .into_iter()
    .flatten()
    .collect()
}

struct ReduceAxes {
    keeps_dims: bool,
    /// True if an empty list of axes reduces none of them instead of all.
    keeps_all_without_axes: bool,
    axes: Vec<i64>,
}

impl ReduceAxes {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(Self {
            keeps_dims: call.int_attribute("keepdims")?.unwrap_or(1) != 0,
            keeps_all_without_axes: call.int_attribute("noop_with_empty_axes")?.unwrap_or(0) != 0,
            axes: call.ints_attribute("axes")?.unwrap_or_default().to_vec(),
        })
    }

    /// For each dimension, true if it is reduced.
    fn reduced_mask(&self, operands: &KernelOperands<'_, '_>, rank: usize) -> Result<Vec<bool>> {
        // Older versions have no second input and take the axes from the attribute.
        let axes = operands.read_optional_input::<i64>(1)?.unwrap_or(&self.axes);
        if axes.is_empty() {
            return Ok(vec![!self.keeps_all_without_axes; rank]);
        }
        axis::axes_mask(axes, rank)
    }
}

/// The row with the axes as an attribute, and the row with the axes as an input.
fn versioned_kernels(
    name: &'static str,
    axes_since: u32,
    dtypes: DtypeSet,
    op: ReductionOp,
) -> [Kernel<Cpu>; 2] {
    let data = OperandSpec::new(dtypes).with_dtype_group(1);
    let axes =
        OperandSpec::new(DtypeSet::I64).with_name("axes").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL);
    let row = |inputs: &[OperandSpec]| {
        operand_kernel(name, ReduceAxes::new, move |cpu, options, operands| {
            run_reduction(op, cpu, options, operands)
        })
        .with_flags(KernelFlags::DETERMINISTIC)
        .with_inputs(inputs.iter().copied())
        .with_outputs([data.with_name("reduced")])
    };
    [
        row(&[data.with_name("data")]).since_version(1).until_version(axes_since - 1),
        row(&[data.with_name("data"), axes.in_memory(MemoryKind::HOST)]).since_version(axes_since),
    ]
}

fn run_reduction(
    op: ReductionOp,
    cpu: &Cpu,
    options: &ReduceAxes,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
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

type ReduceFunction<T> = fn(ReductionOp, &Cpu, &ReduceShape, &[T], &mut [T]);

fn reduce_operand<T: ComputeElement>(
    cpu: &Cpu,
    options: &ReduceAxes,
    operands: &KernelOperands<'_, '_>,
    op: ReductionOp,
    reduce: ReduceFunction<T>,
) -> Result<()> {
    let (data, reduced) = (operands.call().input(0)?, operands.call().output(0)?);
    let is_reduced = options.reduced_mask(operands, data.dims().len())?;
    expect_reduced_dims(data.dims(), &is_reduced, options.keeps_dims, reduced.dims())?;
    let shape = ReduceShape::new(data.dims(), &is_reduced)?;
    reduce(op, cpu, &shape, operands.read_input(0)?, operands.write_output(0)?);
    Ok(())
}

/// Sums of floats are the exact ones of the float in which the type is computed, so each is compiled once, however it is
/// finalized.
fn reduce_floats<T: FloatElement>(op: ReductionOp, cpu: &Cpu, shape: &ReduceShape, x: &[T], y: &mut [T]) {
    match op {
        ReductionOp::Sum => {
            reduce_elements::<T, Sum>(cpu, shape, x, y, finalize::finalize_plain);
            repair_overflow(cpu, shape, x, y, |sum, factor, _| sum / factor);
        }
        ReductionOp::Mean => {
            reduce_elements::<T, Sum>(cpu, shape, x, y, finalize::finalize_mean);
            repair_overflow(cpu, shape, x, y, |sum, factor, count| sum / count as f64 / factor);
        }
        ReductionOp::LogSum => {
            reduce_elements::<T, Sum>(cpu, shape, x, y, finalize::finalize_logarithm);
            repair_overflow(cpu, shape, x, y, |sum, factor, _| sum.ln() - factor.ln());
        }
        // Squares and magnitudes do not cancel: if their sum overflows, infinity is the right result.
        ReductionOp::SumSquare => {
            reduce_elements::<T, SumSquare>(cpu, shape, x, y, finalize::finalize_plain);
        }
        ReductionOp::L2 => reduce_elements::<T, SumSquare>(cpu, shape, x, y, finalize::finalize_root),
        ReductionOp::L1 => reduce_elements::<T, L1>(cpu, shape, x, y, finalize::finalize_plain),
        ReductionOp::Product => {
            reduce_elements::<T, Product>(cpu, shape, x, y, finalize::finalize_plain);
        }
        ReductionOp::LogSumExp => {
            reduce_elements::<T, LogSumExp>(cpu, shape, x, y, finalize::finalize_log_sum_exp);
        }
        ReductionOp::Maximum | ReductionOp::Minimum => reduce_extremes(op, cpu, shape, x, y),
    }
}

fn reduce_integers<T: ComputeElement>(op: ReductionOp, cpu: &Cpu, shape: &ReduceShape, x: &[T], y: &mut [T]) {
    match op {
        ReductionOp::Sum => reduce_elements::<T, Sum>(cpu, shape, x, y, finalize::finalize_plain),
        // Means, logarithms and roots of integers start from sums in `f64`, which do not wrap around.
        ReductionOp::Mean => reduce_elements::<T, FloatSum>(cpu, shape, x, y, finalize::finalize_mean),
        ReductionOp::LogSum => reduce_elements::<T, FloatSum>(cpu, shape, x, y, finalize::finalize_logarithm),
        ReductionOp::SumSquare => {
            reduce_elements::<T, SumSquare>(cpu, shape, x, y, finalize::finalize_plain);
        }
        ReductionOp::L2 => reduce_elements::<T, FloatSumSquare>(cpu, shape, x, y, finalize::finalize_root),
        ReductionOp::L1 => reduce_elements::<T, L1>(cpu, shape, x, y, finalize::finalize_plain),
        ReductionOp::Product => {
            reduce_elements::<T, Product>(cpu, shape, x, y, finalize::finalize_plain);
        }
        ReductionOp::LogSumExp => {
            reduce_elements::<T, LogSumExp>(cpu, shape, x, y, finalize::finalize_log_sum_exp);
        }
        ReductionOp::Maximum | ReductionOp::Minimum => reduce_extremes(op, cpu, shape, x, y),
    }
}

/// The largest or the smallest element; the narrowest types have no other reductions.
fn reduce_extremes<T: ComputeElement>(op: ReductionOp, cpu: &Cpu, shape: &ReduceShape, x: &[T], y: &mut [T]) {
    if op == ReductionOp::Minimum {
        reduce_elements::<T, Minimum>(cpu, shape, x, y, finalize::finalize_plain);
    } else {
        reduce_elements::<T, Maximum>(cpu, shape, x, y, finalize::finalize_plain);
    }
}
