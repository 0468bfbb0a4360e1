//! Checks of kernel records.

use oarlock_abi as abi;

use super::ConformanceCheck;
use crate::bench::{CheckAbort, TestBench, Verdict, ensure};
use crate::kernel_record::KernelUnderTest;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::kernel_check(
        "K-1",
        "every kernel names an op and demands what can be met",
        requirements_are_valid,
    ),
    ConformanceCheck::kernel_check(
        "K-2",
        "every kernel has `run`, and `release` where it has `prepare`",
        kernel_functions_are_set,
    ),
];

/// All kernels. A plugin without any cannot be checked.
pub(super) fn require_kernels(bench: &TestBench) -> Verdict<Vec<KernelUnderTest<'_>>> {
    let kernels: Vec<KernelUnderTest<'_>> =
        bench.subject().kernels.iter().map(|raw| KernelUnderTest { raw }).collect();
    if kernels.is_empty() {
        Err(CheckAbort::unsupported("the plugin provides no kernels"))
    } else {
        Ok(kernels)
    }
}

fn requirements_are_valid(bench: &TestBench) -> Verdict {
    require_kernels(bench)?.into_iter().try_for_each(|kernel| {
        ensure!(
            !kernel.op_name().trim().is_empty(),
            "expected a kernel that names an op, found one without a name"
        );
        check_requirements(kernel)
            .map_err(|stop| stop.at_location(format_args!("the kernel for `{}`", kernel.op_name())))
    })
}

fn check_requirements(kernel: KernelUnderTest<'_>) -> Verdict {
    let (inputs, outputs) = (kernel.inputs(), kernel.outputs());
    let listed = kernel.raw.inputs_count + kernel.raw.outputs_count;
    let read = (inputs.len() + outputs.len()) as u64;
    ensure!(read == listed, "expected {listed} operands, found {read} that can be read");
    let (oldest, newest) = (kernel.raw.version_min, kernel.raw.version_max);
    ensure!(newest == 0 || oldest <= newest, "expected versions in rising order, found {oldest} to {newest}");
    for (side, operands) in [("input", &inputs), ("output", &outputs)] {
        for (index, operand) in operands.iter().enumerate() {
            let dtypes = operand.dtypes.0;
            ensure!(
                dtypes != 0 && dtypes & !abi::ALL_DTYPES == 0,
                "expected dtypes that exist for {side} {index}, found the bits {dtypes:#x}"
            );
            let (least, most) = (operand.rank_min, operand.rank_max);
            ensure!(
                least <= most,
                "expected ranks in rising order for {side} {index}, found {least} to {most}"
            );
            let is_variadic = operand.bits.contains(abi::OperandFlags::VARIADIC);
            ensure!(
                !is_variadic || index + 1 == operands.len(),
                "expected nothing variadic but the last, found {side} {index}"
            );
        }
    }
    for pair in kernel.in_place_pairs() {
        ensure!(
            has_operand(&inputs, pair.input) && has_operand(&outputs, pair.output),
            "expected in-place pairs of operands that exist, found output {} in place of input {}",
            pair.output,
            pair.input
        );
    }
    Ok(())
}

fn has_operand(operands: &[abi::Operand], index: u32) -> bool {
    let is_variadic = operands.last().is_some_and(|last| last.bits.contains(abi::OperandFlags::VARIADIC));
    is_variadic || (index as usize) < operands.len()
}

fn kernel_functions_are_set(bench: &TestBench) -> Verdict {
    require_kernels(bench)?.into_iter().try_for_each(|kernel| {
        let (op, raw) = (kernel.op_name(), kernel.raw);
        ensure!(raw.run.is_some(), "expected `run` in the kernel for `{op}`, found none");
        ensure!(
            raw.prepare.is_none() || raw.release.is_some(),
            "expected `release` beside `prepare` in the kernel for `{op}`, found none"
        );
        Ok(())
    })
}
