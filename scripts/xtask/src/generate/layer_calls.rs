//! Generates what all layers share: for each slot a description, and a function that hands a call to the layer as words. A slot
//! that is added to the contract is thereby covered by every layer.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::{LoweredField, LoweredType, slot_params};
use oarlock_contract::model::{
    ContractItem, ContractType, ItemKind, ParameterDefinition, ParameterDirection, SlotDefinition,
    member_slots,
};

use super::names::{RUST_BANNER, RustScope, rust_identifier, rust_params, rust_type, to_camel_case};

/// Renders `plugins/layer/src/contract_names.rs`.
pub(super) fn layer_names(contract: &Contract) -> String {
    let mut out = String::from(RUST_BANNER);
    write_handle_kinds(&mut out, contract);
    write_slot_enum(&mut out, &wrapped_tables(contract).collect::<Vec<_>>());
    out
}

/// Renders `plugins/layer/src/generated.rs`.
pub(super) fn layer_bindings(contract: &Contract) -> String {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every function here is called through a pointer from C\")]\n\
         use core::ffi::c_void;\n\nuse oarlock_sdk::abi;\n\n\
         use crate::contract_names::{ContractSlot, HandleKind};\n\
         use crate::slot::{ParameterDescription, ParameterKind, SlotDescription};\n\
         use crate::word::{pointer_word, word_const_pointer, word_pointer};\n\
         use crate::work::LayerWork;\nuse crate::wrapped_table::WrappedTable;\n\n",
    );
    let tables: Vec<(&ContractItem, Vec<&SlotDefinition>)> = wrapped_tables(contract).collect();
    write_slot_list(&mut out, &tables);
    for (item, slots) in &tables {
        for slot in slots {
            write_description(&mut out, contract, item, slot);
            write_function(&mut out, contract, item, slot);
        }
        write_table(&mut out, item, slots);
    }
    out
}

/// The tables and records that a layer wraps; drafts are not wrapped.
fn wrapped_tables(contract: &Contract) -> impl Iterator<Item = (&ContractItem, Vec<&SlotDefinition>)> {
    contract.items.iter().filter(|item| item.is_locked()).filter_map(|item| match &item.kind {
        ItemKind::Table(table) if table.profile.is_some() => {
            Some((item, member_slots(&table.members).collect()))
        }
        ItemKind::Struct(members) if item.name == "kernel" => Some((item, member_slots(members).collect())),
        _ => None,
    })
}

fn write_handle_kinds(out: &mut String, contract: &Contract) {
    out.push_str(
        "/// What a handle stands for.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum HandleKind {\n",
    );
    let handles =
        contract.items.iter().filter(|item| item.is_locked() && matches!(item.kind, ItemKind::Handle));
    for handle in handles {
        let docs = handle.docs.first().map_or("A handle.", String::as_str);
        writeln!(out, "/// {docs}\n{},", to_camel_case(&handle.name)).expect("infallible");
    }
    out.push_str("}\n\n");
}

fn slot_name(item: &ContractItem, slot: &SlotDefinition) -> String {
    to_camel_case(&format!("{}_{}", item.name, slot.name))
}

fn all_slots<'a>(
    tables: &'a [(&'a ContractItem, Vec<&'a SlotDefinition>)],
) -> impl Iterator<Item = (&'a ContractItem, &'a SlotDefinition)> {
    tables.iter().flat_map(|(item, slots)| slots.iter().map(move |slot| (*item, *slot)))
}

fn write_slot_enum(out: &mut String, tables: &[(&ContractItem, Vec<&SlotDefinition>)]) {
    out.push_str(
        "/// A slot that layers wrap.\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum ContractSlot {\n",
    );
    for (item, slot) in all_slots(tables) {
        writeln!(out, "/// `{}` of `{}`.\n{},", slot.name, item.name, slot_name(item, slot))
            .expect("infallible");
    }
    out.push_str("}\n");
}

fn write_slot_list(out: &mut String, tables: &[(&ContractItem, Vec<&SlotDefinition>)]) {
    out.push_str(
        "/// Every slot that layers wrap, in the order of the contract.\npub static SLOTS: &[&SlotDescription] = &[\n",
    );
    for (item, slot) in all_slots(tables) {
        writeln!(out, "&{},", static_name(item, slot)).expect("infallible");
    }
    out.push_str("];\n\n");
}

fn static_name(item: &ContractItem, slot: &SlotDefinition) -> String {
    format!("{}_{}", item.name, slot.name).to_uppercase()
}

