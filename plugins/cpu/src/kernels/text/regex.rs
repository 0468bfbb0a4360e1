//! `RegexFullMatch`: whether whole texts match a pattern.
//!
//! The schema asks for patterns of RE2. `regex-lite` takes these, other than classes by Unicode's properties, and matches in a
//! time that grows with the text only, as RE2 does; what `\d`, `\w` and `\s` stand for is ASCII in both.

use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result};
use regex_lite::Regex;

use super::operand::read_texts;
use crate::device::Cpu;
use crate::kernels::rows::operands::operand_kernel;

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

/// The pattern of the attribute, to be matched from the start to the end.
fn read_pattern(call: &KernelCall<'_>) -> Result<Regex> {
    let written = call.string_attribute("pattern")?;
    let written = written
        .ok_or_else(|| PluginError::invalid_argument("expected an attribute `pattern`, found none"))?;
    let wrong = |error: regex_lite::Error| {
        PluginError::invalid_argument(format!(
            "expected `pattern` to be a regular expression, found `{written}`: {error}"
        ))
    };
    // By itself first: what closes a group that it does not open is no pattern.
    Regex::new(written).map_err(wrong)?;
    Regex::new(&format!(r"\A(?:{written})\z")).map_err(wrong)
}
