//! The reference page of the documentation: every table, slot, struct, constant and rule, in the order of the contract.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::{PlainField, callback_params, fields, slot_params};
use oarlock_contract::model::{Constant, Item, ItemKind, Member, Slot, Table, slots};

use super::names::{c_declaration, c_params};

/// `docs/src/reference/contract.md`.
pub(super) fn page(contract: &Contract) -> String {
    let mut out = String::from(
        "<!-- Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit. -->\n\n",
    );
    write!(
        out,
        "# The contract, version {}.{}\n\nEverything that crosses the boundary between a host and a plugin. The C header \
         `oarlock/contract.h`, the Rust crate `oarlock-abi` and this page are generated from one file, so they agree.\n\n\
         Every struct and table starts with `size`, `flags` and `next`; every table goes on with `features`, the minor versions \
         its author understood. Those fields are not repeated below. Every function takes a `context` first and returns an \
         `oarlock_error`, 0 for success.\n\n",
        contract.major, contract.minor
    )
    .expect("infallible");
    profiles(&mut out, contract);
    for (item, table) in contract.tables() {
        write_table(&mut out, contract, item, table);
    }
    section(&mut out, contract, "Structs", write_struct);
    section(&mut out, contract, "Handles", |out, _, item| {
        if matches!(item.kind, ItemKind::Handle) {
            write_heading(out, item);
        }
    });
    section(&mut out, contract, "Callbacks", |out, contract, item| {
        if let ItemKind::Callback(callback) = &item.kind {
            write_heading(out, item);
            let result = if callback.fallible { "oarlock_error" } else { "void" };
            let params = c_params(&callback_params(contract, callback));
            write!(out, "```c\ntypedef {result} (*oarlock_{})({params});\n```\n\n", item.name)
                .expect("infallible");
        }
    });
    section(&mut out, contract, "Constants", |out, _, item| match &item.kind {
        ItemKind::Enum(constants) => write_constants(out, item, constants, "Value"),
        ItemKind::Flags(_, constants) => write_constants(out, item, constants, "Bit"),
        _ => {}
    });
    rules(&mut out, contract);
    custom_device(&mut out, contract);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn profiles(out: &mut String, contract: &Contract) {
    out.push_str(
        "## Profiles\n\nA profile is a table that a plugin brings whole or leaves out. A plugin that brings a profile fills its \
         required slots; a slot never turns from optional to required within a version of its profile.\n\n\
         | Profile | Version | Required | Optional | Purpose |\n|---|---|---|---|---|\n",
    );
    for (item, table) in contract.tables() {
        if let Some((profile, version)) = &table.profile {
            let required = table.slots().filter(|slot| slot.required).count();
            let optional = table.slots().count() - required;
            let docs = item.docs.join(" ");
            let purpose = first_sentence(&docs);
            writeln!(
                out,
                "| [`{profile}`](#table-{profile}) | {version} | {required} | {optional} | {purpose} |"
            )
            .expect("infallible");
        }
    }
    out.push('\n');
}

fn write_table(out: &mut String, contract: &Contract, item: &Item, table: &Table) {
    write!(out, "## Table `{}`\n\n{}\n\n", item.name, item.docs.join(" ")).expect("infallible");
    for member in &table.members {
        match member {
            Member::Slot(slot) => write_slot(out, contract, slot),
            Member::Field(field) => {
                write!(out, "- `{}`: {}\n\n", field.name, field.docs.join(" ")).expect("infallible");
            }
        }
    }
}

fn write_slot(out: &mut String, contract: &Contract, slot: &Slot) {
    let params = c_params(&slot_params(contract, slot));
    let promise = match &slot.default {
        _ if slot.required => "**Required.**".to_owned(),
        Some(default) => format!("*Optional*; when null: {default}."),
        None => "*Optional.*".to_owned(),
    };
    write!(
        out,
        "### `{name}`\n\n```c\noarlock_error {name}({params});\n```\n\n{docs}\n\n{promise}\n\n",
        name = slot.name,
        docs = slot.docs.join(" ")
    )
    .expect("infallible");
}

fn section(
    out: &mut String,
    contract: &Contract,
    title: &str,
    write_item: impl Fn(&mut String, &Contract, &Item),
) {
    write!(out, "## {title}\n\n").expect("infallible");
    for item in &contract.items {
        write_item(out, contract, item);
    }
}

fn write_heading(out: &mut String, item: &Item) {
    write!(out, "### `oarlock_{}`\n\n", item.type_name()).expect("infallible");
    if !item.docs.is_empty() {
        write!(out, "{}\n\n", item.docs.join("\n")).expect("infallible");
    }
}

fn write_struct(out: &mut String, contract: &Contract, item: &Item) {
    let (members, header) = match &item.kind {
        ItemKind::Value(members) => (members, 0),
        ItemKind::Struct(members) => (members, 3),
        _ => return,
    };
    write_heading(out, item);
    out.push_str("| Field | Meaning |\n|---|---|\n");
    for field in fields(contract, item).iter().skip(header).filter(|field| field.required.is_none()) {
        writeln!(out, "| `{}` | {} |", c_declaration(field), meaning(field)).expect("infallible");
    }
    out.push('\n');
    for slot in slots(members) {
        write_slot(out, contract, slot);
    }
}

fn meaning(field: &PlainField) -> String {
    match field.name.as_str() {
        "reserved" => "Zero.".to_owned(),
        _ => field.docs.join(" "),
    }
}

fn write_constants(out: &mut String, item: &Item, constants: &[Constant], column: &str) {
    write_heading(out, item);
    writeln!(out, "| Name | {column} | Meaning |\n|---|---|---|").expect("infallible");
    for constant in constants {
        let name = format!("OARLOCK_{}_{}", item.name.to_uppercase(), constant.name.to_uppercase());
        writeln!(out, "| `{name}` | {} | {} |", constant.value, constant.docs.join(" ")).expect("infallible");
    }
    out.push('\n');
}

fn rules(out: &mut String, contract: &Contract) {
    out.push_str(
        "## Rules\n\nMessages quote these numbers. *Noticed by* says who finds a breach: the host when it loads a plugin, the \
         SDK that plugins are written with, the conformance suite, the validation layer, or the generator of the contract \
         itself. The validation layer is not built yet, and the suite does \
         not check E-3, R-6, A-2 and L-1; those rules are promises that nobody checks yet.\n\n| Rule | Noticed by | |\n|---|---|---|\n",
    );
    for item in &contract.items {
        if let ItemKind::Rule(by) = &item.kind {
            writeln!(out, "| {} | {by} | {} |", item.name, item.docs.join(" ")).expect("infallible");
        }
    }
    out.push('\n');
}

fn custom_device(out: &mut String, contract: &Contract) {
    out.push_str(
        "## For authors of custom-device plugins\n\nWhere each function of a custom-device runtime has gone. `set_device` and \
         `get_device` have no slot: the device is an argument of every call (rule D-3).\n\n\
         | Custom device | Table | Slot | |\n|---|---|---|---|\n",
    );
    for (item, table) in contract.tables() {
        for slot in table.slots() {
            if let Some(spec) = &slot.spec {
                let promise = if slot.required { "required" } else { "optional" };
                writeln!(out, "| `{spec}` | `{}` | `{}` | {promise} |", item.name, slot.name)
                    .expect("infallible");
            }
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