fn write_description(out: &mut String, contract: &Contract, item: &ContractItem, slot: &SlotDefinition) {
    let words = slot_words(contract, slot);
    let place = |name: &str| {
        let found = words.iter().position(|word| word.name == name);
        found.map_or("None".to_owned(), |at| format!("Some({at})"))
    };
    write!(
        out,
        "static {}: SlotDescription = SlotDescription {{ slot: ContractSlot::{}, table: \"{}\", name: \"{}\", \
         device: {}, queue: {}, parameters: &[",
        static_name(item, slot),
        slot_name(item, slot),
        item.name,
        slot.name,
        place("device"),
        place("queue"),
    )
    .expect("infallible");
    for word in &words {
        writeln!(out, "ParameterDescription {{ name: \"{}\", kind: {} }},", word.name, word.kind)
            .expect("infallible");
    }
    out.push_str("] };\n\n");
}

/// One word of a call: its name, its kind, and how it is made of an argument.
struct CallWord {
    name: String,
    kind: String,
    from_argument: String,
}

fn slot_words(contract: &Contract, slot: &SlotDefinition) -> Vec<CallWord> {
    let mut lowered = slot_params(contract, slot).into_iter().skip(1);
    let mut words = Vec::new();
    for param in &slot.params {
        for kind in parameter_kinds(contract, param) {
            let field = lowered.next().expect("each part of a parameter is lowered");
            let name = rust_identifier(&field.name);
            if kind == "Text" {
                words.push(CallWord {
                    name: field.name.clone(),
                    kind: "ParameterKind::Text".into(),
                    from_argument: format!("pointer_word({name}.data)"),
                });
                words.push(CallWord {
                    name: format!("{}_size", field.name),
                    kind: "ParameterKind::Number".into(),
                    from_argument: format!("{name}.size"),
                });
                continue;
            }
            words.push(CallWord {
                name: field.name.clone(),
                kind: format!("ParameterKind::{kind}"),
                from_argument: to_word(contract, &name, &field.ty),
            });
        }
    }
    words
}

/// The kinds of the parts that a parameter is lowered to.
fn parameter_kinds(contract: &Contract, param: &ParameterDefinition) -> Vec<String> {
    let item = |name: &str| contract.find_item(name).map(|item| &item.kind);
    let size_of = |ty: &ContractType| match ty {
        ContractType::Number(name) => format!("size_of::<{name}>()"),
        ContractType::Named(name) if matches!(item(name), Some(ItemKind::Struct(_))) => {
            "size_of::<*const c_void>()".to_owned()
        }
        ContractType::Named(name) => format!("size_of::<abi::{}>()", to_camel_case(name)),
        _ => "size_of::<*const c_void>()".to_owned(),
    };
    let one = |kind: String| vec![kind];
    match (&param.ty, param.direction) {
        (ContractType::Bytes, ParameterDirection::Out) => vec!["OutBytes".into(), "Number".into()],
        (ContractType::Bytes, _) => vec!["InBytes".into(), "Number".into()],
        (ContractType::List(element), ParameterDirection::Out) => {
            vec![format!("OutItems({})", size_of(element)), "Number".into(), "OutNumber(8)".into()]
        }
        (ContractType::List(_), _) => vec!["InItems".into(), "Number".into()],
        (ContractType::Callback(_), _) => one("Callback".into()),
        (ContractType::Named(name), direction) => match (item(name), direction) {
            (Some(ItemKind::Handle), ParameterDirection::Value) => {
                one(format!("Handle(HandleKind::{})", to_camel_case(name)))
            }
            (Some(ItemKind::Handle), ParameterDirection::Out) => {
                one(format!("OutHandle(HandleKind::{})", to_camel_case(name)))
            }
            (Some(ItemKind::Value(_)), ParameterDirection::Value) if name == "str" => one("Text".into()),
            (Some(ItemKind::Value(_)), ParameterDirection::Out) => {
                one(format!("OutValue({})", size_of(&param.ty)))
            }
            (Some(ItemKind::Struct(_)), ParameterDirection::Out) => {
                one(format!("OutStruct(size_of::<abi::{}>())", to_camel_case(name)))
            }
            (_, ParameterDirection::In) => one(format!("InStruct(\"{name}\")")),
            (_, ParameterDirection::Out) => one(format!("OutNumber({})", size_of(&param.ty))),
            (_, ParameterDirection::Value) => one("Number".into()),
        },
        (ContractType::Number(_), ParameterDirection::Out) => {
            one(format!("OutNumber({})", size_of(&param.ty)))
        }
        (ContractType::Number(_), _) => one("Number".into()),
        (_, ParameterDirection::Out) => one("OutAddress".into()),
        (_, ParameterDirection::In) => one("InAddress".into()),
        (_, ParameterDirection::Value) => one("Address".into()),
    }
}

