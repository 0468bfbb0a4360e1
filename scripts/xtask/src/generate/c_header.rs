//! Generates the C header, which must parse as C11 and C++17 and with bindgen.

use std::fmt::Write as _;

use oarlock_contract::lower::{LoweredField, callback_params, item_fields};
use oarlock_contract::model::{ConstantDefinition, ContractItem, ItemKind};
use oarlock_contract::{Contract, struct_layout};

use super::names::{c_declaration, c_params};

const C_BANNER: &str =
    "/* Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit. */\n";

/// Renders `oarlock/contract.h`.
pub(super) fn contract_header(contract: &Contract) -> String {
    let mut out = String::from(C_BANNER);
    let Contract { major, minor, .. } = contract;
    write!(
        out,
        r#"/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugin contract of Oarlock, version {major}.{minor}: every type that crosses a plugin boundary and never changes again.
 * `oarlock/contract_draft.h` has the profiles that still may.
 * A plugin is a shared object that exports `oarlock_plugin_query`; `oarlock/plugin.h` helps to write it.
 * The reference page of the documentation explains every table, slot and rule. */
#ifndef OARLOCK_CONTRACT_H
#define OARLOCK_CONTRACT_H

#include <stdint.h>

#define OARLOCK_CONTRACT_MAJOR {major}u
#define OARLOCK_CONTRACT_MINOR {minor}u

#ifdef __cplusplus
extern "C" {{
static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#else
_Static_assert(sizeof(void *) == 8, "Oarlock runs on 64-bit machines");
#endif
"#
    )
    .expect("writing to a string never fails");

    write_declarations(&mut out, contract, ContractItem::is_locked);
    out.push_str(
        r#"
#ifdef _WIN32
#define OARLOCK_EXPORT __declspec(dllexport)
#else
#define OARLOCK_EXPORT __attribute__((visibility("default")))
#endif

/** The one function a plugin exports. The host says who it is, the plugin fills in who it is.
 *  Write it with `OARLOCK_PLUGIN` of `oarlock/plugin.h`, which checks the versions first. */
OARLOCK_EXPORT oarlock_error oarlock_plugin_query(const oarlock_host *host, oarlock_plugin *plugin);

#ifdef __cplusplus
}
#endif

#endif
"#,
    );
    out
}

/// Renders `oarlock/contract_draft.h`, the profiles that are not locked yet.
pub(super) fn draft_header(contract: &Contract) -> String {
    let mut out = String::from(C_BANNER);
    out.push_str(
        r#"/* SPDX-License-Identifier: Apache-2.0
 *
 * DRAFTS: profiles of the contract that no version of Oarlock promises anything about. What is here may change or go with
 * any version. Whoever includes this file tries it out; the reference page says which drafts a host calls at all.
 *
 * A draft has a number that rises with every change. A plugin provides a draft under its number, and a host that has another
 * one passes it over, says so, and uses the plugin without it:
 *
 *     static const oarlock_graph_table graph = {OARLOCK_TABLE(oarlock_graph_table), .graph_run = run, ...};
 *     static const oarlock_draft_profile graph_draft = {OARLOCK_HEADER(oarlock_draft_profile),
 *         .profile = OARLOCK_STR("graph"), .number = OARLOCK_GRAPH_DRAFT, .table = &graph};
 *     static const oarlock_draft_profile *const drafts[] = {&graph_draft};
 *
 *     plugin->drafts = drafts;
 *     plugin->drafts_count = 1; */
#ifndef OARLOCK_CONTRACT_DRAFT_H
#define OARLOCK_CONTRACT_DRAFT_H

#include "contract.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of the drafts. */
"#,
    );
    for (_, profile, number) in contract.draft_profiles() {
        let name = profile.to_uppercase();
        writeln!(out, "#define OARLOCK_{name}_DRAFT {number}u").expect("infallible");
    }
    write_declarations(&mut out, contract, |item| !item.is_locked());
    out.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

fn write_declarations(out: &mut String, contract: &Contract, is_wanted: impl Fn(&ContractItem) -> bool) {
    let items: Vec<&ContractItem> = contract.items.iter().filter(|item| is_wanted(item)).collect();
    items.iter().for_each(|item| write_scalar(out, item));
    let structs = || items.iter().filter(|item| is_struct(item));
    if structs().next().is_some() {
        out.push_str("\n/* Structs and tables, declared before any of them is described. */\n");
    }
    for item in structs() {
        let name = item.type_name();
        writeln!(out, "typedef struct oarlock_{name} oarlock_{name};").expect("infallible");
    }
    for item in &items {
        if let ItemKind::Callback(callback) = &item.kind {
            write_comment(out, "", &item.docs);
            let result = if callback.fallible { "oarlock_error" } else { "void" };
            let params = c_params(&callback_params(contract, callback));
            writeln!(out, "typedef {result} (*oarlock_{})({params});", item.name).expect("infallible");
        }
    }
    structs().for_each(|item| write_structure(out, contract, item));
}

/// Renders `oarlock/contract_layout.h`, static assertions of sizes and offsets.
pub(super) fn layout_check_header(contract: &Contract) -> String {
    let mut out = String::from(C_BANNER);
    out.push_str(
        r#"/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes the contract with its drafts and has the compiler check every size, alignment and offset. */
#ifndef OARLOCK_CONTRACT_LAYOUT_H
#define OARLOCK_CONTRACT_LAYOUT_H

#include <stddef.h>

#include "contract.h"
#include "contract_draft.h"

#ifdef __cplusplus
#define OARLOCK_CHECK(condition) static_assert(condition, #condition)
#define OARLOCK_ALIGNMENT(type) alignof(type)
#else
#define OARLOCK_CHECK(condition) _Static_assert(condition, #condition)
#define OARLOCK_ALIGNMENT(type) _Alignof(type)
#endif

"#,
    );
    for item in contract.items.iter().filter(|item| is_struct(item)) {
        let layout = struct_layout(contract, item, contract.minor);
        let name = item.type_name();
        writeln!(out, "OARLOCK_CHECK(sizeof(oarlock_{name}) == {});", layout.size).expect("infallible");
        writeln!(out, "OARLOCK_CHECK(OARLOCK_ALIGNMENT(oarlock_{name}) == {});", layout.align)
            .expect("infallible");
        for (field, offset, _) in layout.fields {
            writeln!(out, "OARLOCK_CHECK(offsetof(oarlock_{name}, {}) == {offset});", field.name)
                .expect("infallible");
        }
    }
    out.push_str("\n#undef OARLOCK_CHECK\n#undef OARLOCK_ALIGNMENT\n\n#endif\n");
    out
}

fn is_struct(item: &ContractItem) -> bool {
    matches!(item.kind, ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_))
}

fn write_scalar(out: &mut String, item: &ContractItem) {
    let upper = item.name.to_uppercase();
    let (ty, constants, render): (_, &[ConstantDefinition], fn(u32) -> String) = match &item.kind {
        ItemKind::Handle => ("uint64_t", &[], |_| String::new()),
        ItemKind::Enum(constants) => ("uint32_t", constants, |value| format!("{value}u")),
        ItemKind::Flags(32, constants) => ("uint32_t", constants, |bit| format!("(1u << {bit})")),
        ItemKind::Flags(_, constants) => ("uint64_t", constants, |bit| format!("(1ull << {bit})")),
        _ => return,
    };
    write_comment(out, "", &item.docs);
    writeln!(out, "typedef {ty} oarlock_{};", item.name).expect("infallible");
    for constant in constants {
        write_comment(out, "", &constant.docs);
        let name = format!("OARLOCK_{upper}_{}", constant.name.to_uppercase());
        writeln!(out, "#define {name} {}", render(constant.value)).expect("infallible");
    }
}

fn write_structure(out: &mut String, contract: &Contract, item: &ContractItem) {
    let name = item.type_name();
    out.push('\n');
    if matches!(item.kind, ItemKind::Table(_)) {
        let bits = (0..=contract.minor).map(|minor| format!("(1ull << {minor})")).collect::<Vec<_>>();
        let upper = name.to_uppercase();
        writeln!(out, "/** What the author of this header understood: one bit for each minor version. */")
            .expect("infallible");
        writeln!(out, "#define OARLOCK_{upper}_FEATURES ({})", bits.join(" | ")).expect("infallible");
    }
    write_comment(out, "", &item.docs);
    writeln!(out, "struct oarlock_{name} {{").expect("infallible");
    for field in item_fields(contract, item) {
        let mut docs = field.docs.clone();
        annotate_slot(&mut docs, &field, contract, item);
        write_comment(out, "    ", &docs);
        writeln!(out, "    {};", wrap_declaration(&c_declaration(&field))).expect("infallible");
    }
    out.push_str("};\n");
}

/// Documents that a slot is required, or its default otherwise.
fn annotate_slot(docs: &mut Vec<String>, field: &LoweredField, contract: &Contract, item: &ContractItem) {
    let members = match &item.kind {
        ItemKind::Table(table) => &table.members,
        ItemKind::Struct(members) => members,
        _ => return,
    };
    let Some(slot) = oarlock_contract::model::member_slots(members).find(|slot| slot.name == field.name)
    else {
        return;
    };
    match &slot.default {
        _ if slot.required => docs.push("Required.".to_owned()),
        Some(default) => docs.push(format!("Optional; when null: {default}.")),
        None => docs.push("Optional.".to_owned()),
    }
    if slot.since > 0 {
        docs.push(format!("Since {}.{}.", contract.major, slot.since));
    }
}

/// Breaks a long function pointer between its arguments.
fn wrap_declaration(declaration: &str) -> String {
    const MAX_LINE_WIDTH: usize = 110;
    if declaration.len() + 5 <= MAX_LINE_WIDTH {
        return declaration.to_owned();
    }
    let mut out = String::new();
    let mut column = 4;
    for part in declaration.split_inclusive(", ") {
        if column + part.trim_end().len() > MAX_LINE_WIDTH {
            out.truncate(out.trim_end().len());
            out.push_str("\n        ");
            column = 8;
        }
        column += part.len();
        out.push_str(part);
    }
    out
}

fn write_comment(out: &mut String, indent: &str, docs: &[String]) {
    if docs.is_empty() {
        return;
    }
    if indent.is_empty() && !out.ends_with("\n\n") {
        out.push('\n');
    }
    let text = docs.join(&format!("\n{indent} *  ")).replace(" *  \n", " *\n");
    writeln!(out, "{indent}/** {text} */").expect("infallible");
}

#[cfg(test)]
mod tests {
    use oarlock_contract::lower::LoweredType;

    use crate::generate::names::c_type;

    #[test]
    fn a_list_of_structs_is_a_pointer_to_constant_pointers() {
        let list = LoweredType::Const(Some(Box::new(LoweredType::Const(Some(Box::new(
            LoweredType::Named("tensor".into()),
        ))))));
        assert_eq!(c_type(&list), "const oarlock_tensor *const *");
    }
}
