//! The error for an item that violates a rule of the contract language.

use crate::ContractError;
use crate::model::ContractItem;

pub(crate) fn rule_error(item: &ContractItem, expected: &str, found: &str) -> ContractError {
    ContractError::new(item.line, format!("in `{}`: {expected}", item.name), found)
}
