//! Generates the SDK's side of the tables: a safe trait for each profile, and for each slot a function that validates arguments
//! from across the boundary, calls the trait and returns the result.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use oarlock_contract::Contract;
use oarlock_contract::lower::slot_params;
use oarlock_contract::model::{
    ContractItem, ContractType, ItemStage, ParameterDefinition, ParameterDirection, SlotDefinition,
    TableDefinition,
};

use super::names::{
    RUST_BANNER, RustScope, rust_docs, rust_identifier, rust_name, rust_params, to_camel_case,
};
use super::params::{is_result, is_struct, is_user, value_type};

/// The SDK's type for an address.
const HOST_POINTER_TYPE: &str = "HostPointer";

/// Renders `device-sdk/sdk/src/generated.rs`.
pub(super) fn sdk_bindings(contract: &Contract) -> String {
    let profiles = contract.tables().filter(|(_, table)| table.profile.is_some());
    let profiles: Vec<_> = profiles.filter(|(item, _)| item.stage != ItemStage::Draft).collect();
    let mut out = String::from(RUST_BANNER);
    out.push_str(
        "#![expect(unsafe_code, reason = \"every function here is called through a pointer from C\")]\n\n\
         use core::ffi::c_void;\n\nuse oarlock_abi as abi;\n\n\
         use crate::boundary::{self, OutValue, PluginInstance};\nuse crate::error::{PluginError, Result};\nuse crate::memory_range::MemoryRange;\n",
    );
    let slots = || profiles.iter().flat_map(|(_, table)| table.slots());
    if slots().flat_map(|slot| &slot.params).any(|param| param.ty == ContractType::Named("call".to_owned())) {
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

/// The callbacks among the parameters of slots, as SDK types.
fn callbacks<'a>(slots: impl Iterator<Item = &'a SlotDefinition>) -> Vec<String> {
    let names = slots.flat_map(|slot| &slot.params).filter_map(|param| match &param.ty {
        ContractType::Callback(name) => Some(to_camel_case(name)),
        _ => None,
    });
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn write_trait(out: &mut String, contract: &Contract, item: &ContractItem, table: &TableDefinition) {
    let name = to_camel_case(&item.name);
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
            let names = trait_arguments(slot).iter().map(TraitArgument::name).collect::<Vec<_>>();
            let unused = match names.as_slice() {
                [] => String::new(),
                [one] => format!("let _ = {one};"),
                several => format!("let _ = ({});", several.join(", ")),
            };
            writeln!(out, "{{ {unused} Err(PluginError::slot_not_offered({:?})) }}", slot.name)
                .expect("infallible");
        }
    }
    out.push_str("}\n\n");
}

fn write_slot(out: &mut String, contract: &Contract, item: &ContractItem, slot: &SlotDefinition) {
    let params = rust_params(contract, &slot_params(contract, slot), RustScope::Abi);
    write!(
        out,
        "unsafe extern \"C\" fn {}_{}<D: {}>({params}) -> abi::Error {{\n\
         // SAFETY: the host hands back the context of this plugin and arguments as the contract describes them.\n\
         unsafe {{ boundary::enter_plugin(context, |plugin: &PluginInstance<D>| {{\n",
        item.name,
        slot.name,
        to_camel_case(&item.name)
    )
    .expect("infallible");
    for param in &slot.params {
        if let Some(check) = check(contract, param) {
            writeln!(out, "let {} = {check}?;", rust_identifier(&param.name)).expect("infallible");
        }
    }
    let arguments = trait_arguments(slot);
    for argument in &arguments {
        if let TraitArgument::Range { name, size } = argument {
            let memory = format!("memory: {name}, offset: {name}_offset");
            writeln!(out, "let {name} = MemoryRange {{ {memory}, {size} }};").expect("infallible");
        }
    }
    let arguments = arguments.iter().map(TraitArgument::expression).collect::<Vec<_>>().join(", ");
    let results: Vec<_> = slot.params.iter().filter(|param| is_result(param)).collect();
    let call = format!("plugin.device.{}({arguments})", slot.name);
    match results.as_slice() {
        [] => writeln!(out, "{call}"),
        [one] => writeln!(out, "{}.{}({call}?)", rust_identifier(&one.name), writer(contract, one)),
        several => {
            let names = (0..several.len()).map(|n| format!("result{n}")).collect::<Vec<_>>();
            writeln!(out, "let ({}) = {call}?;", names.join(", ")).expect("infallible");
            for (name, param) in names.iter().zip(several) {
                writeln!(out, "{}.{}({name})?;", rust_identifier(&param.name), writer(contract, param))
                    .expect("infallible");
            }
            writeln!(out, "Ok(())")
        }
    }
    .expect("infallible");
    out.push_str("}) }\n}\n\n");
}

fn write_table(out: &mut String, contract: &Contract, item: &ContractItem, table: &TableDefinition) {
    let (name, camel_name) = (&item.name, to_camel_case(&item.name));
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
            writeln!(out, "{0}: boundary::slot_if_offered(D::SLOTS, {0:?}, {function}),", slot.name)
                .expect("infallible");
        }
    }
    write!(out, "..{ty}::EMPTY\n}}\n}}\n\n").expect("infallible");
}

/// An argument of a trait method.
enum TraitArgument<'a> {
    Parameter(&'a ParameterDefinition),
    /// A block with its offset, and the field with the length of the range.
    Range {
        name: String,
        size: String,
    },
}

impl TraitArgument<'_> {
    fn name(&self) -> String {
        match self {
            Self::Parameter(param) => rust_identifier(&param.name),
            Self::Range { name, .. } => name.clone(),
        }
    }

    /// The argument as it is forwarded; a call is wrapped first, so it is passed by reference.
    fn expression(&self) -> String {
        match self {
            Self::Parameter(ParameterDefinition { ty: ContractType::Named(ty), name, .. })
                if ty == "call" =>
            {
                format!("&{}", rust_identifier(name))
            }
            other => other.name(),
        }
    }
}

