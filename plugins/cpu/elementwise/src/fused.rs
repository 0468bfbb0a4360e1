//! `FusedElementwise` of the domain `oarlock`: several elementwise ops as one, so that memory is read and written once. Its results
//! are those of the ops one after another, bit for bit, except for the payload of NaN.

mod arithmetic_run;
mod fused_loop;
mod segments;
mod step_call;
mod step_loops;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Dtype, Kernel, KernelCall, OperandFlags, Result, dtype_set, ensure};

use self::fused_loop::FusedLoop;
use self::step_call::step_calls;
use super::dtype_dispatch::with_number;
use super::iteration_space::MAX_OPERANDS;
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::{input_operand, output_operand, prepared_kernel};

/// The maximum number of inputs.
const MAX_INPUTS: usize = MAX_OPERANDS - 1;

pub(super) fn fused_elementwise_kernel() -> Kernel<Cpu> {
    let dtypes = dtype_set(&[Dtype::F32, Dtype::F64]);
    let kernel = prepared_kernel("FusedElementwise", 1, |call| {
        let fused = fused_pass(call)?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| run_fused(&fused, cpu, call))
    })
    .with_domain(OARLOCK_DOMAIN)
    .with_inputs([input_operand("inputs", dtypes).with_dtype_group(1).with_flags(OperandFlags::VARIADIC)])
    .with_outputs([output_operand("Y", dtypes).with_dtype_group(1)]);
    (0..MAX_INPUTS as u32).fold(kernel, |kernel, input| kernel.with_in_place(0, input))
}

fn fused_pass(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let inputs = call.input_count();
    ensure!(
        (1..=MAX_INPUTS).contains(&inputs),
        unimplemented,
        "expected 1 to {MAX_INPUTS} inputs, found {inputs}"
    );
    let (dtype, steps) = (call.input(0)?.dtype(), step_calls(call)?);
    call.describe_kernel(&steps.iter().map(|step| step.op).collect::<Vec<_>>().join(", "));
    with_number!(dtype, floats, N => {
        let conversion = OperandConversion::without_conversion(N::DTYPE);
        Ok(PreparedLoop::new(FusedLoop::new::<N>(inputs, &steps)?, vec![conversion; inputs], conversion))
    })
}

fn run_fused(fused: &PreparedLoop, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
    match call.input_count() {
        1 => fused.run::<1>(cpu, call),
        2 => fused.run::<2>(cpu, call),
        3 => fused.run::<3>(cpu, call),
        4 => fused.run::<4>(cpu, call),
        5 => fused.run::<5>(cpu, call),
        6 => fused.run::<6>(cpu, call),
        7 => fused.run::<7>(cpu, call),
        _ => fused.run::<MAX_INPUTS>(cpu, call),
    }
}
