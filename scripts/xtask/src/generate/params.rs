//! What the arguments of slots are in safe Rust, for every generator that calls slots or is called through them.

use oarlock_contract::Contract;
use oarlock_contract::model::{ContractType, ItemKind, ParameterDefinition, ParameterDirection};

use super::names::{RustScope, rust_name};

/// Whether the argument is something a function in Rust returns; of a list that is filled it returns how many there are.
pub(super) fn is_result(param: &ParameterDefinition) -> bool {
    param.direction == ParameterDirection::Out && param.ty != ContractType::Bytes
}

/// Whether the argument only accompanies a callback.
pub(super) fn is_user(param: &ParameterDefinition) -> bool {
    param.name == "user"
}

/// Whether the name is that of a struct with a header.
pub(super) fn is_struct(contract: &Contract, name: &str) -> bool {
    contract.find_item(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_)))
}

/// The type of something that is passed by value; `pointer` is what an address becomes.
pub(super) fn value_type(contract: &Contract, pointer: &str, ty: &ContractType) -> String {
    match ty {
        ContractType::Number(name) => (*name).to_owned(),
        ContractType::Named(name) => rust_name(contract, name, RustScope::Abi),
        ContractType::Pointer => pointer.to_owned(),
        other => unreachable!("{other:?} is not passed by value"),
    }
}
