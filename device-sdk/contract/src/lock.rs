//! The lock: every fact about the contract that a binary may rely on, one per line.
//!
//! A line that was once in `abi.lock` stays there forever, word for word; a new version only adds lines. So the question "did
//! this break a plugin?" is a comparison of sets of lines and needs no judgment.
//!
//! Drafts have no lines here. They have lines in `abi.draft`, under the number of the draft: two sides with the same number
//! mean the same draft.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::drafts::reachable_items;
use crate::layout::struct_layout;
use crate::lower::{LoweredField, LoweredType, callback_params};
use crate::model::{ConstantDefinition, Contract, ContractItem, ItemKind};

/// The text of `abi.lock` for a contract.
pub fn lock_text(contract: &Contract) -> String {
    let mut out = String::from(
        "# Every fact that binaries rely on. Lines are only ever added; `cargo xtask generate` writes this file.\n",
    );
    for item in contract.items.iter().filter(|item| item.is_locked()) {
        write_item(&mut out, contract, item);
    }
    out
}

/// The text of `abi.draft`: the number of each draft, and one line in the format of the lock for each fact about its table and
/// about declarations that only drafts use.
pub fn draft_text(contract: &Contract) -> String {
    let mut out = String::from(
        "# Every fact about the drafts of profiles, under their numbers. A draft that changes gets a new number; \
         `cargo xtask generate` writes this file.\n",
    );
    for (table, profile, number) in contract.draft_profiles() {
        for item in reachable_items(contract, table).into_iter().filter(|item| !item.is_locked()) {
            let mut facts = String::new();
            write_item(&mut facts, contract, item);
            facts.lines().for_each(|fact| {
                writeln!(out, "{profile} {number}: {fact}").expect("writing to a string never fails");
            });
        }
    }
    out
}

/// The lines of `old` that `new` lacks. Each one would break binaries.
pub fn lost_lines<'a>(old: &'a str, new: &str) -> Vec<&'a str> {
    let kept: HashSet<&str> = new.lines().collect();
    old.lines().filter(|line| !line.starts_with('#') && !kept.contains(line)).collect()
}

fn write_item(out: &mut String, contract: &Contract, item: &ContractItem) {
    let name = item.type_name();
    let major = contract.major;
    let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string never fails");
    match &item.kind {
        ItemKind::Handle => line(format!("handle {name} u64")),
        ItemKind::Enum(constants) => {
            constants.iter().for_each(|c| line(constant_line("enum", &name, major, c)));
        }
        ItemKind::Flags(bits, constants) => {
            line(format!("flags {name} u{bits}"));
            constants.iter().for_each(|c| line(constant_line("bit", &name, major, c)));
        }
        ItemKind::Callback(callback) => {
            let params = signature_text(&callback_params(contract, callback));
            line(format!("callback {name}({params}){}", if callback.fallible { " -> error" } else { "" }));
        }
        ItemKind::Rule(_) => line(format!("rule {name}")),
        ItemKind::Value(_) | ItemKind::Struct(_) | ItemKind::Table(_) => {
            write_layout(&mut line, contract, item, &name);
        }
    }
}

fn constant_line(kind: &str, name: &str, major: u32, constant: &ConstantDefinition) -> String {
    format!("{kind} {name}.{} = {} since {major}.{}", constant.name, constant.value, constant.since)
}

fn write_layout(line: &mut impl FnMut(String), contract: &Contract, item: &ContractItem, name: &str) {
    let major = contract.major;
    let mut last = None;
    for minor in 0..=contract.minor {
        let layout = struct_layout(contract, item, minor);
        if last != Some(layout.size) {
            line(format!("struct {name} in {major}.{minor}: size {} align {}", layout.size, layout.align));
            last = Some(layout.size);
        }
    }
    for (index, (field, offset, size)) in
        struct_layout(contract, item, contract.minor).fields.into_iter().enumerate()
    {
        let promise = match field.required {
            Some(true) => " required",
            Some(false) => " optional",
            None => "",
        };
        let at = format!("at {offset} size {size} since {major}.{}", field.since);
        line(format!("field {name}.{} #{index} {at}: {}{promise}", field.name, type_text(&field.ty)));
    }
}

fn signature_text(params: &[LoweredField]) -> String {
    params.iter().map(|p| format!("{}: {}", p.name, type_text(&p.ty))).collect::<Vec<_>>().join(", ")
}

fn type_text(ty: &LoweredType) -> String {
    match ty {
        LoweredType::Number(name) => (*name).to_owned(),
        LoweredType::Named(name) => name.clone(),
        LoweredType::Const(None) => "*const".to_owned(),
        LoweredType::Const(Some(target)) => format!("*const {}", type_text(target)),
        LoweredType::Mutable(None) => "*mut".to_owned(),
        LoweredType::Mutable(Some(target)) => format!("*mut {}", type_text(target)),
        LoweredType::Function(params) => format!("fn({})", signature_text(params)),
        LoweredType::Callback(name) => format!("callback {name}"),
    }
}
