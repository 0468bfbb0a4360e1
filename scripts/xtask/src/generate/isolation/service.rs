//! The child's side: reads the arguments of a slot, calls the plugin, and writes the results.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use oarlock_contract::Contract;
use oarlock_contract::model::{
    ContractType, ItemKind, ParameterDefinition, ParameterDirection, SlotDefinition,
};

use super::super::names::{RUST_BANNER, RustScope, rust_identifier, rust_name, to_camel_case};
use super::structs::crossing_struct;
use super::{BY_HAND, CrossingTable, EMPTIED, HOST_ONLY, SERVED_BY_HAND, crossing_tables, number_access};

/// Renders `runtime/isolation/src/serve/generated.rs`.
pub(crate) fn slot_service(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"slots of the plugin are called through pointers\")]\n\n\
         use core::ffi::c_void;\n\nuse oarlock_abi as abi;\n\nuse super::served_plugin::{MAX_LIST, ServedPlugin};\nuse crate::wire::WireBreach;\nuse crate::wire::byte_writer::ByteWriter;\n\
         use crate::wire::generated as slots;\nuse crate::wire::stored_reader::StoredReader;\n\n",
    );
    for name in ["version", "device_info"] {
        write_result(&mut out, contract, name)?;
    }
    out.push_str(
        "/// Calls a slot of the plugin: reads the arguments, and writes the results of a call that succeeds.\n///\n/// # Safety\n///\n\
         /// The arguments come from a host that keeps to the contract.\n\
         pub(super) unsafe fn call_slot(plugin: &ServedPlugin, number: u32, request: &mut StoredReader<'_>, reply: &mut ByteWriter<'_>) -> Result<abi::Error, WireBreach> {\n\
         let failure = match number {\n",
    );
    for table in crossing_tables(contract) {
        for slot in &table.slots {
            let skipped = [EMPTIED, HOST_ONLY, SERVED_BY_HAND];
            if !skipped.iter().any(|list| table.is_listed(list, slot)) {
                write_arm(&mut out, contract, &table, slot)?;
            }
        }
    }
    out.push_str(
        "other => return Err(WireBreach::new(\"a slot\", other.to_string())),\n};\nOk(failure)\n}\n\n",
    );
    for table in crossing_tables(contract) {
        write_filled_slots(&mut out, &table)?;
    }
    Ok(out)
}

fn write_result(out: &mut String, contract: &Contract, name: &str) -> Result<()> {
    let ty = rust_name(contract, name, RustScope::Abi);
    writeln!(out, "fn encode_{name}(reply: &mut ByteWriter<'_>, value: &{ty}) {{")?;
    for field in crossing_struct(contract, name)?.fields {
        let field_name = rust_identifier(&field.name);
        match (number_access(contract, &field.ty), &field.ty) {
            (Some((suffix, inner)), _) => writeln!(out, "reply.put_{suffix}(value.{field_name}{inner});")?,
            (None, ContractType::Named(ty)) if ty == "str" => writeln!(
                out,
                "// SAFETY: the plugin keeps the text until it is unloaded (rule S-6).\nreply.put_bytes(unsafe {{ value.{field_name}.bytes() }}.unwrap_or_default());"
            )?,
            (_, other) => bail!("`{name}.{}`: no way to write {other:?}", field.name),
        }
    }
    out.push_str("}\n\n");
    Ok(())
}

fn write_arm(
    out: &mut String,
    contract: &Contract,
    table: &CrossingTable<'_>,
    slot: &SlotDefinition,
) -> Result<()> {
    let is_by_hand = table.is_listed(BY_HAND, slot);
    let (name, constant) = (&slot.name, table.constant(slot));
    writeln!(out, "slots::{constant} => {{")?;
    if table.is_kernel() {
        out.push_str("let kernel = plugin.kernel(request.take_u32()?)?;\nlet (context, table) = (kernel.context, kernel);\n");
    } else {
        writeln!(out, "let (context, table) = plugin.{}_table()?;", table.item.name)?;
    }
    let mut arguments = String::new();
    let mut results = String::new();
    for param in &slot.params {
        write_argument(out, &mut arguments, &mut results, contract, param, is_by_hand)?;
    }
    writeln!(
        out,
        "let Some(slot) = table.{name} else {{ return Err(WireBreach::new(\"a function in `{name}`\", \"none\")) }};\n\
         // SAFETY: the context is the plugin's own, and the host vouches for the arguments."
    )?;
    let called = format!("unsafe {{ slot(context{arguments}) }}");
    if results.is_empty() {
        writeln!(out, "{called}\n}}")?;
    } else {
        writeln!(out, "let failure = {called};\nif !failure.is_some() {{\n{results}}}\nfailure\n}}")?;
    }
    Ok(())
}

