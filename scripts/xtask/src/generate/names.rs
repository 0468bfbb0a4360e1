//! How the names of the contract are spelt in C and in Rust.

use oarlock_contract::Contract;
use oarlock_contract::lower::{Plain, PlainField};

/// What every generated Rust file starts with.
pub(super) const RUST_BANNER: &str =
    "// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.\n\n";

/// `memory_kind` as `MemoryKind`.
pub(super) fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| word.split_at_checked(1).map_or(String::new(), |(head, tail)| head.to_uppercase() + tail))
        .collect()
}

/// A name as Rust lets fields and arguments be called.
pub(super) fn identifier(name: &str) -> String {
    match name {
        "async" | "type" | "in" | "ref" | "move" | "loop" | "match" | "use" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// A type in C.
pub(super) fn c_type(ty: &Plain) -> String {
    match ty {
        Plain::Number(name) => c_number(name).to_owned(),
        Plain::Named(name) | Plain::Callback(name) => format!("oarlock_{name}"),
        Plain::Const(None) => "const void *".to_owned(),
        Plain::Mutable(None) => "void *".to_owned(),
        Plain::Const(Some(target)) => match c_type(target) {
            pointer if pointer.ends_with('*') => format!("{pointer}const *"),
            name => format!("const {name} *"),
        },
        Plain::Mutable(Some(target)) => match c_type(target) {
            pointer if pointer.ends_with('*') => format!("{pointer}*"),
            name => format!("{name} *"),
        },
        Plain::Function(_) => unreachable!("functions are declared with their name"),
    }
}

/// A field or an argument in C.
pub(super) fn c_declaration(field: &PlainField) -> String {
    match &field.ty {
        Plain::Function(params) => {
            format!("oarlock_error (*{})({})", field.name, c_params(params))
        }
        ty => {
            let ty = c_type(ty);
            let space = if ty.ends_with('*') { "" } else { " " };
            format!("{ty}{space}{}", field.name)
        }
    }
}

/// A list of arguments in C.
pub(super) fn c_params(params: &[PlainField]) -> String {
    params.iter().map(c_declaration).collect::<Vec<_>>().join(", ")
}

fn c_number(name: &str) -> &'static str {
    match name {
        "char" => "char",
        "u8" => "uint8_t",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "i32" => "int32_t",
        "i64" => "int64_t",
        _ => "double",
    }
}

/// Where Rust finds the names of the contract.
#[derive(Clone, Copy)]
pub(super) enum RustScope {
    /// In the bindings themselves, where all of them are at hand.
    Bindings,
    /// In a crate that has the bindings as `abi`, with the drafts in a module of their own.
    Abi,
}

/// The name of a type of the contract in Rust, with the path to it.
pub(super) fn rust_name(contract: &Contract, name: &str, scope: RustScope) -> String {
    let path = match scope {
        RustScope::Bindings => "",
        RustScope::Abi if contract.find(name).is_some_and(|item| !item.is_locked()) => "abi::draft::",
        RustScope::Abi => "abi::",
    };
    format!("{path}{}", camel(name))
}

/// A type in Rust.
pub(super) fn rust_type(contract: &Contract, ty: &Plain, scope: RustScope) -> String {
    match ty {
        Plain::Number("char") => "u8".to_owned(),
        Plain::Number(name) => (*name).to_owned(),
        Plain::Named(name) => rust_name(contract, name, scope),
        Plain::Callback(name) => format!("Option<{}>", rust_name(contract, name, scope)),
        Plain::Const(None) => "*const c_void".to_owned(),
        Plain::Mutable(None) => "*mut c_void".to_owned(),
        Plain::Const(Some(target)) => format!("*const {}", rust_type(contract, target, scope)),
        Plain::Mutable(Some(target)) => format!("*mut {}", rust_type(contract, target, scope)),
        Plain::Function(params) => {
            let error = rust_name(contract, "error", scope);
            let params = rust_params(contract, params, scope);
            format!("Option<unsafe extern \"C\" fn({params}) -> {error}>")
        }
    }
}

/// A list of arguments in Rust.
pub(super) fn rust_params(contract: &Contract, params: &[PlainField], scope: RustScope) -> String {
    params
        .iter()
        .map(|param| format!("{}: {}", identifier(&param.name), rust_type(contract, &param.ty, scope)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Comment lines as Rust documentation.
pub(super) fn rust_docs(docs: &[String], otherwise: &str) -> String {
    if docs.is_empty() {
        return format!("/// {otherwise}\n");
    }
    docs.iter().map(|line| format!("/// {line}").trim_end().to_owned() + "\n").collect()
}
