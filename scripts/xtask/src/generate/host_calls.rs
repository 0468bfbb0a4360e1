//! Generates the host's side of the tables: a caller for each, with a method per slot, and the data that the host needs to accept
//! a struct from a plugin that was built with another minor version.

use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::drafts::reachable_items;
use oarlock_contract::model::{
    ContractItem, ContractType, ItemKind, ItemStage, MemberDefinition, ParameterDefinition,
    ParameterDirection, SlotDefinition, member_slots,
};

use super::names::{RUST_BANNER, RustScope, rust_docs, rust_identifier, rust_name, to_camel_case};
use super::params::{is_result, is_struct, value_type};

/// The host's type for an address.
const RAW_POINTER: &str = "*mut c_void";

/// Pairs of a table and a slot that the host does not call yet. The compiler's dead code warnings keep the list complete: they report
/// an unused caller.
const WITHOUT_CALLER: &[(&str, &str)] = &[
    ("core", "unified_memory_allocate"),
    ("core", "unified_memory_deallocate"),
    ("core", "experimental"),
    ("async", "memory_allocate_async"),
    ("async", "memory_deallocate_async"),
];

/// True if the host calls a slot of a locked table.
pub(super) fn has_caller(table: &str, slot: &str) -> bool {
    !WITHOUT_CALLER.contains(&(table, slot))
}

/// Renders `runtime/host/src/generated.rs`.
pub(super) fn host_bindings(contract: &Contract) -> String {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every method here calls through a pointer into a plugin\")]\n\
         #![expect(clippy::too_many_arguments, reason = \"the contract says what a call takes\")]\n\n\
         use std::ffi::c_void;\n\nuse oarlock_abi as abi;\n\n\
         use crate::foreign_struct::{ForeignStruct, SlotTable};\nuse crate::services::errors::{PluginFailure, result_from_error};\n\n",
    );
    for item in contract.items.iter().filter(|item| is_known_to_the_host(contract, item)) {
        let members = match &item.kind {
            ItemKind::Struct(members) => members,
            ItemKind::Table(table) => &table.members,
            _ => continue,
        };
        write_foreign_struct(&mut out, contract, item);
        if is_called_by_the_host(item, members) {
            write_slot_checks(&mut out, contract, item, members);
            write_caller(&mut out, contract, item, members);
        }
    }
    out
}

/// True for a locked item, or one of a draft on trial.
fn is_known_to_the_host(contract: &Contract, item: &ContractItem) -> bool {
    let is_part_of =
        |table: &ContractItem| reachable_items(contract, table).iter().any(|part| part.line == item.line);
    let mut trials = contract.items.iter().filter(|table| table.stage == ItemStage::Trial);
    item.is_locked() || trials.any(is_part_of)
}

/// True if the host calls its slots through a caller. The host's own table is for plugins, and the code for `unload` is written
/// by hand.
fn is_called_by_the_host(item: &ContractItem, members: &[MemberDefinition]) -> bool {
    member_slots(members).next().is_some() && !matches!(item.name.as_str(), "host" | "plugin")
}

fn write_foreign_struct(out: &mut String, contract: &Contract, item: &ContractItem) {
    let (name, ty) = (&item.name, rust_name(contract, &item.type_name(), RustScope::Abi));
    write!(
        out,
        "// SAFETY: it is made of numbers, addresses and optional functions, for all of which zero is a value.\n\
         unsafe impl ForeignStruct for {ty} {{\n\
         const NAME: &'static str = {name:?};\n\
         const SIZE_AT_FIRST: u32 = Self::SIZE_AT_FIRST;\n\
         const EMPTY: Self = Self::EMPTY;\n}}\n\n"
    )
    .expect("infallible");
}

fn write_slot_checks(
    out: &mut String,
    contract: &Contract,
    item: &ContractItem,
    members: &[MemberDefinition],
) {
    let ty = rust_name(contract, &item.type_name(), RustScope::Abi);
    writeln!(out, "impl SlotTable for {ty} {{\nfn missing_required_slot(&self) -> Option<&'static str> {{")
        .expect("infallible");
    for slot in member_slots(members).filter(|slot| slot.required) {
        writeln!(out, "if self.{0}.is_none() {{ return Some({0:?}); }}", slot.name).expect("infallible");
    }
    out.push_str("None\n}\n\n");
    out.push_str("fn unpaired_slots(&self) -> Option<(&'static str, &'static str)> {\n");
    for (take, give) in paired_slots(members) {
        writeln!(
            out,
            "if self.{take}.is_some() != self.{give}.is_some() {{ return Some(({take:?}, {give:?})); }}"
        )
        .expect("infallible");
    }
    out.push_str("None\n}\n}\n\n");
}

/// Optional slots that acquire and release the same thing, recognized by their names.
fn paired_slots(members: &[MemberDefinition]) -> Vec<(&str, String)> {
    const PAIR_VERBS: [(&str, &str); 4] =
        [("allocate", "deallocate"), ("create", "destroy"), ("import", "close"), ("prepare", "release")];
    let optional: Vec<&str> =
        member_slots(members).filter(|slot| !slot.required).map(|slot| slot.name.as_str()).collect();
    let given_back = |take: &str| {
        let names = PAIR_VERBS.iter().filter(|(word, _)| take.split('_').any(|part| part == *word));
        names.map(|(word, back)| take.replace(word, back)).find(|give| optional.contains(&give.as_str()))
    };
    optional.iter().filter_map(|take| Some((*take, given_back(take)?))).collect()
}

