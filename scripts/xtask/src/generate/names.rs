//! Spelling of contract names in C and Rust.

use oarlock_contract::Contract;
use oarlock_contract::lower::{LoweredField, LoweredType};

/// The first lines of every generated Rust file.
pub(super) const RUST_BANNER: &str =
    "// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.\n\n";

/// Converts `memory_kind` to `MemoryKind`.
pub(super) fn to_camel_case(name: &str) -> String {
    name.split('_')
        .map(|word| word.split_at_checked(1).map_or(String::new(), |(head, tail)| head.to_uppercase() + tail))
        .collect()
}

/// A name as a Rust identifier, escaped if it is a keyword.
pub(super) fn rust_identifier(name: &str) -> String {
    match name {
        "async" | "type" | "in" | "ref" | "move" | "loop" | "match" | "use" => format!("r#{name}"),
        _ => name.to_owned(),
    }
}

/// Renders a type in C.
pub(super) fn c_type(ty: &LoweredType) -> String {
    match ty {
        LoweredType::Number(name) => c_number_type(name).to_owned(),
        LoweredType::Named(name) | LoweredType::Callback(name) => format!("oarlock_{name}"),
        LoweredType::Const(None) => "const void *".to_owned(),
        LoweredType::Mutable(None) => "void *".to_owned(),
        LoweredType::Const(Some(target)) => match c_type(target) {
            pointer if pointer.ends_with('*') => format!("{pointer}const *"),
            name => format!("const {name} *"),
        },
        LoweredType::Mutable(Some(target)) => match c_type(target) {
            pointer if pointer.ends_with('*') => format!("{pointer}*"),
            name => format!("{name} *"),
        },
        LoweredType::Function(_) => unreachable!("functions are declared with their name"),
    }
}

/// Renders a field or parameter in C.
pub(super) fn c_declaration(field: &LoweredField) -> String {
    match &field.ty {
        LoweredType::Function(params) => {
            format!("oarlock_error (*{})({})", field.name, c_params(params))
        }
        ty => {
            let ty = c_type(ty);
            let space = if ty.ends_with('*') { "" } else { " " };
            format!("{ty}{space}{}", field.name)
        }
    }
}

/// Renders a parameter list in C.
pub(super) fn c_params(params: &[LoweredField]) -> String {
    params.iter().map(c_declaration).collect::<Vec<_>>().join(", ")
}

fn c_number_type(name: &str) -> &'static str {
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

/// The scope of generated Rust code, which decides how it refers to contract names.
#[derive(Clone, Copy)]
pub(super) enum RustScope {
    /// The bindings themselves, with all names in scope.
    Bindings,
    /// A crate with the bindings as `abi`, and drafts in a submodule.
    Abi,
}

/// The path of a contract type in Rust.
pub(super) fn rust_name(contract: &Contract, name: &str, scope: RustScope) -> String {
    let path = match scope {
        RustScope::Bindings => "",
        RustScope::Abi if contract.find_item(name).is_some_and(|item| !item.is_locked()) => "abi::draft::",
        RustScope::Abi => "abi::",
    };
    format!("{path}{}", to_camel_case(name))
}

/// Renders a type in Rust.
pub(super) fn rust_type(contract: &Contract, ty: &LoweredType, scope: RustScope) -> String {
    match ty {
        LoweredType::Number("char") => "u8".to_owned(),
        LoweredType::Number(name) => (*name).to_owned(),
        LoweredType::Named(name) => rust_name(contract, name, scope),
        LoweredType::Callback(name) => format!("Option<{}>", rust_name(contract, name, scope)),
        LoweredType::Const(None) => "*const c_void".to_owned(),
        LoweredType::Mutable(None) => "*mut c_void".to_owned(),
        LoweredType::Const(Some(target)) => format!("*const {}", rust_type(contract, target, scope)),
        LoweredType::Mutable(Some(target)) => format!("*mut {}", rust_type(contract, target, scope)),
        LoweredType::Function(params) => {
            let error = rust_name(contract, "error", scope);
            let params = rust_params(contract, params, scope);
            format!("Option<unsafe extern \"C\" fn({params}) -> {error}>")
        }
    }
}

/// Renders a parameter list in Rust.
pub(super) fn rust_params(contract: &Contract, params: &[LoweredField], scope: RustScope) -> String {
    params
        .iter()
        .map(|param| format!("{}: {}", rust_identifier(&param.name), rust_type(contract, &param.ty, scope)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Renders comment lines as Rust documentation.
pub(super) fn rust_docs(docs: &[String], otherwise: &str) -> String {
    if docs.is_empty() {
        return format!("/// {otherwise}\n");
    }
    docs.iter().map(|line| format!("/// {line}").trim_end().to_owned() + "\n").collect()
}
