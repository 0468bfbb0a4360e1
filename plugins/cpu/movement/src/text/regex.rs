//! `RegexFullMatch`: whether whole strings match a pattern of RE2.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::operand_kernel;
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result};

use super::re2_pattern::Re2Pattern;

pub(super) fn regex_kernels() -> Vec<Kernel<Cpu>> {
    let kernel = operand_kernel("RegexFullMatch", read_pattern, |_, pattern, operands| {
        let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
        operands.expect_dims(&output, "Y", input.dims())?;
        let mut cache = pattern.create_cache();
        for (out, text) in operands.write_output::<bool>(0)?.iter_mut().zip(read_texts(&input)?) {
            *out = pattern.matches_all(&mut cache, text)?;
        }
        Ok(())
    });
    let (text, truth) = (OperandSpec::new(DtypeSet::STRING), OperandSpec::new(DtypeSet::BOOL));
    vec![kernel.since_version(20).with_inputs([text.with_name("X")]).with_outputs([truth.with_name("Y")])]
}

fn read_pattern(call: &KernelCall<'_>) -> Result<Re2Pattern> {
    let pattern = call.string_attribute("pattern")?;
    let pattern = pattern
        .ok_or_else(|| PluginError::invalid_argument("expected an attribute `pattern`, found none"))?;
    Re2Pattern::compile("pattern", pattern)
}
