//! Which rule infers which op.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::call::Call;
use super::output::Output;
use crate::Result;

/// The last version of rules that still hold.
pub(super) const LATEST: u32 = u32::MAX;

/// One line of a table: how the outputs of some ops are inferred in some versions.
pub(crate) struct Rule {
    domain: &'static str,
    /// Their names, with spaces between them.
    ops: &'static str,
    first: u32,
    last: u32,
    /// The inputs whose elements the shapes depend on.
    pub(crate) values: &'static [usize],
    pub(super) infer: Infer,
}

/// What a rule does.
pub(super) type Infer = fn(&Call<'_>) -> Result<Vec<Output>>;

/// A line of a table for ops of ONNX, in the versions from `first` to `last`.
pub(super) const fn rule(
    ops: &'static str,
    first: u32,
    last: u32,
    values: &'static [usize],
    infer: Infer,
) -> Rule {
    Rule { domain: "", ops, first, last, values, infer }
}

impl Rule {
    /// The same line for ops of another domain.
    pub(super) const fn of_domain(self, domain: &'static str) -> Self {
        Self { domain, ..self }
    }
}

/// Every table there is.
const TABLES: &[&[Rule]] = &[
    super::elementwise::RULES,
    super::convert::RULES,
    super::create::RULES,
    super::decompose::RULES,
    super::reduce::RULES,
    super::matrix::RULES,
    super::einsum::RULES,
    super::reshape::RULES,
    super::rearrange::RULES,
    super::slice::RULES,
    super::index::RULES,
    super::conv::RULES,
    super::channels_last::RULES,
    super::pool::RULES,
    super::quantized::RULES,
    super::spatial::RULES,
    super::resize::RULES,
    super::signal::RULES,
    super::normalize::RULES,
    super::recurrent::RULES,
    super::attention::RULES,
    super::fused::RULES,
    super::loss::RULES,
    super::training::RULES,
    super::text::RULES,
    super::classic::RULES,
];

type ByOp = HashMap<(&'static str, &'static str), Vec<&'static Rule>>;

static BY_OP: LazyLock<ByOp> = LazyLock::new(|| {
    let mut by_op = ByOp::new();
    for rule in TABLES.iter().copied().flatten() {
        for op in rule.ops.split(' ') {
            by_op.entry((rule.domain, op)).or_default().push(rule);
        }
    }
    by_op
});

pub(crate) fn find(domain: &str, op: &str, version: u32) -> Option<&'static Rule> {
    let rules = BY_OP.get(&(plain(domain), op))?;
    rules.iter().copied().find(|rule| (rule.first..=rule.last).contains(&version))
}

pub(super) fn is_known(domain: &str, op: &str) -> bool {
    BY_OP.contains_key(&(plain(domain), op))
}

/// ONNX's own domain has two names.
fn plain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_op_has_two_rules_for_one_version() {
        for ((_, op), rules) in BY_OP.iter() {
            for (at, rule) in rules.iter().enumerate() {
                assert!(rule.first <= rule.last, "{op}");
                for other in &rules[at + 1..] {
                    assert!(rule.last < other.first || other.last < rule.first, "{op}");
                }
            }
        }
    }
}
