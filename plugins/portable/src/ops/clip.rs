//! `Clip`: the bounds are attributes in old versions of the op and operands in new ones.

use oarlock_sdk::{Kernel, KernelCall, OperandFlags, Result};

use super::elementwise::{ElementwiseWork, run_broadcast, run_elementwise};
use super::registration::{
    FLOAT_DTYPES, NUMERIC_DTYPES, arithmetic_kernel, contiguous_operand, input_view, optional_input_view,
    output_view, strided_operand,
};
use crate::argument_list::FormulaNumber;
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::source::ElementFormula;

pub(super) fn clip_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let bound = strided_operand(NUMERIC_DTYPES)
        .with_dtype_group(1)
        .with_rank(0, 1)
        .with_flags(OperandFlags::OPTIONAL);
    vec![
        arithmetic_kernel("Clip", clip_by_attributes::<G>)
            .since_version(6)
            .until_version(10)
            .with_inputs([strided_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("input")])
            .with_outputs([contiguous_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("output")])
            .with_in_place(0, 0),
        arithmetic_kernel("Clip", clip_by_operands::<G>)
            .since_version(11)
            .with_inputs([
                strided_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("input"),
                bound.with_name("min"),
                bound.with_name("max"),
            ])
            .with_outputs([contiguous_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("output")])
            .with_in_place(0, 0),
    ]
}

fn clip_by_attributes<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    // The op defines its defaults as the limits of `f32`, whatever the dtype is.
    let least = FormulaNumber::Float(call.float_attribute("min")?.unwrap_or(f32::MIN.into()));
    let greatest = FormulaNumber::Float(call.float_attribute("max")?.unwrap_or(f32::MAX.into()));
    let formula = ElementFormula::Plain("minimum(maximum(a, p), q)");
    let work = ElementwiseWork { formula, compute: x.dtype, parameters: &[least, greatest] };
    run_elementwise(gpus, call, work, &[&x], &y)
}

fn clip_by_operands<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let (least, greatest) = (optional_input_view(call, 1)?, optional_input_view(call, 2)?);
    // A formula for each set of bounds: integers have no infinity that could stand for a missing one.
    let formula = match (&least, &greatest) {
        (None, None) => "a",
        (Some(_), None) => "maximum(a, b)",
        (None, Some(_)) => "minimum(a, b)",
        // The upper bound comes last, so it wins over a lower bound that is greater.
        (Some(_), Some(_)) => "minimum(maximum(a, b), c)",
    };
    let mut inputs = vec![&x];
    inputs.extend(least.iter().chain(&greatest));
    // `run_broadcast` would also accept an output larger than the input.
    super::registration::check_output_shape(&x.dims, &y)?;
    run_broadcast(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain(formula), x.dtype),
        &inputs,
        &y,
    )
}
