//! Generates the raw Rust bindings, with the same layout as the C header. They contain no Rust enum, since an unknown value from
//! the other side must be data and not undefined behavior.

use std::fmt::Write as _;

use oarlock_contract::lower::{LoweredField, LoweredType, callback_params, item_fields};
use oarlock_contract::model::{ConstantDefinition, ContractItem, ItemKind, ItemStage};
use oarlock_contract::{Contract, struct_layout};

use super::names::{
    RUST_BANNER, RustScope, rust_docs, rust_identifier, rust_params, rust_type, to_camel_case,
};

const BINDING_IMPORTS: &str = "use core::ffi::c_void;\nuse core::mem::{align_of, offset_of, size_of};\n\n";

/// Renders `device-sdk/abi/src/generated.rs`.
pub(super) fn abi_bindings(contract: &Contract) -> String {
    let mut out = format!("{RUST_BANNER}{BINDING_IMPORTS}");
    write!(
        out,
        "/// The major version of the contract.\npub const CONTRACT_MAJOR: u32 = {};\n\
         /// The newest minor version of the contract that these bindings know.\npub const CONTRACT_MINOR: u32 = {};\n\
         /// The profiles that are locked, with their versions.\npub const PROFILES: &[(&str, u32)] = &[\n",
        contract.major, contract.minor
    )
    .expect("infallible");
    for (_, profile, version) in contract.locked_profiles() {
        writeln!(out, "({profile:?}, {version}),").expect("infallible");
    }
    out.push_str("];\n");
    write_declarations(&mut out, contract, ContractItem::is_locked);
    write_rules(&mut out, contract);
    write_layout_check(&mut out, contract, ContractItem::is_locked);
    out
}

/// Renders `device-sdk/abi/src/draft.rs`.
pub(super) fn draft_bindings(contract: &Contract) -> String {
    let mut out = format!("{RUST_BANNER}{DRAFT_HEADER}{BINDING_IMPORTS}use crate::generated::*;\n\n");
    out.push_str(
        "/// The profiles that are drafts: the name, the number of the draft, and whether the host and the SDK have code for it.\n\
         pub const PROFILES: &[(&str, u32, bool)] = &[\n",
    );
    for (item, profile, number) in contract.draft_profiles() {
        writeln!(out, "({profile:?}, {number}, {}),", item.stage == ItemStage::Trial).expect("infallible");
    }
    out.push_str("];\n");
    let is_draft = |item: &ContractItem| !item.is_locked();
    write_declarations(&mut out, contract, is_draft);
    write_layout_check(&mut out, contract, is_draft);
    out
}

const DRAFT_HEADER: &str = "//! Profiles that are not locked yet. **What is here may change or go with any version.**\n//!\n\
     //! A plugin names a draft by its profile and its number ([`DraftProfile`]), and a host that has another number passes it over.\n\n\
     #![expect(clippy::type_complexity, reason = \"the contract says what a function takes\")]\n\n";

fn write_declarations(out: &mut String, contract: &Contract, is_wanted: impl Fn(&ContractItem) -> bool) {
    for item in contract.items.iter().filter(|item| is_wanted(item)) {
        out.push('\n');
        match &item.kind {
            ItemKind::Handle => write_scalar(out, item, "u64", &[], ""),
            ItemKind::Enum(constants) => write_scalar(out, item, "u32", constants, ""),
            ItemKind::Flags(bits, constants) => {
                write_scalar(out, item, &format!("u{bits}"), constants, "1 << ");
                write_bit_operations(out, &to_camel_case(&item.name));
            }
            ItemKind::Callback(callback) => {
                let params = callback_params(contract, callback);
                let params = rust_params(contract, &params, RustScope::Bindings);
                let result = if callback.fallible { " -> Error" } else { "" };
                let docs = rust_docs(&item.docs, "");
                let name = to_camel_case(&item.name);
                writeln!(out, "{docs}pub type {name} = unsafe extern \"C\" fn({params}){result};")
                    .expect("infallible");
            }
            ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_) => {
                write_structure(out, contract, item);
            }
            ItemKind::Rule(_) => {}
        }
    }
}

