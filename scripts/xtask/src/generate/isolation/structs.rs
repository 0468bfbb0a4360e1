//! The functions that write and read the structs of the contract.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use oarlock_contract::Contract;
use oarlock_contract::model::{ContractItem, ContractType, FieldDefinition, ItemKind, MemberDefinition};

use super::super::names::{RUST_BANNER, RustScope, rust_identifier, rust_name};
use super::number_access;

/// A struct or value by name, with its fields.
pub(super) struct CrossingStruct<'a> {
    pub(super) item: &'a ContractItem,
    pub(super) fields: Vec<&'a FieldDefinition>,
}

/// Everything that a call consists of, the innermost structs first.
const OF_CALLS: &[&str] = &["tensor", "attribute", "graph_value", "graph_node", "graph", "call"];
/// What a child says of its plugin.
const OF_DESCRIPTIONS: &[&str] = &["in_place", "operand", "kernel", "plugin"];

pub(super) fn crossing_struct<'a>(contract: &'a Contract, name: &str) -> Result<CrossingStruct<'a>> {
    let Some(item) = contract.find_item(name) else { bail!("the contract has no `{name}`") };
    let (ItemKind::Struct(members) | ItemKind::Value(members)) = &item.kind else {
        bail!("`{name}` is no struct")
    };
    let fields = members.iter().filter_map(|member| match member {
        MemberDefinition::Field(field) => Some(field),
        MemberDefinition::Slot(_) => None,
    });
    Ok(CrossingStruct { item, fields: fields.collect() })
}

/// True for the fields that mean nothing elsewhere: contexts, tables and what is in the host's memory.
fn stays_at_home(item: &str, field: &FieldDefinition) -> bool {
    match item {
        "call" => field.name == "host_call",
        "kernel" => field.name == "context",
        // Tables are replaced by proxies. Drafts have none.
        "plugin" => {
            field.name == "drafts" || matches!(field.ty, ContractType::Pointer | ContractType::PointerTo(_))
        }
        _ => false,
    }
}

fn is_struct(contract: &Contract, ty: &ContractType) -> bool {
    matches!(ty, ContractType::Named(name)
        if contract.find_item(name).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_))))
}

fn type_name(ty: &ContractType) -> &str {
    match ty {
        ContractType::Named(name) => name,
        _ => "",
    }
}

/// Renders `runtime/isolation/src/proxy/arguments.rs`.
pub(crate) fn argument_writers(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"structs and lists are behind pointers of the caller\")]\n\n\
         use oarlock_abi as abi;\n\nuse super::request_writer::{OperandRole, RequestWriter, copy_known};\nuse crate::wire::WireBreach;\n\n",
    );
    for name in OF_CALLS {
        let CrossingStruct { item, fields } = crossing_struct(contract, name)?;
        let ty = rust_name(contract, name, RustScope::Abi);
        write!(
            out,
            "/// Writes a `{name}`.\n///\n/// # Safety\n///\n/// `source` points to a struct that is as the contract describes it.\n\
             pub(crate) unsafe fn encode_{name}(request: &mut RequestWriter<'_, '_>, source: *const {ty}) -> Result<(), WireBreach> {{\n\
             // SAFETY: the caller vouches for the struct and for what it points to.\nunsafe {{\nlet value = copy_known(source, {ty}::EMPTY)?;\n"
        )?;
        for field in fields.into_iter().filter(|field| !stays_at_home(&item.name, field)) {
            write_field(&mut out, contract, item, field)?;
        }
        if *name == "tensor" {
            out.push_str("request.put_elements(&value)?;\n");
        }
        out.push_str("}\nOk(())\n}\n\n");
    }
    out.push_str(
        "/// Writes the output of a call that the host has just described.\n///\n/// # Safety\n///\n/// The call is alive.\n\
         pub(crate) unsafe fn encode_output(request: &mut RequestWriter<'_, '_>, call: *const abi::Call, index: u32) -> Result<(), WireBreach> {\n\
         // SAFETY: the caller vouches for the call, whose list has as many outputs as it says.\nunsafe {\n\
         let value = copy_known(call, abi::Call::EMPTY)?;\n\
         if u64::from(index) >= value.outputs_count {\nreturn Err(WireBreach::new(format!(\"one of {} outputs\", value.outputs_count), index.to_string()));\n}\n\
         encode_tensor(request, value.outputs.add(index as usize).read())\n}\n}\n",
    );
    Ok(out)
}

fn write_field(
    out: &mut String,
    contract: &Contract,
    item: &ContractItem,
    field: &FieldDefinition,
) -> Result<()> {
    let name = rust_identifier(&field.name);
    if let Some((suffix, inner)) = number_access(contract, &field.ty) {
        writeln!(out, "request.put_{suffix}(value.{name}{inner});")?;
        return Ok(());
    }
    match &field.ty {
        ContractType::Named(ty) if ty == "str" => writeln!(out, "request.put_str(value.{name})?;")?,
        ContractType::PointerTo(target) if is_struct(contract, target) => writeln!(
            out,
            "request.put_u8((!value.{name}.is_null()).into());\n\
             if !value.{name}.is_null() {{\nencode_{}(request, value.{name})?;\n}}",
            type_name(target)
        )?,
        ContractType::List(element) => match &**element {
            ContractType::Number(_) => {
                writeln!(out, "request.put_numbers(value.{name}, value.{}_count)?;", field.name)?;
            }
            ContractType::Named(ty) if ty == "str" => {
                writeln!(
                    out,
                    "request.put_items(value.{name}, value.{}_count, RequestWriter::put_str)?;",
                    field.name
                )?;
            }
            element if is_struct(contract, element) => {
                if type_name(element) == "tensor" {
                    let role = match (item.name.as_str(), field.name.as_str()) {
                        ("call", "outputs") => "Output",
                        ("call", _) => "Input",
                        _ => "Attribute",
                    };
                    writeln!(out, "request.set_role(OperandRole::{role});")?;
                }
                writeln!(
                    out,
                    "request.put_items(value.{name}, value.{}_count, encode_{})?;",
                    field.name,
                    type_name(element)
                )?;
            }
            other => bail!("`{}.{}`: no way to write a list of {other:?}", item.name, field.name),
        },
        other => bail!("`{}.{}`: no way to write {other:?}", item.name, field.name),
    }
    Ok(())
}

