//! The rows of the reductions over axes: which versions take the axes as an attribute, which as an input.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Kernel, KernelFlags, MemoryKind, Operand, OperandFlags, Result, dispatch,
    dtype_set,
};

use super::range::mend;
use super::reduction::{
    L1, L2, LogSum, LogSumExp, Maximum, Mean, Minimum, Product, Reduction, Sum, SumSquare,
};
use super::shape::{Shape, expect_reduced};
use super::walk::reduce;
use crate::device::Cpu;
use crate::kernels::rows::axis;
use crate::kernels::rows::number::Number;
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

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = Vec::new();
    let mut numbers = |op, axes_since, run: Run| kernels.extend(rows(op, axes_since, NUMBERS, run));
    numbers("ReduceSum", 13, number_kernel::<Sum>);
    numbers("ReduceMean", 18, number_kernel::<Mean>);
    numbers("ReduceProd", 18, number_kernel::<Product>);
    numbers("ReduceL1", 18, number_kernel::<L1>);
    numbers("ReduceL2", 18, number_kernel::<L2>);
    numbers("ReduceLogSum", 18, number_kernel::<LogSum>);
    numbers("ReduceLogSumExp", 18, number_kernel::<LogSumExp>);
    numbers("ReduceSumSquare", 18, number_kernel::<SumSquare>);
    kernels.extend(rows("ReduceMax", 18, ORDERED, ordered_kernel::<Maximum>));
    kernels.extend(rows("ReduceMin", 18, ORDERED, ordered_kernel::<Minimum>));
    kernels
}

type Run = fn(&Cpu, &Options, &Operands<'_, '_>) -> Result<()>;

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
fn rows(op: &'static str, axes_since: u32, dtypes: DtypeSet, run: Run) -> [Kernel<Cpu>; 2] {
    let data = Operand::new(dtypes).group(1);
    let axes = Operand::new(DtypeSet::I64).named("axes").rank(1, 1).flags(OperandFlags::OPTIONAL);
    let row = |inputs: &[Operand]| {
        kernel(op, Options::new, run)
            .flags(KernelFlags::DETERMINISTIC)
            .inputs(inputs.iter().copied())
            .outputs([data.named("reduced")])
    };
    [
        row(&[data.named("data")]).since(1).until(axes_since - 1),
        row(&[data.named("data"), axes.on(MemoryKind::HOST)]).since(axes_since),
    ]
}

fn number_kernel<R>(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()>
where
    R: Reduction<f32> + Reduction<f64> + Reduction<oarlock_sdk::f16> + Reduction<oarlock_sdk::bf16>,
    R: Reduction<i32> + Reduction<i64> + Reduction<u32> + Reduction<u64>,
{
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating + f16 + bf16 + i32 + i64 + u32 + u64, T => run::<T, R>(cpu, options, operands))
}

fn ordered_kernel<R>(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()>
where
    R: Reduction<f32> + Reduction<f64> + Reduction<oarlock_sdk::f16> + Reduction<oarlock_sdk::bf16>,
    R: Reduction<i32> + Reduction<i64> + Reduction<u32> + Reduction<u64>,
    R: Reduction<i8> + Reduction<u8> + Reduction<bool>,
{
    let dtype = operands.call().input(0)?.dtype();
    dispatch!(dtype, floating + i8 + u8 + bool, T => return run::<T, R>(cpu, options, operands))
        .or_else(|_: oarlock_sdk::Error| number_kernel::<R>(cpu, options, operands))
}

fn run<T: Number, R: Reduction<T>>(cpu: &Cpu, options: &Options, operands: &Operands<'_, '_>) -> Result<()> {
    let (data, reduced) = (operands.call().input(0)?, operands.call().output(0)?);
    let is_reduced = options.is_reduced(operands, data.dims().len())?;
    expect_reduced(data.dims(), &is_reduced, options.keeps_dims, reduced.dims())?;
    let shape = Shape::new(data.dims(), &is_reduced)?;
    let (input, output) = (operands.read(0)?, operands.write(0)?);
    reduce::<T, R>(cpu, &shape, input, output);
    mend::<T, R>(cpu, &shape, input, output);
    Ok(())
}