fn write_scalar(
    out: &mut String,
    item: &ContractItem,
    ty: &str,
    constants: &[ConstantDefinition],
    shift: &str,
) {
    let name = to_camel_case(&item.name);
    write!(
        out,
        "{}#[repr(transparent)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
         pub struct {name}(pub {ty});\n",
        rust_docs(&item.docs, "")
    )
    .expect("infallible");
    if constants.is_empty() {
        return;
    }
    writeln!(out, "impl {name} {{").expect("infallible");
    for constant in constants {
        let docs = rust_docs(&constant.docs, &format!("The constant `{}`.", constant.name));
        let upper = constant.name.to_uppercase();
        writeln!(out, "{docs}pub const {upper}: Self = Self({shift}{});", constant.value)
            .expect("infallible");
    }
    writeln!(
        out,
        "\n/// The name in the contract, or `None` for a number this version does not know.\n\
         pub const fn name(self) -> Option<&'static str> {{ match self {{"
    )
    .expect("infallible");
    for constant in constants {
        writeln!(out, "Self::{} => Some({:?}),", constant.name.to_uppercase(), constant.name)
            .expect("infallible");
    }
    out.push_str("_ => None, } } }\n");
}

fn write_bit_operations(out: &mut String, name: &str) {
    write!(
        out,
        "impl {name} {{\n/// Whether every bit of `other` is set.\n\
         pub const fn contains(self, other: Self) -> bool {{ self.0 & other.0 == other.0 }}\n\
         /// The bits of both.\npub const fn union(self, other: Self) -> Self {{ Self(self.0 | other.0) }}\n}}\n\
         impl core::ops::BitOr for {name} {{ type Output = Self; fn bitor(self, other: Self) -> Self {{ self.union(other) }} }}\n"
    )
    .expect("infallible");
}

fn write_structure(out: &mut String, contract: &Contract, item: &ContractItem) {
    let name = to_camel_case(&item.type_name());
    let fields = item_fields(contract, item);
    let plain_value = matches!(item.kind, ItemKind::Value(_));
    let is_table = matches!(item.kind, ItemKind::Table(_));
    let numbers_only = fields.iter().all(|field| matches!(field.ty, LoweredType::Number(_)));
    let comparable = if numbers_only { ", PartialEq, Eq, PartialOrd, Ord, Hash" } else { "" };
    write!(
        out,
        "{}#[repr(C)]\n#[derive(Clone, Copy, Debug{comparable})]\npub struct {name} {{\n",
        rust_docs(&item.docs, &format!("A `{}`.", item.name))
    )
    .expect("infallible");
    for field in &fields {
        let docs = rust_docs(&field.docs, &format!("The {} of this.", field.name.replace('_', " ")));
        writeln!(
            out,
            "{docs}pub {}: {},",
            rust_identifier(&field.name),
            rust_type(contract, &field.ty, RustScope::Bindings)
        )
        .expect("infallible");
    }
    writeln!(out, "}}\n\nimpl {name} {{").expect("infallible");
    if is_table {
        let bits = (0..=contract.minor).map(|minor| format!("1 << {minor}")).collect::<Vec<_>>().join(" | ");
        writeln!(
            out,
            "/// What these bindings understand: one bit for each minor version.\npub const FEATURES: u64 = {bits};"
        )
        .expect("infallible");
    }
    if !plain_value {
        let oldest = struct_layout(contract, item, 0).size;
        writeln!(
            out,
            "/// The size in the first version of the contract: no one may send less.\n\
             pub const SIZE_AT_FIRST: u32 = {oldest};"
        )
        .expect("infallible");
    }
    out.push_str("/// Nothing filled in but the size.\npub const EMPTY: Self = Self {\n");
    for field in &fields {
        let value = match (&field.ty, field.name.as_str()) {
            (_, "size") if !plain_value => "size_of::<Self>() as u32".to_owned(),
            (_, "features") if is_table => "Self::FEATURES".to_owned(),
            (LoweredType::Number("f64"), _) => "0.0".to_owned(),
            (LoweredType::Number(_), _) => "0".to_owned(),
            (LoweredType::Const(_), _) => "core::ptr::null()".to_owned(),
            (LoweredType::Mutable(_), _) => "core::ptr::null_mut()".to_owned(),
            (LoweredType::Function(_) | LoweredType::Callback(_), _) => "None".to_owned(),
            (LoweredType::Named(ty), _) => match contract.find_item(ty).map(|item| &item.kind) {
                Some(ItemKind::Value(_)) => format!("{}::EMPTY", to_camel_case(ty)),
                _ => format!("{}(0)", to_camel_case(ty)),
            },
        };
        writeln!(out, "{}: {value},", rust_identifier(&field.name)).expect("infallible");
    }
    out.push_str("};\n");
    if is_table && fields.iter().any(|field| field.required.is_some()) {
        write_slot_names(out, &fields);
    }
    out.push_str("}\n");
    if fields.iter().any(|field| {
        matches!(field.ty, LoweredType::Const(_) | LoweredType::Mutable(_)) || is_text_type(&field.ty)
    }) {
        write!(
            out,
            "\n// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.\n\
             unsafe impl Send for {name} {{}}\n\
             // SAFETY: as above; nothing is changed through a shared reference.\nunsafe impl Sync for {name} {{}}\n"
        )
        .expect("infallible");
    }
}

