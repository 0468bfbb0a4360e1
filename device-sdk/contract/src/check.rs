//! What the grammar cannot say: names exist and are unique, structs have no hidden padding, versions only go forward.

use std::collections::HashSet;

use crate::Error;
use crate::drafts::check_stage;
use crate::layout::layout;
use crate::model::{Constant, Contract, Item, ItemKind, Member, Param, Slot, Type};

pub(crate) fn check(contract: &Contract) -> Result<(), Error> {
    let mut names = HashSet::new();
    for item in &contract.items {
        if !names.insert(item.type_name()) {
            return Err(Error::new(item.line, "a name of its own", format!("`{}` a second time", item.name)));
        }
        if item.docs.is_empty() && !matches!(item.kind, ItemKind::Value(_)) {
            return Err(Error::new(item.line, "a `///` comment", format!("none above `{}`", item.name)));
        }
        check_item(contract, item)?;
    }
    contract.items.iter().try_for_each(|item| check_stage(contract, item))
}

fn check_item(contract: &Contract, item: &Item) -> Result<(), Error> {
    match &item.kind {
        ItemKind::Handle => Ok(()),
        ItemKind::Enum(constants) => check_constants(contract, item, constants, u32::MAX),
        ItemKind::Flags(bits, constants) => check_constants(contract, item, constants, bits - 1),
        ItemKind::Value(members) => {
            if members.iter().any(|member| member.since() > 0) {
                return Err(wrong(item, "a value without additions", "`since`"));
            }
            check_members(contract, item, members)
        }
        ItemKind::Struct(members) => check_members(contract, item, members),
        ItemKind::Table(table) => check_members(contract, item, &table.members),
        ItemKind::Callback(callback) => check_params(contract, item, &callback.params),
        ItemKind::Rule(by) => match by.as_str() {
            "host" | "sdk" | "conformance" | "contract" | "nobody" => Ok(()),
            other => Err(wrong(item, "`host`, `sdk`, `conformance`, `contract` or `nobody`", other)),
        },
    }
}

fn check_constants(contract: &Contract, item: &Item, constants: &[Constant], most: u32) -> Result<(), Error> {
    let mut values = HashSet::new();
    let mut names = HashSet::new();
    for constant in constants {
        if constant.value > most || !values.insert(constant.value) || !names.insert(&constant.name) {
            let expected = format!("a name and a value up to {most} of its own");
            return Err(wrong(item, &expected, &format!("{} = {}", constant.name, constant.value)));
        }
        check_since(contract, item, constant.since)?;
    }
    Ok(())
}

fn check_members(contract: &Contract, item: &Item, members: &[Member]) -> Result<(), Error> {
    let mut newest = 0;
    for member in members {
        if member.since() < newest {
            return Err(wrong(item, "newer members after all older ones", "an older one after a newer"));
        }
        newest = member.since();
        check_since(contract, item, newest)?;
        match member {
            Member::Field(field) => check_type(contract, item, &field.ty)?,
            Member::Slot(slot) => check_slot(contract, item, slot)?,
        }
    }
    for minor in 0..=contract.minor {
        if let Some(field) = layout(contract, item, minor).padding {
            return Err(wrong(
                item,
                "padding written out as `reserved`",
                &format!("hidden padding at `{field}`"),
            ));
        }
    }
    Ok(())
}

fn check_slot(contract: &Contract, item: &Item, slot: &Slot) -> Result<(), Error> {
    let name = &slot.name;
    if slot.docs.is_empty() {
        return Err(wrong(item, "a `///` comment", &format!("none above `{name}`")));
    }
    let in_table = matches!(item.kind, ItemKind::Table(_));
    if slot.required && slot.since > 0 {
        return Err(wrong(item, "later slots to be optional (rule V-2)", &format!("`required fn {name}`")));
    }
    if in_table && slot.required == slot.default.is_some() {
        return Err(wrong(
            item,
            "a default for each optional slot and none for others",
            &format!("`{name}`"),
        ));
    }
    check_params(contract, item, &slot.params)
}

fn check_params(contract: &Contract, item: &Item, params: &[Param]) -> Result<(), Error> {
    params.iter().try_for_each(|param| check_type(contract, item, &param.ty))
}

fn check_type(contract: &Contract, item: &Item, ty: &Type) -> Result<(), Error> {
    match ty {
        Type::Number(_) | Type::Pointer | Type::ReadOnlyPointer | Type::Bytes => Ok(()),
        Type::PointerTo(inner) | Type::List(inner) => check_type(contract, item, inner),
        Type::Named(name) | Type::Callback(name) => {
            let is_callback = matches!(ty, Type::Callback(_));
            match contract.find(name) {
                Some(found) if is_callback == matches!(found.kind, ItemKind::Callback(_)) => Ok(()),
                _ => Err(wrong(item, "a declared type", &format!("`{name}`"))),
            }
        }
    }
}

fn check_since(contract: &Contract, item: &Item, since: u32) -> Result<(), Error> {
    if since <= contract.minor {
        return Ok(());
    }
    let expected = format!("nothing newer than contract {}.{}", contract.major, contract.minor);
    Err(wrong(item, &expected, &format!("`since {}.{since}`", contract.major)))
}

pub(crate) fn wrong(item: &Item, expected: &str, found: &str) -> Error {
    Error::new(item.line, format!("in `{}`: {expected}", item.name), found)
}
