//! The host's side of the tables: a caller for each that turns a slot into a method, and what the host needs to know to
//! take a struct over from a plugin that may have been built with another minor version.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::drafts::reached_from;
use oarlock_contract::model::{Direction, Item, ItemKind, Member, Param, Slot, Stage, Type, slots};

use super::names::{RUST_BANNER, RustScope, camel, identifier, rust_docs, rust_name};
use super::params::{is_result, is_struct, value_type};

/// What the host makes of an address.
const RAW_POINTER: &str = "*mut c_void";

/// The slots, each after its table, that the host has no use for yet and so no caller. The compiler says when one is missing
/// here, since a caller that nobody uses is dead code.
const WITHOUT_CALLER: &[(&str, &str)] = &[
    ("core", "unified_memory_allocate"),
    ("core", "unified_memory_deallocate"),
    ("core", "experimental"),
    ("async", "memory_allocate_async"),
    ("async", "memory_deallocate_async"),
];

/// Whether the host calls a slot of a locked table.
pub(super) fn has_caller(table: &str, slot: &str) -> bool {
    !WITHOUT_CALLER.contains(&(table, slot))
}

/// `runtime/host/src/generated.rs`.
pub(super) fn calls(contract: &Contract) -> String {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every method here calls through a pointer into a plugin\")]\n\
         #![expect(clippy::too_many_arguments, reason = \"the contract says what a call takes\")]\n\n\
         use std::ffi::c_void;\n\nuse oarlock_abi as abi;\n\n\
         use crate::load::foreign::{Foreign, Slots};\nuse crate::services::errors::{Failure, outcome};\n\n",
    );
    for item in contract.items.iter().filter(|item| is_known_to_the_host(contract, item)) {
        let members = match &item.kind {
            ItemKind::Struct(members) => members,
            ItemKind::Table(table) => &table.members,
            _ => continue,
        };
        foreign(&mut out, contract, item);
        if is_called_by_the_host(item, members) {
            slot_checks(&mut out, contract, item, members);
            caller(&mut out, contract, item, members);
        }
    }
    out
}

/// Whether it is locked, or part of a draft that is on trial.
fn is_known_to_the_host(contract: &Contract, item: &Item) -> bool {
    let is_part_of = |table: &Item| reached_from(contract, table).iter().any(|part| part.line == item.line);
    let mut trials = contract.items.iter().filter(|table| table.stage == Stage::Trial);
    item.is_locked() || trials.any(is_part_of)
}

/// Whether it has slots that the host calls; its own table is for plugins, and a plugin's `unload` is called by hand.
fn is_called_by_the_host(item: &Item, members: &[Member]) -> bool {
    slots(members).next().is_some() && !matches!(item.name.as_str(), "host" | "plugin")
}

fn foreign(out: &mut String, contract: &Contract, item: &Item) {
    let (name, ty) = (&item.name, rust_name(contract, &item.type_name(), RustScope::Abi));
    write!(
        out,
        "// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.\n\
         unsafe impl Foreign for {ty} {{\n\
         const NAME: &'static str = {name:?};\n\
         const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;\n\
         const EMPTY: Self = Self::EMPTY;\n}}\n\n"
    )
    .expect("infallible");
}

fn slot_checks(out: &mut String, contract: &Contract, item: &Item, members: &[Member]) {
    let ty = rust_name(contract, &item.type_name(), RustScope::Abi);
    writeln!(out, "impl Slots for {ty} {{\nfn empty_required(&self) -> Option<&'static str> {{")
        .expect("infallible");
    for slot in slots(members).filter(|slot| slot.required) {
        writeln!(out, "if self.{0}.is_none() {{ return Some({0:?}); }}", slot.name).expect("infallible");
    }
    out.push_str("None\n}\n\n");
    out.push_str("fn broken_pair(&self) -> Option<(&'static str, &'static str)> {\n");
    for (take, give) in pairs(members) {
        writeln!(
            out,
            "if self.{take}.is_some() != self.{give}.is_some() {{ return Some(({take:?}, {give:?})); }}"
        )
        .expect("infallible");
    }
    out.push_str("None\n}\n}\n\n");
}