fn write_caller(out: &mut String, contract: &Contract, item: &ContractItem, members: &[MemberDefinition]) {
    let (name, ty) = (to_camel_case(&item.name), rust_name(contract, &item.type_name(), RustScope::Abi));
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
    for slot in member_slots(members).filter(|slot| has_caller(&item.name, &slot.name)) {
        method(out, contract, item, slot);
    }
    out.push_str("}\n\n");
}

fn method(out: &mut String, contract: &Contract, item: &ContractItem, slot: &SlotDefinition) {
    let name = &slot.name;
    let results: Vec<&ParameterDefinition> = slot.params.iter().filter(|param| is_result(param)).collect();
    let types: Vec<String> = results.iter().map(|param| result_type(contract, param)).collect();
    let result = match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let result = format!("Result<{result}, PluginFailure>");
    let result = if slot.required { result } else { format!("Option<{result}>") };
    let trusting = slot.params.iter().any(|param| needs_unsafe(contract, param));
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
            "let Some(slot) = self.table.{name} else {{ return Err(PluginFailure::empty_slot({:?}, {name:?})) }};",
            item.name
        )
        .expect("infallible");
    } else {
        writeln!(out, "let slot = self.table.{name}?;").expect("infallible");
    }
    for param in &results {
        let local = rust_identifier(&param.name);
        let (local, value) = match &param.ty {
            ContractType::List(_) => (format!("{local}_count"), "0"),
            ContractType::Pointer => (local, "std::ptr::null_mut()"),
            ContractType::Number(_) => (local, "0"),
            ContractType::Named(ty) => {
                let path = rust_name(contract, ty, RustScope::Abi);
                let empty = match contract.find_item(ty).map(|item| &item.kind) {
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
    let arguments: String = slot.params.iter().map(call_argument).collect();
    let locals: Vec<String> = results
        .iter()
        .map(|param| {
            if matches!(param.ty, ContractType::List(_)) {
                format!("{}_count", param.name)
            } else {
                rust_identifier(&param.name)
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
        "result_from_error(failure)".to_owned()
    } else {
        format!("result_from_error(failure).map(|()| {value})")
    };
    let mapped = if slot.required { mapped } else { format!("Some({mapped})") };
    writeln!(out, "{mapped}\n}}").expect("infallible");
}

fn result_type(contract: &Contract, param: &ParameterDefinition) -> String {
    match &param.ty {
        ContractType::List(_) => "u64".to_owned(),
        ty => value_type(contract, RAW_POINTER, ty),
    }
}

/// True if a wrong argument could cause undefined behavior that the callee cannot prevent.
fn needs_unsafe(contract: &Contract, param: &ParameterDefinition) -> bool {
    if is_result(param) {
        return false;
    }
    let named = match &param.ty {
        ContractType::Pointer | ContractType::Callback(_) => return true,
        ContractType::Named(name) => name,
        ContractType::List(element) | ContractType::PointerTo(element) => match &**element {
            ContractType::Named(name) => name,
            _ => return false,
        },
        _ => return false,
    };
    matches!(contract.find_item(named).map(|item| &item.kind), Some(ItemKind::Handle | ItemKind::Struct(_)))
}

fn method_param(contract: &Contract, param: &ParameterDefinition) -> Option<String> {
    let value = |ty: &ContractType| value_type(contract, RAW_POINTER, ty);
    let path = |name: &str| rust_name(contract, name, RustScope::Abi);
    let ty = match (&param.ty, param.direction) {
        (ContractType::Bytes, ParameterDirection::Out) => "&mut [u8]".to_owned(),
        (ContractType::Bytes, _) => "&[u8]".to_owned(),
        (ContractType::List(element), ParameterDirection::Out) => format!("&mut [{}]", value(element)),
        (_, ParameterDirection::Out) => return None,
        (ContractType::List(element), _) => match &**element {
            ContractType::Named(name) if is_struct(contract, name) => format!("&[*const {}]", path(name)),
            element => format!("&[{}]", value(element)),
        },
        (ContractType::Callback(name), _) => path(name),
        (ContractType::Named(name), _) if name == "str" => "&str".to_owned(),
        (ContractType::Pointer, ParameterDirection::In) => "*const c_void".to_owned(),
        (ty, ParameterDirection::In) => format!("&{}", value(ty)),
        (ty, ParameterDirection::Value) => value(ty),
    };
    Some(format!(", {}: {ty}", rust_identifier(&param.name)))
}

fn call_argument(param: &ParameterDefinition) -> String {
    let name = rust_identifier(&param.name);
    match (&param.ty, param.direction) {
        (ContractType::Bytes, ParameterDirection::Out) => {
            format!(", {name}.as_mut_ptr().cast(), {name}.len() as u64")
        }
        (ContractType::Bytes, _) => format!(", {name}.as_ptr().cast(), {name}.len() as u64"),
        (ContractType::List(_), ParameterDirection::Out) => {
            format!(", {name}.as_mut_ptr(), {name}.len() as u64, &raw mut {}_count", param.name)
        }
        (_, ParameterDirection::Out) => format!(", &raw mut {name}"),
        (ContractType::List(_), _) => format!(", {name}.as_ptr(), {name}.len() as u64"),
        (ContractType::Callback(_), _) => format!(", Some({name})"),
        (ContractType::Named(named), _) if named == "str" => format!(", abi::Str::borrowed({name})"),
        _ => format!(", {name}"),
    }
}