/// The arguments of a trait method. A block, its offset and the size of a copy become a range, which replaces the size.
fn trait_arguments(slot: &SlotDefinition) -> Vec<TraitArgument<'_>> {
    let params = || slot.params.iter().filter(|param| !is_result(param) && !is_user(param));
    let has = |name: &str| params().any(|param| param.name == name);
    let is_block = |param: &ParameterDefinition| {
        matches!(&param.ty, ContractType::Named(ty) if ty == "memory")
            && has(&format!("{}_offset", param.name))
    };
    let blocks: Vec<String> =
        params().filter(|param| is_block(param)).map(|param| param.name.clone()).collect();
    let bytes =
        params().find(|param| param.ty == ContractType::Bytes).map(|param| rust_identifier(&param.name));
    let size = bytes.map_or_else(|| "size".to_owned(), |bytes| format!("size: {bytes}.len() as u64"));
    let is_part = |param: &ParameterDefinition| {
        !blocks.is_empty() && param.name == "size"
            || param
                .name
                .strip_suffix("_offset")
                .is_some_and(|block| blocks.iter().any(|known| known == block))
    };
    let argument = |param| match is_block(param) {
        true => TraitArgument::Range { name: rust_identifier(&param.name), size: size.clone() },
        false => TraitArgument::Parameter(param),
    };
    params().filter(|param| !is_part(param)).map(argument).collect()
}

fn trait_params(contract: &Contract, slot: &SlotDefinition) -> String {
    let mut out = String::new();
    for argument in trait_arguments(slot) {
        let TraitArgument::Parameter(param) = &argument else {
            write!(out, ", {}: MemoryRange", argument.name()).expect("infallible");
            continue;
        };
        let ty = match (&param.ty, param.direction) {
            (ContractType::Bytes, ParameterDirection::Out) => "&mut [u8]".to_owned(),
            (ContractType::Bytes, _) => "&[u8]".to_owned(),
            (ContractType::List(element), _) => format!("&[{}]", element_type(contract, element)),
            (ContractType::Callback(name), _) => to_camel_case(name),
            (ContractType::Pointer, ParameterDirection::In) => "HostPointer".to_owned(),
            (ContractType::Named(name), ParameterDirection::In) if name == "call" => "&Call<'_>".to_owned(),
            (ty, ParameterDirection::In) => format!("&{}", value_type(contract, HOST_POINTER_TYPE, ty)),
            (ContractType::Named(name), _) if name == "str" => "&str".to_owned(),
            (ty, _) => value_type(contract, HOST_POINTER_TYPE, ty),
        };
        write!(out, ", {}: {ty}", argument.name()).expect("infallible");
    }
    out
}

fn trait_result(contract: &Contract, slot: &SlotDefinition) -> String {
    let types: Vec<_> = slot
        .params
        .iter()
        .filter(|param| is_result(param))
        .map(|param| match &param.ty {
            ContractType::List(element) => format!("Vec<{}>", element_type(contract, element)),
            ty => value_type(contract, HOST_POINTER_TYPE, ty),
        })
        .collect();
    match types.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

fn element_type(contract: &Contract, ty: &ContractType) -> String {
    match ty {
        ContractType::Named(name) if is_struct(contract, name) => {
            format!("&{}", rust_name(contract, name, RustScope::Abi))
        }
        ty => value_type(contract, HOST_POINTER_TYPE, ty),
    }
}

/// The validation of a parameter; `None` for plain numbers.
fn check(contract: &Contract, param: &ParameterDefinition) -> Option<String> {
    let name = rust_identifier(&param.name);
    let text = &param.name;
    Some(match (&param.ty, param.direction) {
        (ContractType::Bytes, ParameterDirection::Out) => {
            format!("boundary::checked_bytes_mut({name}, {name}_size, {text:?})")
        }
        (ContractType::Bytes, _) => format!("boundary::checked_bytes({name}, {name}_size, {text:?})"),
        (ContractType::List(_), ParameterDirection::Out) => {
            format!("boundary::OutList::new({name}, {name}_capacity, {name}_count, {text:?})")
        }
        (ContractType::List(element), _) => match &**element {
            ContractType::Named(named) if is_struct(contract, named) => {
                format!("boundary::references({name}, {name}_count, {text:?})")
            }
            _ => format!("boundary::slice({name}, {name}_count, {text:?})"),
        },
        (ContractType::Callback(named), _) => format!("{}::new({name}, user)", to_camel_case(named)),
        (_, ParameterDirection::Out) => format!("OutValue::new({name}, {text:?})"),
        (ContractType::Pointer, ParameterDirection::In) => {
            format!("HostPointer::new({name}.cast_mut(), {text:?})")
        }
        (ContractType::Named(named), ParameterDirection::In) if named == "call" => {
            format!("Call::new({name}, plugin.host)")
        }
        (_, ParameterDirection::In) => format!("boundary::reference({name}, {text:?})"),
        (ContractType::Named(named), _) if named == "str" => {
            format!("boundary::checked_text({name}, {text:?})")
        }
        (ContractType::Pointer, _) if is_user(param) => return None,
        (ContractType::Pointer, _) => format!("HostPointer::new({name}, {text:?})"),
        _ => return None,
    })
}

fn writer(contract: &Contract, param: &ParameterDefinition) -> &'static str {
    match &param.ty {
        ContractType::Pointer => "write_pointer",
        ContractType::Named(name) if is_struct(contract, name) => "write_struct",
        _ => "write",
    }
}
