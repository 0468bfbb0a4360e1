//! Drafts: the part of a contract that may still change.
//!
//! A profile is a draft until a device provides it, the host calls it and the conformance suite checks it. What only drafts use
//! is a draft too: nothing gets locked that nobody has tried, and nothing locked depends on a draft.

use std::collections::HashSet;

use crate::ContractError;
use crate::model::{
    Contract, ContractItem, ContractType, ItemKind, ItemStage, MemberDefinition, ParameterDefinition,
    SlotDefinition,
};
use crate::rule_error::rule_error;

/// A declaration and everything it refers to, directly or indirectly, in the order of the contract.
pub fn reachable_items<'a>(contract: &'a Contract, item: &'a ContractItem) -> Vec<&'a ContractItem> {
    let mut reached = HashSet::new();
    let mut ahead = vec![item];
    while let Some(item) = ahead.pop() {
        if reached.insert(item.type_name()) {
            ahead.extend(named_types(item).filter_map(|name| contract.find_item(name)));
        }
    }
    let is_reached =
        |item: &&ContractItem| !matches!(item.kind, ItemKind::Rule(_)) && reached.contains(&item.type_name());
    contract.items.iter().filter(is_reached).collect()
}

/// Checks the stage of a declaration against the stages of the declarations that it uses and of its users.
pub(crate) fn check_stage(contract: &Contract, item: &ContractItem) -> Result<(), ContractError> {
    let profile = match &item.kind {
        ItemKind::Table(table) => table.profile.as_ref(),
        _ => None,
    };
    match item.stage {
        ItemStage::Locked => check_locked(contract, item),
        ItemStage::Trial if profile.is_none() => {
            Err(rule_error(item, "`trial` before a table of a profile", "it elsewhere"))
        }
        ItemStage::Draft | ItemStage::Trial => check_draft(contract, item, profile),
    }
}

fn check_locked(contract: &Contract, item: &ContractItem) -> Result<(), ContractError> {
    let draft = named_types(item).filter_map(|name| contract.find_item(name)).find(|used| !used.is_locked());
    if let Some(draft) = draft {
        let expected = "nothing that may still change, since this is locked";
        return Err(rule_error(item, expected, &format!("the draft `{}`", draft.name)));
    }
    let users = users_of(contract, item);
    if !users.is_empty() && users.iter().all(|user| !user.is_locked()) {
        return Err(rule_error(item, "`draft` before what only drafts use", "it locked"));
    }
    Ok(())
}

fn check_draft(
    contract: &Contract,
    item: &ContractItem,
    profile: Option<&(String, u32)>,
) -> Result<(), ContractError> {
    if let Some((_, 0)) = profile {
        return Err(rule_error(item, "the number of a draft, from 1 on", "0"));
    }
    if profile.is_none() && !matches!(item.kind, ItemKind::Rule(_)) && users_of(contract, item).is_empty() {
        return Err(rule_error(item, "a draft that is a profile, or that the draft of one uses", "neither"));
    }
    if has_later_additions(item) {
        return Err(rule_error(item, "a draft without additions; it gets a new number instead", "`since`"));
    }
    Ok(())
}

/// The other declarations that use this one directly.
fn users_of<'a>(contract: &'a Contract, item: &ContractItem) -> Vec<&'a ContractItem> {
    let name = item.type_name();
    let uses =
        |other: &&ContractItem| other.type_name() != name && named_types(other).any(|used| used == name);
    contract.items.iter().filter(uses).collect()
}

fn has_later_additions(item: &ContractItem) -> bool {
    match &item.kind {
        ItemKind::Enum(constants) | ItemKind::Flags(_, constants) => constants.iter().any(|c| c.since > 0),
        _ => item_members(item).iter().any(|member| member.since() > 0),
    }
}

fn item_members(item: &ContractItem) -> &[MemberDefinition] {
    match &item.kind {
        ItemKind::Value(members) | ItemKind::Struct(members) => members,
        ItemKind::Table(table) => &table.members,
        _ => &[],
    }
}

fn named_types(item: &ContractItem) -> impl Iterator<Item = &str> {
    let params: &[ParameterDefinition] = match &item.kind {
        ItemKind::Callback(callback) => &callback.params,
        _ => &[],
    };
    let of_members = item_members(item).iter().flat_map(|member| match member {
        MemberDefinition::Field(field) => vec![&field.ty],
        MemberDefinition::Slot(SlotDefinition { params, .. }) => {
            params.iter().map(|param| &param.ty).collect()
        }
    });
    of_members.chain(params.iter().map(|param| &param.ty)).filter_map(declared_name)
}

/// The declared type at the core of a type, such as the element type of a list.
fn declared_name(ty: &ContractType) -> Option<&str> {
    match ty {
        ContractType::Named(name) | ContractType::Callback(name) => Some(name),
        ContractType::PointerTo(inner) | ContractType::List(inner) => declared_name(inner),
        ContractType::Number(_)
        | ContractType::Pointer
        | ContractType::ReadOnlyPointer
        | ContractType::Bytes => None,
    }
}
