//! Slot parameters in safe Rust, shared by all generators of callers and callees.

use oarlock_contract::Contract;
use oarlock_contract::model::{ContractType, ItemKind, ParameterDefinition, ParameterDirection};

use super::names::{RustScope, rust_name};

/// True if the parameter becomes a return value; for a list to fill, that is its length.
pub(super) fn is_result(param: &ParameterDefinition) -> bool {
    param.direction == ParameterDirection::Out && param.ty != ContractType::Bytes
}

/// True if the parameter is the context of a callback.
pub(super) fn is_user(param: &ParameterDefinition) -> bool {
    param.name == "user"
}

/// True for a struct with a header.
pub(super) fn is_struct(contract: &Contract, name: &str) -> bool {
    contract.find_item(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_)))
}

/// The Rust type of a parameter passed by value; `pointer` is the type for addresses.
pub(super) fn value_type(contract: &Contract, pointer: &str, ty: &ContractType) -> String {
    match ty {
        ContractType::Number(name) => (*name).to_owned(),
        ContractType::Named(name) => rust_name(contract, name, RustScope::Abi),
        ContractType::Pointer => pointer.to_owned(),
        other => unreachable!("{other:?} is not passed by value"),
    }
}
