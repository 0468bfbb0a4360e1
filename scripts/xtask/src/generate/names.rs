//! How the names of the contract are spelt in C and in Rust.

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

/// A type in Rust; `path` stands before the names of the contract.
pub(super) fn rust_type(ty: &Plain, path: &str) -> String {
    match ty {
        Plain::Number("char") => "u8".to_owned(),
        Plain::Number(name) => (*name).to_owned(),
        Plain::Named(name) => format!("{path}{}", camel(name)),
        Plain::Callback(name) => format!("Option<{path}{}>", camel(name)),
        Plain::Const(None) => "*const c_void".to_owned(),
        Plain::Mutable(None) => "*mut c_void".to_owned(),
        Plain::Const(Some(target)) => format!("*const {}", rust_type(target, path)),
        Plain::Mutable(Some(target)) => format!("*mut {}", rust_type(target, path)),
        Plain::Function(params) => {
            format!("Option<unsafe extern \"C\" fn({}) -> {path}Error>", rust_params(params, path))
        }
    }
}

/// A list of arguments in Rust.
pub(super) fn rust_params(params: &[PlainField], path: &str) -> String {
    params
        .iter()
        .map(|param| format!("{}: {}", identifier(&param.name), rust_type(&param.ty, path)))
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
