//! The proxies: functions that look like those of the plugin and send their arguments to the child.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use oarlock_contract::Contract;
use oarlock_contract::lower::slot_params;
use oarlock_contract::model::{
    ContractType, ItemKind, ParameterDefinition, ParameterDirection, SlotDefinition,
};

use super::super::names::{RUST_BANNER, RustScope, rust_identifier, rust_name, rust_params, to_camel_case};
use super::structs::crossing_struct;
use super::{BY_HAND, CrossingTable, EMPTIED, HOST_ONLY, POSTED, crossing_tables, number_access};

/// The structs that slots return.
const RESULTS: &[&str] = &["version", "device_info"];

/// Renders `runtime/isolation/src/proxy/generated.rs`.
pub(crate) fn proxy_tables(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every function here is called through a pointer from C\")]\n\n\
         use core::ffi::c_void;\n\nuse oarlock_abi as abi;\n\nuse super::arguments::encode_call;\nuse super::call_route::CallRoute;\nuse super::connection::ChildConnection;\n\
         use super::copies;\nuse super::kernel_proxy::{KernelProxy, stream_of_call};\nuse super::reply_reader::{ReplyReader, write_known};\nuse super::request_writer::ElementPolicy;\nuse crate::wire::WireBreach;\nuse crate::wire::generated as slots;\n\n",
    );
    for name in RESULTS {
        write_result_reader(&mut out, contract, name)?;
    }
    for table in crossing_tables(contract) {
        for slot in &table.slots {
            if ![EMPTIED, BY_HAND].iter().any(|list| table.is_listed(list, slot)) {
                write_proxy(&mut out, contract, &table, slot)?;
            }
        }
        write_table(&mut out, &table)?;
    }
    Ok(out)
}

fn write_result_reader(out: &mut String, contract: &Contract, name: &str) -> Result<()> {
    let ty = rust_name(contract, name, RustScope::Abi);
    write!(
        out,
        "fn decode_{name}(reply: &mut ReplyReader<'_>) -> Result<{ty}, WireBreach> {{\nlet mut value = {ty}::EMPTY;\n"
    )?;
    for field in crossing_struct(contract, name)?.fields {
        let field_name = rust_identifier(&field.name);
        match (number_access(contract, &field.ty), &field.ty) {
            (Some((suffix, "")), _) => writeln!(out, "value.{field_name} = reply.take_{suffix}()?;")?,
            (Some((suffix, _)), ContractType::Named(ty)) => {
                let ty = rust_name(contract, ty, RustScope::Abi);
                writeln!(out, "value.{field_name} = {ty}(reply.take_{suffix}()?);")?;
            }
            (None, ContractType::Named(ty)) if ty == "str" => {
                writeln!(out, "value.{field_name} = reply.take_str()?;")?;
            }
            (_, other) => bail!("`{name}.{}`: no way to read {other:?}", field.name),
        }
    }
    if name == "device_info" {
        out.push_str("// The plugin's addresses mean nothing here.\nvalue.bits = abi::DeviceFlags(value.bits.0 & !(abi::DeviceFlags::HOST_ADDRESSABLE.0 | abi::DeviceFlags::SHARES_HOST_MEMORY.0));\n");
    }
    out.push_str("Ok(value)\n}\n\n");
    Ok(())
}

/// True if the slot ends the life of something.
fn frees(slot: &str) -> bool {
    let ends = ["_deallocate", "_deallocate_async", "_destroy", "release", "device_deinit", "finalize"];
    ends.iter().any(|end| slot.ends_with(end))
}

fn has_param(slot: &SlotDefinition, ty: &str) -> Option<String> {
    let found = slot.params.iter().find(|param| {
        param.ty == ContractType::Named(ty.to_owned()) && param.direction == ParameterDirection::Value
    });
    found.map(|param| rust_identifier(&param.name))
}

