//! The SDK's side of the tables: a safe trait for each profile, and for each slot the function that checks what came
//! across the boundary, calls the trait and brings the result back.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::slot_params;
use oarlock_contract::model::{Direction, Item, Param, Slot, Stage, Table, Type};

use super::names::{RUST_BANNER, RustScope, camel, identifier, rust_docs, rust_name, rust_params};
use super::params::{is_result, is_struct, is_user, value_type};

/// What the SDK makes of an address.
const HOST_POINTER: &str = "HostPointer";

/// `device-sdk/sdk/src/generated.rs`.
pub(super) fn glue(contract: &Contract) -> String {
    let profiles = contract.tables().filter(|(_, table)| table.profile.is_some());
    let profiles: Vec<_> = profiles.filter(|(item, _)| item.stage != Stage::Draft).collect();
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every function here is called through a pointer from C\")]\n\
         #![expect(clippy::too_many_arguments, reason = \"the contract says what a call takes\")]\n\n\
         use core::ffi::c_void;\n\nuse oarlock_abi as abi;\n\n\
         use crate::boundary::{self, Instance, Out};\nuse crate::error::{Error, Result};\n",
    );
    let slots = || profiles.iter().flat_map(|(_, table)| table.slots());
    if slots().flat_map(|slot| &slot.params).any(|param| param.ty == Type::Named("call".to_owned())) {
        out.push_str("use crate::call::Call;\n");
    }
    let callbacks = callbacks(slots());
    writeln!(out, "use crate::pointer::{{HostPointer, {}}};\n", callbacks.join(", ")).expect("infallible");
    for (item, table) in profiles {
        write_trait(&mut out, contract, item, table);
        for slot in table.slots() {
            write_slot(&mut out, contract, item, slot);
        }
        write_table(&mut out, contract, item, table);
    }
    out
}

