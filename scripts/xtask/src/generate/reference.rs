//! Generates the reference page: all tables, slots, structs, constants and rules, in the order of the contract.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::{LoweredField, callback_params, item_fields, slot_params};
use oarlock_contract::model::{
    ConstantDefinition, ContractItem, ItemKind, ItemStage, MemberDefinition, SlotDefinition, TableDefinition,
    member_slots,
};

use super::host_calls::has_caller;
use super::names::{c_declaration, c_params};

/// Renders `docs/src/reference/contract.md`.
pub(super) fn reference_page(contract: &Contract) -> String {
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
    write_profiles(&mut out, contract);
    let is_draft = |item: &ContractItem| !item.is_locked();
    write_sections(&mut out, contract, "##", ContractItem::is_locked);
    write_rules(&mut out, contract);
    write_custom_device(&mut out, contract);
    write_drafts(&mut out, contract);
    write_sections(&mut out, contract, "###", is_draft);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Writes all locked or all draft items by kind. `level` is the Markdown prefix of headings.
fn write_sections(out: &mut String, contract: &Contract, level: &str, is_wanted: fn(&ContractItem) -> bool) {
    for (item, table) in contract.tables().filter(|(item, _)| is_wanted(item)) {
        write_table(out, contract, level, item, table);
    }
    let items: Vec<&ContractItem> = contract.items.iter().filter(|item| is_wanted(item)).collect();
    let mut section = |title: &str, write_item: &dyn Fn(&mut String, &ContractItem)| {
        write!(out, "{level} {title}\n\n").expect("infallible");
        items.iter().for_each(|item| write_item(out, item));
    };
    section("Structs", &|out, item| write_struct(out, contract, level, item));
    section("Handles", &|out, item| {
        if matches!(item.kind, ItemKind::Handle) {
            write_heading(out, level, item);
        }
    });
    section("Callbacks", &|out, item| {
        if let ItemKind::Callback(callback) = &item.kind {
            write_heading(out, level, item);
            let result = if callback.fallible { "oarlock_error" } else { "void" };
            let params = c_params(&callback_params(contract, callback));
            write!(out, "```c\ntypedef {result} (*oarlock_{})({params});\n```\n\n", item.name)
                .expect("infallible");
        }
    });
    section("Constants", &|out, item| match &item.kind {
        ItemKind::Enum(constants) => write_constants(out, level, item, constants, "Value"),
        ItemKind::Flags(_, constants) => write_constants(out, level, item, constants, "Bit"),
        _ => {}
    });
}

fn write_profiles(out: &mut String, contract: &Contract) {
    out.push_str(
        "## Profiles\n\nA profile is a table that a plugin provides whole or leaves out. A plugin that provides a profile fills its \
         required slots; a slot never turns from optional to required within a version of its profile.\n\n\
         A profile is **locked** when a device in the tree implements it, the host calls it and the conformance suite checks it; \
         from then on nothing of it ever changes but by addition. Until then it is a [**draft**](#drafts), which may change or \
         go with any version.\n\n\
         | Profile | | Required | Optional | Purpose |\n|---|---|---|---|---|\n",
    );
    let locked = contract.locked_profiles().map(|profile| (profile, "locked, version"));
    for ((item, profile, number), state) in
        locked.chain(contract.draft_profiles().map(|profile| (profile, "draft")))
    {
        let ItemKind::Table(table) = &item.kind else { continue };
        let required = table.slots().filter(|slot| slot.required).count();
        let optional = table.slots().count() - required;
        let docs = item.docs.join(" ");
        let purpose = first_sentence(&docs);
        writeln!(
            out,
            "| [`{profile}`](#table-{profile}) | {state} {number} | {required} | {optional} | {purpose} |"
        )
        .expect("infallible");
    }
    out.push('\n');
}

/// Explains drafts, and writes all of them.
fn write_drafts(out: &mut String, contract: &Contract) {
    out.push_str(
        "\n## Drafts\n\n> **What follows may change or go with any version.** It is in `oarlock/contract_draft.h` and in the module \
         `draft` of `oarlock-abi`, and in nothing else that a plugin is built with.\n\n\
         A draft has a number, which rises with every change. A plugin names each draft that it provides in `drafts` of \
         [`oarlock_plugin`](#oarlock_plugin), by profile and number; of one profile it may provide several, for hosts of several \
         versions. A host uses a draft only if it has the very same number. Otherwise it does not read the table: it uses the \
         plugin with its other profiles and says in its report which draft it does not use, which number it has itself, and \
         what to do. `oarlock plugins` and `oarlock plugin check` show drafts apart from profiles, a manifest does not name \
         them, and layers do not see them. A profile that gets locked gets a field of its own in `oarlock_plugin`; its drafts \
         are not used from then on.\n\n\
         | Profile | Draft | This version |\n|---|---|---|\n",
    );
    for (item, profile, number) in contract.draft_profiles() {
        let state = match item.stage {
            ItemStage::Trial => "on trial: the host and the SDK have code for it",
            ItemStage::Draft | ItemStage::Locked => {
                "a proposal: no host calls it and the SDK has no trait for it"
            }
        };
        writeln!(out, "| [`{profile}`](#table-{profile}) | {number} | {state} |").expect("infallible");
    }
    out.push('\n');
}

fn write_table(
    out: &mut String,
    contract: &Contract,
    level: &str,
    item: &ContractItem,
    table: &TableDefinition,
) {
    write!(out, "{level} Table `{}`\n\n{}\n\n", item.name, item.docs.join(" ")).expect("infallible");
    for member in &table.members {
        match member {
            MemberDefinition::Slot(slot) => write_slot(out, contract, level, item, slot),
            MemberDefinition::Field(field) => {
                write!(out, "- `{}`: {}\n\n", field.name, field.docs.join(" ")).expect("infallible");
            }
        }
    }
}

fn write_slot(
    out: &mut String,
    contract: &Contract,
    level: &str,
    item: &ContractItem,
    slot: &SlotDefinition,
) {
    let params = c_params(&slot_params(contract, slot));
    let promise = match &slot.default {
        _ if slot.required => "**Required.**".to_owned(),
        Some(default) => format!("*Optional*; when null: {default}."),
        None => "*Optional.*".to_owned(),
    };
    let unused = if has_caller(&item.name, &slot.name) { "" } else { " The host has no use for it yet." };
    write!(
        out,
        "{level}# `{name}`\n\n```c\noarlock_error {name}({params});\n```\n\n{docs}\n\n{promise}{unused}\n\n",
        name = slot.name,
        docs = slot.docs.join(" ")
    )
    .expect("infallible");
}

fn write_heading(out: &mut String, level: &str, item: &ContractItem) {
    write!(out, "{level}# `oarlock_{}`\n\n", item.type_name()).expect("infallible");
    if !item.docs.is_empty() {
        write!(out, "{}\n\n", item.docs.join("\n")).expect("infallible");
    }
}

fn write_struct(out: &mut String, contract: &Contract, level: &str, item: &ContractItem) {
    let (members, header) = match &item.kind {
        ItemKind::Value(members) => (members, 0),
        ItemKind::Struct(members) => (members, 3),
        _ => return,
    };
    write_heading(out, level, item);
    out.push_str("| Field | Meaning |\n|---|---|\n");
    for field in item_fields(contract, item).iter().skip(header).filter(|field| field.required.is_none()) {
        writeln!(out, "| `{}` | {} |", c_declaration(field), field_meaning(field)).expect("infallible");
    }
    out.push('\n');
    for slot in member_slots(members) {
        write_slot(out, contract, level, item, slot);
    }
}

fn field_meaning(field: &LoweredField) -> String {
    if field.name.starts_with("reserved") && field.docs.is_empty() {
        return "Zero.".to_owned();
    }
    field.docs.join(" ")
}

fn write_constants(
    out: &mut String,
    level: &str,
    item: &ContractItem,
    constants: &[ConstantDefinition],
    column: &str,
) {
    write_heading(out, level, item);
    writeln!(out, "| Name | {column} | Meaning |\n|---|---|---|").expect("infallible");
    for constant in constants {
        let name = format!("OARLOCK_{}_{}", item.name.to_uppercase(), constant.name.to_uppercase());
        writeln!(out, "| `{name}` | {} | {} |", constant.value, constant.docs.join(" ")).expect("infallible");
    }
    out.push('\n');
}

fn write_rules(out: &mut String, contract: &Contract) {
    out.push_str(
        "## Rules\n\nMessages quote these numbers. *Noticed by* says who finds a breach: the host, when it loads a plugin or when a \
         program asks it for something that breaks the rule; the SDK that plugins are written with; the conformance suite; the \
         contract itself, which leaves no way to break it; the \
         layer [`validate`](../contributor/layers.md), when it is active; or nobody yet. Those rules are promises that nothing checks.\n\n\
         | Rule | Noticed by | |\n|---|---|---|\n",
    );
    for item in &contract.items {
        if let ItemKind::Rule(by) = &item.kind {
            let by = if by == "nobody" { "nobody yet" } else { by };
            writeln!(out, "| {} | {by} | {} |", item.name, item.docs.join(" ")).expect("infallible");
        }
    }
    out.push('\n');
}

fn write_custom_device(out: &mut String, contract: &Contract) {
    out.push_str(
        "## For authors of custom-device plugins\n\nWhere each function of a custom-device runtime has gone. `set_device` and \
         `get_device` have no slot: the device is an argument of every call (rule D-3).\n\n\
         | Custom device | Table | Slot | |\n|---|---|---|---|\n",
    );
    for (item, table) in contract.tables() {
        for slot in table.slots() {
            if let Some(spec) = &slot.spec {
                let promise = match slot.required {
                    _ if !item.is_locked() => "draft",
                    true => "required",
                    false => "optional",
                };
                writeln!(out, "| `{spec}` | `{}` | `{}` | {promise} |", item.name, slot.name)
                    .expect("infallible");
            }
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}
