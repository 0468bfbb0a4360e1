//! What the arguments of slots are in safe Rust, for every generator that calls slots or is called through them.

use oarlock_contract::Contract;
use oarlock_contract::model::{Direction, ItemKind, Param, Type};

use super::names::{RustScope, rust_name};

/// Whether the argument is something a function in Rust returns; of a list that is filled it returns how many there are.
pub(super) fn is_result(param: &Param) -> bool {
    param.direction == Direction::Out && param.ty != Type::Bytes
}

/// Whether the argument only accompanies a callback.
pub(super) fn is_user(param: &Param) -> bool {
    param.name == "user"
}

/// Whether the name is that of a struct with a header.
pub(super) fn is_struct(contract: &Contract, name: &str) -> bool {
    contract.find(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_)))
}

/// The type of something that is passed by value; `pointer` is what an address becomes.
pub(super) fn value_type(contract: &Contract, pointer: &str, ty: &Type) -> String {
    match ty {
        Type::Number(name) => (*name).to_owned(),
        Type::Named(name) => rust_name(contract, name, RustScope::Abi),
        Type::Pointer => pointer.to_owned(),
        other => unreachable!("{other:?} is not passed by value"),
    }
}
