//! Parses and checks the plugin contract of Oarlock.
//!
//! The contract is data: one file, `oarlock.contract`, from which everything that must agree with it is generated. This crate
//! parses the file ([`Contract`]), computes the memory layout of its types ([`lower`], [`struct_layout`]), and separates what may
//! never change again ([`lock`]) from what still may ([`drafts`]). The generators themselves are in `scripts/xtask`.

mod check;
pub mod drafts;
mod layout;
mod lexer;
pub mod lock;
pub mod lower;
pub mod model;
mod parse;
mod rule_error;

use std::fmt;

pub use layout::{StructLayout, struct_layout};
pub use model::Contract;

/// The text of the contract that this build of the crate includes.
pub const CONTRACT_SOURCE: &str = include_str!("../oarlock.contract");

/// A mistake in a contract, with its line.
#[derive(Debug, PartialEq, Eq)]
pub struct ContractError {
    line: usize,
    expected: String,
    found: String,
}

impl ContractError {
    pub(crate) fn new(line: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { line, expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}, found {}", self.line, self.expected, self.found)
    }
}

impl std::error::Error for ContractError {}

/// Parses a contract and checks it.
pub fn read_contract(source: &str) -> Result<Contract, ContractError> {
    let contract = parse::parse_contract(source)?;
    check::check_contract(&contract)?;
    Ok(contract)
}
