//! Generates the trace layer: for each slot a function that records the call, forwards it, and records the result.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::{LoweredField, LoweredType, slot_params};
use oarlock_contract::model::{ContractItem, ItemKind, SlotDefinition, member_slots};

use super::names::{RUST_BANNER, RustScope, rust_identifier, rust_params, to_camel_case};

/// Renders `plugins/trace/src/generated.rs`.
pub(super) fn layer(contract: &Contract) -> String {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every function here is called through a pointer from C\")]\n\
         use core::ffi::c_void;\n\nuse oarlock_sdk::abi;\n\nuse crate::recorder::TracePoint;\nuse crate::traced_table::TracedTable;\n\n",
    );
    // Drafts are not wrapped.
    for item in contract.items.iter().filter(|item| item.is_locked()) {
        let members = match &item.kind {
            ItemKind::Table(table) if table.profile.is_some() => &table.members,
            ItemKind::Struct(members) if item.name == "kernel" => members,
            _ => continue,
        };
        let slots: Vec<&SlotDefinition> = member_slots(members).collect();
        for slot in &slots {
            write_slot(&mut out, contract, item, slot);
        }
        write_table(&mut out, item, &slots);
    }
    out
}

fn write_slot(out: &mut String, contract: &Contract, item: &ContractItem, slot: &SlotDefinition) {
    let all = slot_params(contract, slot);
    let params = rust_params(contract, &all, RustScope::Abi);
    let ty = to_camel_case(&item.type_name());
    let (arguments, noted) = (&all[1..], all[1..].iter().filter_map(|param| note(contract, param)));
    let (names, values): (Vec<_>, Vec<_>) = noted.unzip();
    let passed =
        std::iter::once("this.context".to_owned()).chain(arguments.iter().map(|p| rust_identifier(&p.name)));
    let passed = passed.collect::<Vec<_>>().join(", ");
    write!(
        out,
        "unsafe extern \"C\" fn {0}_{1}({params}) -> abi::Error {{\n\
         static SITE: TracePoint = TracePoint {{ name: \"{0}.{1}\", arguments: &{names:?} }};\n\
         // SAFETY: the host hands back the context that `wrap` gave it.\n\
         let this = unsafe {{ &*context.cast::<TracedTable<abi::{ty}>>() }};\n\
         let Some(next) = this.next.{1} else {{ return this.missing_slot(&SITE) }};\n\
         let began = this.recorder.elapsed_nanoseconds();\n\
         // SAFETY: the arguments are passed on as they came, to the function they were meant for.\n\
         let failure = unsafe {{ next({passed}) }};\n\
         this.record_call(&SITE, began, &[{values}], failure)\n}}\n\n",
        item.name,
        slot.name,
        values = values.join(", ")
    )
    .expect("infallible");
}

/// The name of an argument to record, and its value as a `u64`. Pointers are not recorded: they mean nothing after the call.
fn note(contract: &Contract, param: &LoweredField) -> Option<(String, String)> {
    let name = rust_identifier(&param.name);
    let value = match &param.ty {
        LoweredType::Number("u64") => name,
        LoweredType::Number("i32") => format!("{name} as u64"),
        LoweredType::Number(_) => format!("u64::from({name})"),
        LoweredType::Named(ty) => match contract.find_item(ty)?.kind {
            ItemKind::Handle => format!("{name}.0"),
            ItemKind::Enum(_) | ItemKind::Flags(32, _) => format!("u64::from({name}.0)"),
            _ => return None,
        },
        _ => return None,
    };
    Some((param.name.clone(), value))
}

fn write_table(out: &mut String, item: &ContractItem, slots: &[&SlotDefinition]) {
    let (name, ty) = (&item.name, to_camel_case(&item.type_name()));
    let docs = match item.kind {
        ItemKind::Table(_) => "The table that stands before `next`; a slot that is empty below stays empty.",
        _ => "The record that stands before `next`; its context is still that of `next`.",
    };
    writeln!(out, "/// {docs}\npub(crate) fn before_{name}(next: &abi::{ty}) -> abi::{ty} {{\nabi::{ty} {{")
        .expect("infallible");
    for slot in slots {
        writeln!(out, "{0}: next.{0}.and(Some({name}_{0})),", slot.name).expect("infallible");
    }
    let size = format!("size: size_of::<abi::{ty}>() as u32,");
    write!(out, "{size}\nnext: core::ptr::null(),\n..*next\n}}\n}}\n\n").expect("infallible");
}