/// The condition under which a call may be posted: its device has the stream and the event.
fn live_handles(slot: &SlotDefinition) -> String {
    let device =
        if slot.params.iter().any(|param| param.name == "device") { "device" } else { "source_device" };
    let kinds = ["stream", "event"].into_iter().filter_map(|kind| Some((kind, has_param(slot, kind)?)));
    kinds
        .map(|(kind, name)| format!("proxy.handles().has_{kind}({device}, {name})"))
        .collect::<Vec<_>>()
        .join(" && ")
}

/// What a slot does to the list of live handles: before the call, and after it succeeded.
fn handle_changes(slot: &SlotDefinition) -> (String, String) {
    let out = |kind: &str| {
        let made = |param: &&ParameterDefinition| {
            param.direction == ParameterDirection::Out && param.ty == ContractType::Named(kind.to_owned())
        };
        slot.params.iter().find(made).map(|param| param.name.clone())
    };
    let (mut before, mut after) = (String::new(), String::new());
    for kind in ["stream", "event"] {
        if let Some(made) = out(kind) {
            after = format!("proxy.handles().add_{kind}(device, {made}_taken);\n");
        } else if slot.name == format!("{kind}_destroy")
            && let Some(name) = has_param(slot, kind)
        {
            before = format!("proxy.handles().forget_{kind}(device, {name});\n");
        }
    }
    (before, after)
}

fn write_proxy(
    out: &mut String,
    contract: &Contract,
    table: &CrossingTable<'_>,
    slot: &SlotDefinition,
) -> Result<()> {
    let params = rust_params(contract, &slot_params(contract, slot), RustScope::Abi);
    let (name, constant) = (&table.item.name, table.constant(slot));
    let mut route = String::new();
    if let Some(stream) = has_param(slot, "stream") {
        write!(route, "stream: {stream}.0, ")?;
        if table.is_listed(POSTED, slot) {
            write!(route, "posts: {}, ", live_handles(slot))?;
        }
    }
    if let Some(event) = has_param(slot, "event") {
        write!(route, "event: {event}.0, ")?;
    }
    if frees(&slot.name) {
        route.push_str("frees: true, ");
    }
    let has_call = slot.params.iter().any(|param| param.ty == ContractType::Named("call".to_owned()));
    if has_call {
        let policy = match slot.name.as_str() {
            "supports" => "Attributes",
            "run" => "All",
            _ => "Constants",
        };
        write!(
            route,
            "elements: ElementPolicy::{policy}, call, \n// SAFETY: the host passes a call that is as the contract describes it.\n\
             stream: unsafe {{ stream_of_call(call) }}, "
        )?;
        if slot.name == "run" {
            route.push_str("\n// SAFETY: as above.\nposts: unsafe { proxy.may_post(call) }, ");
        }
    }
    let (kind, first) = if table.is_kernel() {
        ("KernelProxy", "request.put_u32(proxy.index);\n")
    } else {
        ("ChildConnection", "")
    };
    let connection = if table.is_kernel() { "proxy.connection()" } else { "proxy" };
    let puts = slot.params.iter().map(|param| put(contract, param)).collect::<Result<String>>()?;
    let takes = slot.params.iter().map(|param| take(contract, param)).collect::<Result<String>>()?;
    let writes = slot.params.iter().map(|param| write_out(contract, param)).collect::<String>();
    let writes = if writes.is_empty() {
        writes
    } else {
        format!("// SAFETY: the caller gives places for the results.\nunsafe {{\n{writes}}}\n")
    };
    let (before, after) = handle_changes(slot);
    let request = if puts.is_empty() && first.is_empty() { "_" } else { "request" };
    let reply = if takes.is_empty() { "_" } else { "reply" };
    write!(
        out,
        "unsafe extern \"C\" fn {name}_{}({params}) -> abi::Error {{\n\
         // SAFETY: the host hands back the context of the proxy, which lives as long as the plugin.\n\
         let proxy = unsafe {{ &*context.cast::<{kind}>() }};\n\
         let route = CallRoute {{ {route}..CallRoute::to_slot(slots::{constant}) }};\n\
         {before}{connection}.forward(&route, |{request}| {{\n{first}{puts}Ok(())\n}}, |{reply}| {{\n{takes}{writes}{after}Ok(())\n}})\n}}\n\n",
        slot.name
    )?;
    Ok(())
}