/// A function that reads a struct into a storage.
fn write_reader(out: &mut String, contract: &Contract, name: &str) -> Result<()> {
    let CrossingStruct { item, fields } = crossing_struct(contract, name)?;
    let ty = rust_name(contract, name, RustScope::Abi);
    let is_tensor = name == "tensor";
    write!(
        out,
        "/// Reads a `{name}`.\npub(crate) fn decode_{name}(request: &mut StoredReader<'_>) -> Result<{ty}, WireBreach> {{\n\
         let mut value = {ty}::EMPTY;\n"
    )?;
    for field in fields {
        let field_name = rust_identifier(&field.name);
        if item.name == "call" && field.name == "host_call" {
            out.push_str("value.host_call = request.host_call();\n");
            continue;
        }
        if stays_at_home(&item.name, field) {
            continue;
        }
        if let Some((suffix, inner)) = number_access(contract, &field.ty) {
            let taken = format!("request.take_{suffix}()?");
            let taken = if inner.is_empty() {
                taken
            } else {
                format!("{}({taken})", rust_name(contract, type_name(&field.ty), RustScope::Abi))
            };
            writeln!(out, "value.{field_name} = {taken};")?;
            continue;
        }
        match &field.ty {
            ContractType::Named(ty) if ty == "str" => {
                writeln!(out, "value.{field_name} = request.take_str()?;")?;
            }
            ContractType::PointerTo(target) => writeln!(
                out,
                "if request.take_u8()? != 0 {{\nlet target = decode_{}(request)?;\nvalue.{field_name} = request.storage().store(target);\n}}",
                type_name(target)
            )?,
            ContractType::List(element) => {
                let taken = match &**element {
                    ContractType::Number(_) => "take_numbers()".to_owned(),
                    ContractType::Named(ty) if ty == "str" => {
                        "take_values(StoredReader::take_str)".to_owned()
                    }
                    element if is_struct(contract, element) => {
                        format!("take_structs(decode_{})", type_name(element))
                    }
                    element => format!("take_values(decode_{})", type_name(element)),
                };
                writeln!(out, "(value.{field_name}, value.{}_count) = request.{taken}?;", field.name)?;
            }
            other => bail!("`{}.{}`: no way to read {other:?}", item.name, field.name),
        }
    }
    if is_tensor {
        out.push_str("request.take_elements(&mut value)?;\n");
    }
    out.push_str("Ok(value)\n}\n\n");
    Ok(())
}

/// Renders `runtime/isolation/src/serve/arguments.rs`.
pub(crate) fn argument_readers(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "use oarlock_abi as abi;\n\nuse crate::wire::WireBreach;\nuse crate::wire::stored_reader::StoredReader;\n\n",
    );
    OF_CALLS.iter().try_for_each(|name| write_reader(&mut out, contract, name))?;
    Ok(out)
}

/// Renders `runtime/isolation/src/wire/descriptions.rs`: what a child says of its plugin, written and read.
pub(crate) fn description_codec(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"the lists of a description are behind pointers of the plugin\")]\n\n\
         use oarlock_abi as abi;\n\nuse super::WireBreach;\nuse super::byte_writer::ByteWriter;\nuse super::stored_reader::StoredReader;\n\n",
    );
    for name in OF_DESCRIPTIONS {
        let CrossingStruct { item, fields } = crossing_struct(contract, name)?;
        let ty = rust_name(contract, name, RustScope::Abi);
        write!(
            out,
            "/// Writes a `{name}`.\n///\n/// # Safety\n///\n/// Its texts and lists are as the contract describes them.\n\
             pub(crate) unsafe fn encode_{name}(writer: &mut ByteWriter<'_>, value: &{ty}) {{\n"
        )?;
        for field in fields.into_iter().filter(|field| !stays_at_home(&item.name, field)) {
            let field_name = rust_identifier(&field.name);
            if let Some((suffix, inner)) = number_access(contract, &field.ty) {
                writeln!(out, "writer.put_{suffix}(value.{field_name}{inner});")?;
                continue;
            }
            match &field.ty {
                ContractType::Named(ty) if ty == "str" => writeln!(
                    out,
                    "// SAFETY: the caller vouches for the text.\nwriter.put_bytes(unsafe {{ value.{field_name}.bytes() }}.unwrap_or_default());"
                )?,
                ContractType::List(element) => {
                    let (inner, read) = (type_name(element), is_struct(contract, element));
                    let target = if read { "&*item.read()" } else { "&*item" };
                    writeln!(
                        out,
                        "writer.put_u32(value.{0}_count as u32);\nfor index in 0..value.{0}_count as usize {{\n\
                         // SAFETY: the caller vouches for the items.\nunsafe {{\nlet item = value.{field_name}.add(index);\n\
                         encode_{inner}(writer, {target});\n}}\n}}",
                        field.name
                    )?;
                }
                other => bail!("`{}.{}`: no way to write {other:?}", item.name, field.name),
            }
        }
        out.push_str("}\n\n");
        write_reader(&mut out, contract, name)?;
    }
    Ok(out)
}
