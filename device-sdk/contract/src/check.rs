//! Semantic checks beyond the grammar: names exist and are unique, structs have no hidden padding, versions only increase.

use std::collections::HashSet;

use crate::ContractError;
use crate::drafts::check_stage;
use crate::layout::struct_layout;
use crate::model::{
    ConstantDefinition, Contract, ContractItem, ContractType, ItemKind, MemberDefinition,
    ParameterDefinition, SlotDefinition,
};
use crate::rule_error::rule_error;

pub(crate) fn check_contract(contract: &Contract) -> Result<(), ContractError> {
    let mut names = HashSet::new();
    for item in &contract.items {
        if !names.insert(item.type_name()) {
            return Err(ContractError::new(
                item.line,
                "a name of its own",
                format!("`{}` a second time", item.name),
            ));
        }
        if item.docs.is_empty() && !matches!(item.kind, ItemKind::Value(_)) {
            return Err(ContractError::new(
                item.line,
                "a `///` comment",
                format!("none above `{}`", item.name),
            ));
        }
        check_item(contract, item)?;
    }
    contract.items.iter().try_for_each(|item| check_stage(contract, item))
}

fn check_item(contract: &Contract, item: &ContractItem) -> Result<(), ContractError> {
    match &item.kind {
        ItemKind::Handle => Ok(()),
        ItemKind::Enum(constants) => check_constants(contract, item, constants, u32::MAX),
        ItemKind::Flags(bits, constants) => check_constants(contract, item, constants, bits - 1),
        ItemKind::Value(members) => {
            if members.iter().any(|member| member.since() > 0) {
                return Err(rule_error(item, "a value without additions", "`since`"));
            }
            check_members(contract, item, members)
        }
        ItemKind::Struct(members) => check_members(contract, item, members),
        ItemKind::Table(table) => check_members(contract, item, &table.members),
        ItemKind::Callback(callback) => check_params(contract, item, &callback.params),
        ItemKind::Rule(by) => match by.as_str() {
            "host" | "sdk" | "conformance" | "contract" | "validate" | "nobody" => Ok(()),
            other => Err(rule_error(
                item,
                "`host`, `sdk`, `conformance`, `contract`, `validate` or `nobody`",
                other,
            )),
        },
    }
}

fn check_constants(
    contract: &Contract,
    item: &ContractItem,
    constants: &[ConstantDefinition],
    most: u32,
) -> Result<(), ContractError> {
    let mut values = HashSet::new();
    let mut names = HashSet::new();
    for constant in constants {
        if constant.value > most || !values.insert(constant.value) || !names.insert(&constant.name) {
            let expected = format!("a name and a value up to {most} of its own");
            return Err(rule_error(item, &expected, &format!("{} = {}", constant.name, constant.value)));
        }
        check_since(contract, item, constant.since)?;
    }
    Ok(())
}

fn check_members(
    contract: &Contract,
    item: &ContractItem,
    members: &[MemberDefinition],
) -> Result<(), ContractError> {
    let mut newest = 0;
    for member in members {
        if member.since() < newest {
            return Err(rule_error(item, "newer members after all older ones", "an older one after a newer"));
        }
        newest = member.since();
        check_since(contract, item, newest)?;
        match member {
            MemberDefinition::Field(field) => check_type(contract, item, &field.ty)?,
            MemberDefinition::Slot(slot) => check_slot(contract, item, slot)?,
        }
    }
    for minor in 0..=contract.minor {
        if let Some(field) = struct_layout(contract, item, minor).padding {
            return Err(rule_error(
                item,
                "padding written out as `reserved`",
                &format!("hidden padding at `{field}`"),
            ));
        }
    }
    Ok(())
}

fn check_slot(contract: &Contract, item: &ContractItem, slot: &SlotDefinition) -> Result<(), ContractError> {
    let name = &slot.name;
    if slot.docs.is_empty() {
        return Err(rule_error(item, "a `///` comment", &format!("none above `{name}`")));
    }
    let in_table = matches!(item.kind, ItemKind::Table(_));
    if slot.required && slot.since > 0 {
        return Err(rule_error(
            item,
            "later slots to be optional (rule V-2)",
            &format!("`required fn {name}`"),
        ));
    }
    if in_table && slot.required == slot.default.is_some() {
        return Err(rule_error(
            item,
            "a default for each optional slot and none for others",
            &format!("`{name}`"),
        ));
    }
    check_params(contract, item, &slot.params)
}

fn check_params(
    contract: &Contract,
    item: &ContractItem,
    params: &[ParameterDefinition],
) -> Result<(), ContractError> {
    params.iter().try_for_each(|param| check_type(contract, item, &param.ty))
}

fn check_type(contract: &Contract, item: &ContractItem, ty: &ContractType) -> Result<(), ContractError> {
    match ty {
        ContractType::Number(_)
        | ContractType::Pointer
        | ContractType::ReadOnlyPointer
        | ContractType::Bytes => Ok(()),
        ContractType::PointerTo(inner) | ContractType::List(inner) => check_type(contract, item, inner),
        ContractType::Named(name) | ContractType::Callback(name) => {
            let is_callback = matches!(ty, ContractType::Callback(_));
            match contract.find_item(name) {
                Some(found) if is_callback == matches!(found.kind, ItemKind::Callback(_)) => Ok(()),
                _ => Err(rule_error(item, "a declared type", &format!("`{name}`"))),
            }
        }
    }
}

fn check_since(contract: &Contract, item: &ContractItem, since: u32) -> Result<(), ContractError> {
    if since <= contract.minor {
        return Ok(());
    }
    let expected = format!("nothing newer than contract {}.{}", contract.major, contract.minor);
    Err(rule_error(item, &expected, &format!("`since {}.{since}`", contract.major)))
}
