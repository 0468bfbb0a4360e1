//! Drafts: the part of a contract that may still change.
//!
//! A profile is a draft until a device brings it, the host calls it and the conformance suite checks it. What only drafts use
//! is a draft too, so that nothing is locked that nobody has tried, and what is locked uses no draft.

use std::collections::HashSet;

use crate::Error;
use crate::check::wrong;
use crate::model::{Contract, Item, ItemKind, Member, Param, Slot, Stage, Type};

/// A declaration and all that it leads to, in the order of the contract.
pub fn reached_from<'a>(contract: &'a Contract, item: &'a Item) -> Vec<&'a Item> {
    let mut reached = HashSet::new();
    let mut ahead = vec![item];
    while let Some(item) = ahead.pop() {
        if reached.insert(item.type_name()) {
            ahead.extend(types_of(item).filter_map(|name| contract.find(name)));
        }
    }
    let is_reached =
        |item: &&Item| !matches!(item.kind, ItemKind::Rule(_)) && reached.contains(&item.type_name());
    contract.items.iter().filter(is_reached).collect()
}

/// Checks what a declaration is marked as against those that it uses and those that use it.
pub(crate) fn check_stage(contract: &Contract, item: &Item) -> Result<(), Error> {
    let profile = match &item.kind {
        ItemKind::Table(table) => table.profile.as_ref(),
        _ => None,
    };
    match item.stage {
        Stage::Locked => check_locked(contract, item),
        Stage::Trial if profile.is_none() => {
            Err(wrong(item, "`trial` before a table of a profile", "it elsewhere"))
        }
        Stage::Draft | Stage::Trial => check_draft(contract, item, profile),
    }
}

fn check_locked(contract: &Contract, item: &Item) -> Result<(), Error> {
    let draft = types_of(item).filter_map(|name| contract.find(name)).find(|used| !used.is_locked());
    if let Some(draft) = draft {
        let expected = "nothing that may still change, since this is locked";
        return Err(wrong(item, expected, &format!("the draft `{}`", draft.name)));
    }
    let users = users_of(contract, item);
    if !users.is_empty() && users.iter().all(|user| !user.is_locked()) {
        return Err(wrong(item, "`draft` before what only drafts use", "it locked"));
    }
    Ok(())
}

fn check_draft(contract: &Contract, item: &Item, profile: Option<&(String, u32)>) -> Result<(), Error> {
    if let Some((_, 0)) = profile {
        return Err(wrong(item, "the number of a draft, from 1 on", "0"));
    }
    if profile.is_none() && !matches!(item.kind, ItemKind::Rule(_)) && users_of(contract, item).is_empty() {
        return Err(wrong(item, "a draft that is a profile, or that the draft of one uses", "neither"));
    }
    if has_later_additions(item) {
        return Err(wrong(item, "a draft without additions; it gets a new number instead", "`since`"));
    }
    Ok(())
}

/// The other declarations that use this one.
fn users_of<'a>(contract: &'a Contract, item: &Item) -> Vec<&'a Item> {
    let name = item.type_name();
    let uses = |other: &&Item| other.type_name() != name && types_of(other).any(|used| used == name);
    contract.items.iter().filter(uses).collect()
}

fn has_later_additions(item: &Item) -> bool {
    match &item.kind {
        ItemKind::Enum(constants) | ItemKind::Flags(_, constants) => constants.iter().any(|c| c.since > 0),
        _ => members(item).iter().any(|member| member.since() > 0),
    }
}

fn members(item: &Item) -> &[Member] {
    match &item.kind {
        ItemKind::Value(members) | ItemKind::Struct(members) => members,
        ItemKind::Table(table) => &table.members,
        _ => &[],
    }
}

/// The declared types that a declaration names.
fn types_of(item: &Item) -> impl Iterator<Item = &str> {
    let params: &[Param] = match &item.kind {
        ItemKind::Callback(callback) => &callback.params,
        _ => &[],
    };
    let of_members = members(item).iter().flat_map(|member| match member {
        Member::Field(field) => vec![&field.ty],
        Member::Slot(Slot { params, .. }) => params.iter().map(|param| &param.ty).collect(),
    });
    of_members.chain(params.iter().map(|param| &param.ty)).filter_map(declared)
}

/// The declared type that a type consists of.
fn declared(ty: &Type) -> Option<&str> {
    match ty {
        Type::Named(name) | Type::Callback(name) => Some(name),
        Type::PointerTo(inner) | Type::List(inner) => declared(inner),
        Type::Number(_) | Type::Pointer | Type::ReadOnlyPointer | Type::Bytes => None,
    }
}
