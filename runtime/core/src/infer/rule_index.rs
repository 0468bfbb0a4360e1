//! The index of all rules.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::rule::InferenceRule;
use crate::schema::normalize_domain;

const RULE_TABLES: &[&[InferenceRule]] = &[
    super::elementwise::RULES,
    super::convert::RULES,
    super::create::RULES,
    super::linear_algebra::RULES,
    super::reduce::RULES,
    super::matmul::RULES,
    super::einsum::RULES,
    super::reshape::RULES,
    super::rearrange::RULES,
    super::slice::RULES,
    super::indexing::RULES,
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
    super::optimizers::RULES,
    super::text::RULES,
    super::traditional_ml::RULES,
];

type RulesByOp = HashMap<(&'static str, &'static str), Vec<&'static InferenceRule>>;

static RULES_BY_OP: LazyLock<RulesByOp> = LazyLock::new(|| {
    let mut by_op = RulesByOp::new();
    for rule in RULE_TABLES.iter().copied().flatten() {
        for op in rule.ops.split(' ') {
            by_op.entry((rule.domain, op)).or_default().push(rule);
        }
    }
    by_op
});

pub(crate) fn find_rule(domain: &str, op: &str, version: u32) -> Option<&'static InferenceRule> {
    let rules = RULES_BY_OP.get(&(normalize_domain(domain), op))?;
    rules.iter().copied().find(|rule| (rule.first..=rule.last).contains(&version))
}

pub(super) fn has_rule(domain: &str, op: &str) -> bool {
    RULES_BY_OP.contains_key(&(normalize_domain(domain), op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_op_has_two_rules_for_one_version() {
        for ((_, op), rules) in RULES_BY_OP.iter() {
            for (at, rule) in rules.iter().enumerate() {
                assert!(rule.first <= rule.last, "{op}");
                for other in &rules[at + 1..] {
                    assert!(rule.last < other.first || other.last < rule.first, "{op}");
                }
            }
        }
    }
}