/// Writes the slot names, for code that reports, simulates or tests tables rather than calling them.
fn write_slot_names(out: &mut String, fields: &[LoweredField]) {
    let slots = fields.iter().filter_map(|field| Some((&field.name, field.required?)));
    out.push_str(
        "/// The name of each slot and whether it must be filled.\npub const SLOTS: &[(&str, bool)] = &[\n",
    );
    slots.clone().for_each(|(name, required)| writeln!(out, "({name:?}, {required}),").expect("infallible"));
    out.push_str("];\n\n/// Empties a slot; whether there is one of that name.\n");
    out.push_str("pub fn clear_slot(&mut self, name: &str) -> bool {\nmatch name {\n");
    slots.for_each(|(name, _)| writeln!(out, "{name:?} => self.{name} = None,").expect("infallible"));
    out.push_str("_ => return false,\n}\ntrue\n}\n");
}

fn is_text_type(ty: &LoweredType) -> bool {
    matches!(ty, LoweredType::Named(name) if name == "str")
}

fn write_rules(out: &mut String, contract: &Contract) {
    out.push_str("\n/// Every rule of the contract: its number, who notices a breach, and what it says.\n");
    out.push_str("pub const RULES: &[(&str, &str, &str)] = &[\n");
    for item in &contract.items {
        if let ItemKind::Rule(by) = &item.kind {
            writeln!(out, "({:?}, {by:?}, {:?}),", item.name, item.docs.join(" ")).expect("infallible");
        }
    }
    out.push_str("];\n");
}

fn write_layout_check(out: &mut String, contract: &Contract, is_wanted: impl Fn(&ContractItem) -> bool) {
    out.push_str(
        "\n// The compiler agrees with the contract on every size, alignment and offset.\nconst _: () = {\n",
    );
    for item in contract.items.iter().filter(|item| is_wanted(item)) {
        if !matches!(item.kind, ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_)) {
            continue;
        }
        let layout = struct_layout(contract, item, contract.minor);
        let name = to_camel_case(&item.type_name());
        writeln!(out, "assert!(size_of::<{name}>() == {});", layout.size).expect("infallible");
        writeln!(out, "assert!(align_of::<{name}>() == {});", layout.align).expect("infallible");
        for (field, offset, _) in layout.fields {
            let field = rust_identifier(&field.name);
            writeln!(out, "assert!(offset_of!({name}, {field}) == {offset});").expect("infallible");
        }
    }
    out.push_str("};\n");
}