/// An argument as a word.
fn to_word(contract: &Contract, name: &str, ty: &LoweredType) -> String {
    match ty {
        LoweredType::Number("u64") => name.to_owned(),
        LoweredType::Number("i32") => format!("i64::from({name}).cast_unsigned()"),
        LoweredType::Number("i64") => format!("{name}.cast_unsigned()"),
        LoweredType::Number("f64") => format!("{name}.to_bits()"),
        LoweredType::Number(_) => format!("u64::from({name})"),
        LoweredType::Named(ty) => match contract.find_item(ty).map(|item| &item.kind) {
            Some(ItemKind::Handle | ItemKind::Flags(64, _)) => format!("{name}.0"),
            Some(ItemKind::Enum(_) | ItemKind::Flags(..)) => format!("u64::from({name}.0)"),
            _ => unreachable!("`{ty}` is not passed by value"),
        },
        LoweredType::Callback(_) => {
            format!("{name}.map_or(0, |function| pointer_word(function as *const c_void))")
        }
        _ => format!("pointer_word({name})"),
    }
}

/// The argument that a word stands for.
fn from_word(contract: &Contract, at: usize, ty: &LoweredType) -> String {
    match ty {
        LoweredType::Number("u64") => format!("words[{at}]"),
        LoweredType::Number("i64") => format!("words[{at}].cast_signed()"),
        LoweredType::Number("f64") => format!("f64::from_bits(words[{at}])"),
        LoweredType::Number(number) => format!("words[{at}] as {number}"),
        LoweredType::Named(name) => {
            let wide = matches!(
                contract.find_item(name).map(|item| &item.kind),
                Some(ItemKind::Handle | ItemKind::Flags(64, _))
            );
            let narrow = if wide { "" } else { " as u32" };
            format!("{}(words[{at}]{narrow})", rust_type(contract, ty, RustScope::Abi))
        }
        LoweredType::Callback(_) => format!(
            "core::mem::transmute::<*mut c_void, {}>(word_pointer(words[{at}]))",
            rust_type(contract, ty, RustScope::Abi)
        ),
        LoweredType::Const(_) => format!("word_const_pointer(words[{at}])"),
        _ => format!("word_pointer(words[{at}])"),
    }
}

fn write_function(out: &mut String, contract: &Contract, item: &ContractItem, slot: &SlotDefinition) {
    let all = slot_params(contract, slot);
    let params = rust_params(contract, &all, RustScope::Abi);
    let ty = to_camel_case(&item.type_name());
    let words: Vec<String> = slot_words(contract, slot).into_iter().map(|word| word.from_argument).collect();
    let mut passed = String::from("this.context");
    let mut at = 0;
    for field in &all[1..] {
        if is_text(field) {
            write!(passed, ", abi::Str {{ data: word_const_pointer(words[{at}]), size: words[{}] }}", at + 1)
                .expect("infallible");
            at += 2;
        } else {
            write!(passed, ", {}", from_word(contract, at, &field.ty)).expect("infallible");
            at += 1;
        }
    }
    let unused = if words.is_empty() { "_" } else { "" };
    write!(
        out,
        "unsafe extern \"C\" fn {0}_{1}<W: LayerWork>({params}) -> abi::Error {{\n\
         // SAFETY: the host hands back the context that `wrap` gave it.\n\
         let this = unsafe {{ &*context.cast::<WrappedTable<W, abi::{ty}>>() }};\n\
         let Some(next) = this.next.{1} else {{ return this.missing_slot(&{site}) }};\n\
         // SAFETY: the words are the arguments as they came, or what a layer vouches for, for the function they were meant for.\n\
         this.around_call(&{site}, &[{words}], &|{unused}words| unsafe {{ next({passed}) }})\n}}\n\n",
        item.name,
        slot.name,
        site = static_name(item, slot),
        words = words.join(", ")
    )
    .expect("infallible");
}

fn is_text(field: &LoweredField) -> bool {
    matches!(&field.ty, LoweredType::Named(name) if name == "str")
}

fn write_table(out: &mut String, item: &ContractItem, slots: &[&SlotDefinition]) {
    let (name, ty) = (&item.name, to_camel_case(&item.type_name()));
    let docs = match item.kind {
        ItemKind::Table(_) => "The table that stands before `next`; a slot that is empty below stays empty.",
        _ => "The record that stands before `next`; its context is still that of `next`.",
    };
    writeln!(
        out,
        "/// {docs}\npub(crate) fn before_{name}<W: LayerWork>(next: &abi::{ty}) -> abi::{ty} {{\nabi::{ty} {{"
    )
    .expect("infallible");
    for slot in slots {
        writeln!(out, "{0}: next.{0}.and(Some({name}_{0}::<W>)),", slot.name).expect("infallible");
    }
    let size = format!("size: size_of::<abi::{ty}>() as u32,");
    write!(out, "{size}\nnext: core::ptr::null(),\n..*next\n}}\n}}\n\n").expect("infallible");
}
