//! Ops that create elements without an input.

use oarlock_sdk::{Dtype, Kernel, KernelCall, Result, dtype_set, ensure};

use super::elementwise::{ElementwiseWork, StridedOperand, run_map};
use super::registration::{
    ALL_DTYPES, INDEX_DTYPES, arithmetic_kernel, contiguous_operand, host_operand, output_view, stream_kernel,
};
use crate::argument_list::FormulaNumber;
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::host_operands::{host_numbers, tensor_attribute};
use crate::source::ElementFormula;

pub(super) fn creation_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let ranged = dtype_set(&[Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F32, Dtype::F64]);
    let bound = host_operand(ranged).with_dtype_group(1);
    vec![
        // Writes bits and computes nothing, so it fills `f64` outputs on devices without `f64` too.
        stream_kernel("ConstantOfShape", run_constant::<G>)
            .since_version(9)
            .with_inputs([host_operand(INDEX_DTYPES).with_name("input")])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_name("output")]),
        arithmetic_kernel("Range", run_range::<G>)
            .since_version(11)
            .with_inputs([bound.with_name("start"), bound.with_name("limit"), bound.with_name("delta")])
            .with_outputs([contiguous_operand(ranged).with_dtype_group(1).with_name("output")]),
    ]
}

/// Copies the element as bits, so all dtypes share one path. The default is 0, whose bits are 0 in every dtype.
fn run_constant<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let y = output_view(call, 0)?;
    let bits = tensor_attribute(call, "value", y.dtype)?.unwrap_or(0);
    let y = y.reinterpret_as_bits();
    let work = ElementwiseWork {
        formula: ElementFormula::Plain("p"),
        compute: y.dtype,
        parameters: &[FormulaNumber::Int(bits.cast_signed())],
    };
    run_map(gpus, call, work, &y.dims, &[], StridedOperand { view: &y, steps: &y.steps })
}

fn run_range<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let y = output_view(call, 0)?;
    let number = |index: usize| {
        let numbers = host_numbers(&call.input(index)?)?;
        ensure!(
            numbers.len() == 1,
            invalid_argument,
            "expected one number as input {index}, found {}",
            numbers.len()
        );
        Ok(numbers[0])
    };
    // The limit is not needed: the host has turned it into the shape of the output.
    let parameters = [number(0)?, number(2)?];
    ensure!(y.dims.len() == 1, invalid_argument, "expected an output of one dimension, found {:?}", y.dims);
    // From the index and not from the element before: work-items are independent, and rounding errors do not add up.
    let formula = ElementFormula::Plain("p + i * q");
    run_map(
        gpus,
        call,
        ElementwiseWork { formula, compute: y.dtype, parameters: &parameters },
        &y.dims,
        &[],
        StridedOperand { view: &y, steps: &y.steps },
    )
}