/// The optional slots that take and give back one thing, which their names tell.
fn pairs(members: &[Member]) -> Vec<(&str, String)> {
    const WORDS: [(&str, &str); 4] =
        [("allocate", "deallocate"), ("create", "destroy"), ("import", "close"), ("prepare", "release")];
    let optional: Vec<&str> =
        slots(members).filter(|slot| !slot.required).map(|slot| slot.name.as_str()).collect();
    let given_back = |take: &str| {
        let names = WORDS.iter().filter(|(word, _)| take.split('_').any(|part| part == *word));
        names.map(|(word, back)| take.replace(word, back)).find(|give| optional.contains(&give.as_str()))
    };
    optional.iter().filter_map(|take| Some((*take, given_back(take)?))).collect()
}

fn caller(out: &mut String, contract: &Contract, item: &Item, members: &[Member]) {
    let (name, ty) = (camel(&item.name), rust_name(contract, &item.type_name(), RustScope::Abi));
    write!(
        out,
        "/// Calls the functions of a `{}` of a plugin.\n///\n\
         /// A required slot gives a result; an optional one gives `None` when the plugin left it empty.\n\
         #[derive(Clone, Copy, Debug)]\npub(crate) struct {name}Calls {{\n\
         /// What every function gets first.\npub(crate) context: *mut c_void,\n\
         /// The table as it is called.\npub(crate) table: {ty},\n}}\n\n\
         // SAFETY: every function of a plugin may be called on any thread (rule T-1).\n\
         unsafe impl Send for {name}Calls {{}}\n\
         // SAFETY: as above.\n\
         unsafe impl Sync for {name}Calls {{}}\n\n\
         impl {name}Calls {{\n\
         /// Makes a caller.\n///\n/// # Safety\n///\n\
         /// Both are what one plugin handed out, and the plugin stays loaded while the caller is used.\n\
         pub(crate) unsafe fn new(context: *mut c_void, table: {ty}) -> Self {{ Self {{ context, table }} }}\n",
        item.name
    )
    .expect("infallible");
    for slot in slots(members).filter(|slot| has_caller(&item.name, &slot.name)) {
        method(out, contract, item, slot);
    }
    out.push_str("}\n\n");
}

fn method(out: &mut String, contract: &Contract, item: &Item, slot: &Slot) {
    let name = &slot.name;
    let results: Vec<&Param> = slot.params.iter().filter(|param| is_result(param)).collect();
    let types: Vec<String> = results.iter().map(|param| result_type(contract, param)).collect();
    let result = match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let result = format!("Result<{result}, Failure>");
    let result = if slot.required { result } else { format!("Option<{result}>") };
    let trusting = slot.params.iter().any(|param| needs_trust(contract, param));
    let (safety, keyword) = if trusting {
        let text = "Handles are alive and the plugin's own, addresses are what the contract says they are.";
        (format!("///\n/// # Safety\n///\n/// {text}\n"), "unsafe ")
    } else {
        (String::new(), "")
    };
    let docs = rust_docs(&slot.docs, "");
    let params: String = slot.params.iter().filter_map(|param| method_param(contract, param)).collect();
    write!(out, "\n{docs}{safety}#[inline]\npub(crate) {keyword}fn {name}(&self{params}) -> {result} {{\n")
        .expect("infallible");
    if slot.required {
        writeln!(
            out,
            "let Some(slot) = self.table.{name} else {{ return Err(Failure::empty_slot({:?}, {name:?})) }};",
            item.name
        )
        .expect("infallible");
    } else {
        writeln!(out, "let slot = self.table.{name}?;").expect("infallible");
    }
    for param in &results {
        let local = identifier(&param.name);
        let (local, value) = match &param.ty {
            Type::List(_) => (format!("{local}_count"), "0"),
            Type::Pointer => (local, "std::ptr::null_mut()"),
            Type::Number(_) => (local, "0"),
            Type::Named(ty) => {
                let path = rust_name(contract, ty, RustScope::Abi);
                let empty = match contract.find(ty).map(|item| &item.kind) {
                    Some(ItemKind::Struct(_) | ItemKind::Value(_)) => format!("{path}::EMPTY"),
                    _ => format!("{path}(0)"),
                };
                writeln!(out, "let mut {local} = {empty};").expect("infallible");
                continue;
            }
            other => unreachable!("{other:?} is not a result"),
        };
        writeln!(out, "let mut {local} = {value};").expect("infallible");
    }
    let arguments: String = slot.params.iter().map(argument).collect();
    let locals: Vec<String> = results
        .iter()
        .map(|param| {
            if matches!(param.ty, Type::List(_)) {
                format!("{}_count", param.name)
            } else {
                identifier(&param.name)
            }
        })
        .collect();
    let value = match locals.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let reason = if trusting {
        "the context is the plugin's own; the caller vouches for handles and addresses."
    } else {
        "the context is the plugin's own, and what the arguments refer to outlives the call."
    };
    writeln!(out, "// SAFETY: {reason}\nlet failure = unsafe {{ slot(self.context{arguments}) }};")
        .expect("infallible");
    let mapped = if results.is_empty() {
        "outcome(failure)".to_owned()
    } else {
        format!("outcome(failure).map(|()| {value})")
    };
    let mapped = if slot.required { mapped } else { format!("Some({mapped})") };
    writeln!(out, "{mapped}\n}}").expect("infallible");
}

