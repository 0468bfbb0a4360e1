//! `RegexFullMatch`: whether whole texts match a pattern.
//!
//! The schema asks for patterns of RE2. `regex-lite` takes these, other than classes by Unicode's properties, and matches in a
//! time that grows with the text only, as RE2 does; what `\d`, `\w` and `\s` stand for is ASCII in both.

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, Result};
use regex_lite::Regex;

use super::operand::texts;
use crate::device::Cpu;
use crate::kernels::rows::operands::kernel;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let kernel = kernel("RegexFullMatch", pattern, |_, pattern, operands| {
        let (input, output) = (operands.call().input(0)?, operands.call().output(0)?);
        operands.expect_dims(&output, "Y", input.dims())?;
        for (out, text) in operands.write::<bool>(0)?.iter_mut().zip(texts(&input)?) {
            *out = pattern.is_match(text);
        }
        Ok(())
    });
    let (text, truth) = (Operand::new(DtypeSet::STRING), Operand::new(DtypeSet::BOOL));
    vec![kernel.since(20).inputs([text.named("X")]).outputs([truth.named("Y")])]
}

/// The pattern of the attribute, to be matched from the start to the end.
fn pattern(call: &Call<'_>) -> Result<Regex> {
    let written = call.string("pattern")?;
    let written =
        written.ok_or_else(|| Error::invalid_argument("expected an attribute `pattern`, found none"))?;
    let wrong = |error: regex_lite::Error| {
        Error::invalid_argument(format!(
            "expected `pattern` to be a regular expression, found `{written}`: {error}"
        ))
    };
    // By itself first: what closes a group that it does not open is no pattern.
    Regex::new(written).map_err(wrong)?;
    Regex::new(&format!(r"\A(?:{written})\z")).map_err(wrong)
}