fn put(contract: &Contract, param: &ParameterDefinition) -> Result<String> {
    let name = rust_identifier(&param.name);
    Ok(match (&param.ty, param.direction) {
        (ContractType::List(_), ParameterDirection::Out) => {
            format!("request.put_u64({}_capacity);\n", param.name)
        }
        (_, ParameterDirection::Out) => String::new(),
        (ContractType::Named(_), ParameterDirection::In) => {
            format!("// SAFETY: as above.\nunsafe {{ encode_call(request, {name})? }};\n")
        }
        (ContractType::Pointer, _) => format!("request.put_u64({name} as u64);\n"),
        (ty, _) => match number_access(contract, ty) {
            Some((suffix, inner)) => format!("request.put_{suffix}({name}{inner});\n"),
            None => bail!("no way to put {ty:?}"),
        },
    })
}

fn take(contract: &Contract, param: &ParameterDefinition) -> Result<String> {
    if param.direction != ParameterDirection::Out {
        return Ok(String::new());
    }
    let name = &param.name;
    Ok(match &param.ty {
        ContractType::List(_) => format!(
            "// SAFETY: the caller gives a list with this capacity.\nlet {name}_total = unsafe {{ reply.fill_u32_list({name}, {name}_capacity)? }};\n"
        ),
        ContractType::Pointer => format!("let {name}_taken = reply.take_u64()? as *mut c_void;\n"),
        ty => match (number_access(contract, ty), ty) {
            (Some((suffix, "")), _) => format!("let {name}_taken = reply.take_{suffix}()?;\n"),
            (Some((suffix, _)), ContractType::Named(named)) => {
                format!(
                    "let {name}_taken = {}(reply.take_{suffix}()?);\n",
                    rust_name(contract, named, RustScope::Abi)
                )
            }
            (None, ContractType::Named(named)) => format!("let {name}_taken = decode_{named}(reply)?;\n"),
            (_, other) => bail!("no way to take {other:?}"),
        },
    })
}

fn write_out(contract: &Contract, param: &ParameterDefinition) -> String {
    if param.direction != ParameterDirection::Out {
        return String::new();
    }
    let name = &param.name;
    let is_struct = matches!(&param.ty, ContractType::Named(named)
        if contract.find_item(named).is_some_and(|item| matches!(item.kind, ItemKind::Struct(_))));
    match &param.ty {
        ContractType::List(_) => format!("{name}_count.write({name}_total);\n"),
        _ if is_struct => format!("write_known({name}, {name}_taken);\n"),
        _ => format!("{}.write({name}_taken);\n", rust_identifier(name)),
    }
}

fn write_table(out: &mut String, table: &CrossingTable<'_>) -> Result<()> {
    let (name, ty) = (&table.item.name, to_camel_case(&table.item.type_name()));
    let base = if table.is_kernel() { "..*described" } else { "..abi::EMPTY" };
    let base = base.replace("abi::EMPTY", &format!("abi::{ty}::EMPTY"));
    let extra = if table.is_kernel() { format!(", described: &abi::{ty}") } else { String::new() };
    writeln!(
        out,
        "/// The proxies of the slots that the plugin has filled: bit n stands for slot n.\n\
         pub(super) fn proxied_{name}(filled: u64{extra}) -> abi::{ty} {{\nlet has = |slot: u32| filled & (1 << slot) != 0;\nabi::{ty} {{"
    )?;
    for (bit, slot) in table.slots.iter().enumerate() {
        let slot_name = &slot.name;
        if table.is_listed(EMPTIED, slot) {
            continue;
        }
        let module = if table.is_listed(BY_HAND, slot) { "copies::" } else { "" };
        if table.is_listed(HOST_ONLY, slot) {
            writeln!(out, "{slot_name}: Some({module}{name}_{slot_name}),")?;
        } else {
            writeln!(
                out,
                "{slot_name}: if has({bit}) {{ Some({module}{name}_{slot_name}) }} else {{ None }},"
            )?;
        }
    }
    writeln!(out, "{base}\n}}\n}}\n")?;
    Ok(())
}
