//! `RegexFullMatch`: whether whole strings match a pattern.
//!
//! The schema asks for patterns of RE2. `regex-lite` accepts these, except classes by Unicode properties, and its time is linear
//! in the text, as RE2's is; `\d`, `\w` and `\s` are ASCII in both.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::operand_kernel;
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result};
use regex_lite::Regex;

pub(super) fn regex_kernels() -> Vec<Kernel<Cpu>> {
    let kernel = operand_kernel("RegexFullMatch", read_pattern, |_, pattern, operands| {
        let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
        operands.expect_dims(&output, "Y", input.dims())?;
        for (out, text) in operands.write_output::<bool>(0)?.iter_mut().zip(read_texts(&input)?) {
            *out = pattern.is_match(text);
        }
        Ok(())
    });
    let (text, truth) = (OperandSpec::new(DtypeSet::STRING), OperandSpec::new(DtypeSet::BOOL));
    vec![kernel.since_version(20).with_inputs([text.with_name("X")]).with_outputs([truth.with_name("Y")])]
}

/// The pattern of the attribute, anchored at both ends.
fn read_pattern(call: &KernelCall<'_>) -> Result<Regex> {
    let written = call.string_attribute("pattern")?;
    let written = written
        .ok_or_else(|| PluginError::invalid_argument("expected an attribute `pattern`, found none"))?;
    let wrong = |error: regex_lite::Error| {
        PluginError::invalid_argument(format!(
            "expected `pattern` to be a regular expression, found `{written}`: {error}"
        ))
    };
    // First by itself: anchored, a pattern that closes a group which it does not open could become valid.
    Regex::new(written).map_err(wrong)?;
    Regex::new(&format!(r"\A(?:{written})\z")).map_err(wrong)
}