/// The callbacks that some slots take, as the SDK has them.
fn callbacks<'a>(slots: impl Iterator<Item = &'a Slot>) -> Vec<String> {
    let names = slots.flat_map(|slot| &slot.params).filter_map(|param| match &param.ty {
        Type::Callback(name) => Some(camel(name)),
        _ => None,
    });
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn write_trait(out: &mut String, contract: &Contract, item: &Item, table: &Table) {
    let name = camel(&item.name);
    let docs = rust_docs(&item.docs, "");
    write!(
        out,
        "{docs}///\n/// Write `#[oarlock_sdk::slots]` above the `impl`: the optional functions that stand in it are the ones the\n\
         /// plugin offers; for the others the host does what the contract says.\n\
         pub trait {name}: Send + Sync + 'static {{\n\
         /// The functions the plugin offers. `#[oarlock_sdk::slots]` writes this.\nconst SLOTS: &'static [&'static str];\n"
    )
    .expect("infallible");
    for slot in table.slots() {
        out.push('\n');
        out.push_str(&rust_docs(&slot.docs, ""));
        if let Some(default) = &slot.default {
            writeln!(out, "///\n/// When it is not offered: {default}.").expect("infallible");
        }
        let params = trait_params(contract, slot);
        let result = trait_result(contract, slot);
        write!(out, "fn {}(&self{params}) -> Result<{result}>", slot.name).expect("infallible");
        if slot.required {
            out.push_str(";\n");
        } else {
            let names = slot.params.iter().filter(|param| !is_result(param) && !is_user(param));
            let names = names.map(|param| identifier(&param.name)).collect::<Vec<_>>();
            let unused = match names.as_slice() {
                [] => String::new(),
                [one] => format!("let _ = {one};"),
                several => format!("let _ = ({});", several.join(", ")),
            };
            writeln!(out, "{{ {unused} Err(Error::absent({:?})) }}", slot.name).expect("infallible");
        }
    }
    out.push_str("}\n\n");
}

fn write_slot(out: &mut String, contract: &Contract, item: &Item, slot: &Slot) {
    let params = rust_params(contract, &slot_params(contract, slot), RustScope::Abi);
    write!(
        out,
        "unsafe extern \"C\" fn {}_{}<D: {}>({params}) -> abi::Error {{\n\
         // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.\n\
         unsafe {{ boundary::enter(context, |plugin: &Instance<D>| {{\n",
        item.name,
        slot.name,
        camel(&item.name)
    )
    .expect("infallible");
    for param in &slot.params {
        if let Some(check) = check(contract, param) {
            writeln!(out, "let {} = {check}?;", identifier(&param.name)).expect("infallible");
        }
    }
    let arguments = slot.params.iter().filter(|param| !is_result(param) && !is_user(param));
    let arguments = arguments.map(argument).collect::<Vec<_>>().join(", ");
    let results: Vec<_> = slot.params.iter().filter(|param| is_result(param)).collect();
    let call = format!("plugin.device.{}({arguments})", slot.name);
    match results.as_slice() {
        [] => writeln!(out, "{call}"),
        [one] => writeln!(out, "{}.{}({call}?)", identifier(&one.name), writer(contract, one)),
        several => {
            let names = (0..several.len()).map(|n| format!("result{n}")).collect::<Vec<_>>();
            writeln!(out, "let ({}) = {call}?;", names.join(", ")).expect("infallible");
            for (name, param) in names.iter().zip(several) {
                writeln!(out, "{}.{}({name})?;", identifier(&param.name), writer(contract, param))
                    .expect("infallible");
            }
            writeln!(out, "Ok(())")
        }
    }
    .expect("infallible");
    out.push_str("}) }\n}\n\n");
}

fn write_table(out: &mut String, contract: &Contract, item: &Item, table: &Table) {
    let (name, camel_name) = (&item.name, camel(&item.name));
    let ty = rust_name(contract, &item.type_name(), RustScope::Abi);
    write!(
        out,
        "/// The table of a device, with a null in each slot it does not offer.\n\
         pub(crate) fn {name}_table<D: {camel_name}>() -> {ty} {{\n\
         {ty} {{\n"
    )
    .expect("infallible");
    for slot in table.slots() {
        let function = format!("{name}_{}::<D>", slot.name);
        if slot.required {
            writeln!(out, "{}: Some({function}),", slot.name).expect("infallible");
        } else {
            writeln!(out, "{0}: boundary::offered(D::SLOTS, {0:?}, {function}),", slot.name)
                .expect("infallible");
        }
    }
    write!(out, "..{ty}::EMPTY\n}}\n}}\n\n").expect("infallible");
}

/// An argument as the trait's function takes it; a call is wrapped first and so passed by reference.
fn argument(param: &Param) -> String {
    let name = identifier(&param.name);
    match &param.ty {
        Type::Named(ty) if ty == "call" => format!("&{name}"),
        _ => name,
    }
}

fn trait_params(contract: &Contract, slot: &Slot) -> String {
    let mut out = String::new();
    for param in slot.params.iter().filter(|param| !is_result(param) && !is_user(param)) {
        let ty = match (&param.ty, param.direction) {
            (Type::Bytes, Direction::Out) => "&mut [u8]".to_owned(),
            (Type::Bytes, _) => "&[u8]".to_owned(),
            (Type::List(element), _) => format!("&[{}]", element_type(contract, element)),
            (Type::Callback(name), _) => camel(name),
            (Type::Pointer, Direction::In) => "HostPointer".to_owned(),
            (Type::Named(name), Direction::In) if name == "call" => "&Call<'_>".to_owned(),
            (ty, Direction::In) => format!("&{}", value_type(contract, HOST_POINTER, ty)),
            (Type::Named(name), _) if name == "str" => "&str".to_owned(),
            (ty, _) => value_type(contract, HOST_POINTER, ty),
        };
        write!(out, ", {}: {ty}", identifier(&param.name)).expect("infallible");
    }
    out
}

fn trait_result(contract: &Contract, slot: &Slot) -> String {
    let types: Vec<_> = slot
        .params
        .iter()
        .filter(|param| is_result(param))
        .map(|param| match &param.ty {
            Type::List(element) => format!("Vec<{}>", element_type(contract, element)),
            ty => value_type(contract, HOST_POINTER, ty),
        })
        .collect();
    match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

fn element_type(contract: &Contract, ty: &Type) -> String {
    match ty {
        Type::Named(name) if is_struct(contract, name) => {
            format!("&{}", rust_name(contract, name, RustScope::Abi))
        }
        ty => value_type(contract, HOST_POINTER, ty),
    }
}

/// The check of an argument that is more than a number.
fn check(contract: &Contract, param: &Param) -> Option<String> {
    let name = identifier(&param.name);
    let text = &param.name;
    Some(match (&param.ty, param.direction) {
        (Type::Bytes, Direction::Out) => format!("boundary::bytes_mut({name}, {name}_size, {text:?})"),
        (Type::Bytes, _) => format!("boundary::bytes({name}, {name}_size, {text:?})"),
        (Type::List(_), Direction::Out) => {
            format!("boundary::OutList::new({name}, {name}_capacity, {name}_count, {text:?})")
        }
        (Type::List(element), _) => match &**element {
            Type::Named(named) if is_struct(contract, named) => {
                format!("boundary::references({name}, {name}_count, {text:?})")
            }
            _ => format!("boundary::slice({name}, {name}_count, {text:?})"),
        },
        (Type::Callback(named), _) => format!("{}::new({name}, user)", camel(named)),
        (_, Direction::Out) => format!("Out::new({name}, {text:?})"),
        (Type::Pointer, Direction::In) => format!("HostPointer::new({name}.cast_mut(), {text:?})"),
        (Type::Named(named), Direction::In) if named == "call" => format!("Call::new({name}, plugin.host)"),
        (_, Direction::In) => format!("boundary::reference({name}, {text:?})"),
        (Type::Named(named), _) if named == "str" => format!("boundary::text({name}, {text:?})"),
        (Type::Pointer, _) if is_user(param) => return None,
        (Type::Pointer, _) => format!("HostPointer::new({name}, {text:?})"),
        _ => return None,
    })
}

fn writer(contract: &Contract, param: &Param) -> &'static str {
    match &param.ty {
        Type::Pointer => "write_pointer",
        Type::Named(name) if is_struct(contract, name) => "write_struct",
        _ => "write",
    }
}