fn write_argument(
    out: &mut String,
    arguments: &mut String,
    results: &mut String,
    contract: &Contract,
    param: &ParameterDefinition,
    is_by_hand: bool,
) -> Result<()> {
    let name = rust_identifier(&param.name);
    let path = |ty: &str| rust_name(contract, ty, RustScope::Abi);
    match (&param.ty, param.direction) {
        (ContractType::Bytes, _) => {
            writeln!(out, "let ({name}, {name}_size) = request.take_range()?;")?;
            write!(arguments, ", {name}, {name}_size")?;
        }
        (ContractType::List(_), ParameterDirection::Out) => {
            writeln!(
                out,
                "let mut {name} = vec![0; request.take_u64()?.min(MAX_LIST) as usize];\nlet mut {name}_count = 0;"
            )?;
            write!(arguments, ", {name}.as_mut_ptr(), {name}.len() as u64, &raw mut {name}_count")?;
            writeln!(
                results,
                "reply.put_u64({name}_count);\nlet filled = {name}_count.min({name}.len() as u64);\nreply.put_u32(filled as u32);\n\
                 {name}[..filled as usize].iter().for_each(|item| reply.put_u32(*item));"
            )?;
        }
        (ContractType::Pointer, ParameterDirection::Out) => {
            writeln!(out, "let mut {name} = core::ptr::null_mut();")?;
            write!(arguments, ", &raw mut {name}")?;
            writeln!(results, "reply.put_u64({name} as u64);")?;
        }
        (ty, ParameterDirection::Out) => {
            let (empty, result) = match (number_access(contract, ty), ty) {
                (Some((suffix, "")), _) => ("0".to_owned(), format!("reply.put_{suffix}({name});")),
                (Some((suffix, inner)), ContractType::Named(named)) => {
                    (format!("{}(0)", path(named)), format!("reply.put_{suffix}({name}{inner});"))
                }
                (_, ContractType::Named(named)) => {
                    (format!("{}::EMPTY", path(named)), format!("encode_{named}(reply, &{name});"))
                }
                (_, other) => bail!("no way to return {other:?}"),
            };
            writeln!(out, "let mut {name} = {empty};")?;
            write!(arguments, ", &raw mut {name}")?;
            writeln!(results, "{result}")?;
        }
        (ContractType::Pointer, _) if is_by_hand => {
            writeln!(out, "let {name} = request.take_address()?;")?;
            write!(arguments, ", {name}")?;
        }
        (ContractType::Pointer, _) => {
            writeln!(out, "let {name} = request.take_u64()? as *mut c_void;")?;
            write!(arguments, ", {name}")?;
        }
        (ContractType::Named(named), ParameterDirection::In) => {
            writeln!(out, "let {name} = plugin.read_{named}(request)?.cast_const();")?;
            write!(arguments, ", {name}")?;
        }
        (ty, _) => {
            match (number_access(contract, ty), ty) {
                (Some((suffix, "")), _) => writeln!(out, "let {name} = request.take_{suffix}()?;")?,
                (Some((suffix, _)), ContractType::Named(named)) => {
                    writeln!(out, "let {name} = {}(request.take_{suffix}()?);", path(named))?;
                }
                (_, other) => bail!("no way to pass {other:?}"),
            }
            write!(arguments, ", {name}")?;
        }
    }
    Ok(())
}

fn write_filled_slots(out: &mut String, table: &CrossingTable<'_>) -> Result<()> {
    let (name, ty) = (&table.item.name, to_camel_case(&table.item.type_name()));
    assert!(matches!(table.item.kind, ItemKind::Table(_) | ItemKind::Struct(_)), "something with slots");
    writeln!(
        out,
        "/// The slots that the plugin has filled: bit n stands for slot n.\npub(super) fn filled_{name}(table: &abi::{ty}) -> u64 {{\nlet slots = ["
    )?;
    for slot in &table.slots {
        writeln!(out, "table.{}.is_some(),", slot.name)?;
    }
    out.push_str("];\nslots.iter().enumerate().map(|(bit, filled)| u64::from(*filled) << bit).sum()\n}\n\n");
    Ok(())
}