fn result_type(contract: &Contract, param: &Param) -> String {
    match &param.ty {
        Type::List(_) => "u64".to_owned(),
        ty => value_type(contract, RAW_POINTER, ty),
    }
}

/// Whether a wrong argument could do harm that no check in the callee can prevent.
fn needs_trust(contract: &Contract, param: &Param) -> bool {
    if is_result(param) {
        return false;
    }
    let named = match &param.ty {
        Type::Pointer | Type::Callback(_) => return true,
        Type::Named(name) => name,
        Type::List(element) | Type::PointerTo(element) => match &**element {
            Type::Named(name) => name,
            _ => return false,
        },
        _ => return false,
    };
    matches!(contract.find(named).map(|item| &item.kind), Some(ItemKind::Handle | ItemKind::Struct(_)))
}

fn method_param(contract: &Contract, param: &Param) -> Option<String> {
    let value = |ty: &Type| value_type(contract, RAW_POINTER, ty);
    let path = |name: &str| rust_name(contract, name, RustScope::Abi);
    let ty = match (&param.ty, param.direction) {
        (Type::Bytes, Direction::Out) => "&mut [u8]".to_owned(),
        (Type::Bytes, _) => "&[u8]".to_owned(),
        (Type::List(element), Direction::Out) => format!("&mut [{}]", value(element)),
        (_, Direction::Out) => return None,
        (Type::List(element), _) => match &**element {
            Type::Named(name) if is_struct(contract, name) => format!("&[*const {}]", path(name)),
            element => format!("&[{}]", value(element)),
        },
        (Type::Callback(name), _) => path(name),
        (Type::Named(name), _) if name == "str" => "&str".to_owned(),
        (Type::Pointer, Direction::In) => "*const c_void".to_owned(),
        (ty, Direction::In) => format!("&{}", value(ty)),
        (ty, Direction::Value) => value(ty),
    };
    Some(format!(", {}: {ty}", identifier(&param.name)))
}

fn argument(param: &Param) -> String {
    let name = identifier(&param.name);
    match (&param.ty, param.direction) {
        (Type::Bytes, Direction::Out) => format!(", {name}.as_mut_ptr().cast(), {name}.len() as u64"),
        (Type::Bytes, _) => format!(", {name}.as_ptr().cast(), {name}.len() as u64"),
        (Type::List(_), Direction::Out) => {
            format!(", {name}.as_mut_ptr(), {name}.len() as u64, &raw mut {}_count", param.name)
        }
        (_, Direction::Out) => format!(", &raw mut {name}"),
        (Type::List(_), _) => format!(", {name}.as_ptr(), {name}.len() as u64"),
        (Type::Callback(_), _) => format!(", Some({name})"),
        (Type::Named(named), _) if named == "str" => format!(", abi::Str::borrowed({name})"),
        _ => format!(", {name}"),
    }
}
