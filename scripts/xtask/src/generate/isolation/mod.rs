//! Generates what crosses between a host and an isolated plugin: for each slot a proxy on the host's side and its counterpart in
//! the child, and for each struct the functions that write and read it.
//!
//! A slot whose arguments mean something only in one process is listed here. A new slot with such arguments stops the generator
//! until somebody has decided how it crosses.

mod proxies;
mod service;
mod structs;

use std::fmt::Write as _;

use anyhow::{Result, bail};
use oarlock_contract::Contract;
use oarlock_contract::model::{
    ContractItem, ContractType, ItemKind, ParameterDefinition, ParameterDirection, SlotDefinition,
    member_slots,
};

use super::names::RUST_BANNER;
pub(super) use proxies::proxy_tables;
pub(super) use service::slot_service;
pub(super) use structs::{argument_readers, argument_writers, description_codec};

/// Slots that an isolated plugin does not offer: they return an address that has to be valid in the host.
const EMPTIED: &[(&str, &str)] =
    &[("core", "unified_memory_allocate"), ("core", "unified_memory_deallocate"), ("core", "experimental")];

/// Slots whose proxies are in `runtime/isolation/src/proxy/copies.rs`, because their arguments are addresses in the host.
const BY_HAND: &[(&str, &str)] = &[
    ("core", "host_memory_allocate"),
    ("core", "host_memory_deallocate"),
    ("core", "memory_copy_h2d"),
    ("core", "memory_copy_d2h"),
    ("async", "memory_copy_h2d_async"),
    ("async", "memory_copy_d2h_async"),
    ("async", "stream_add_callback"),
];

/// Slots that the proxy offers even if the plugin does not. The child is not called.
const HOST_ONLY: &[(&str, &str)] = &[("core", "host_memory_allocate"), ("core", "host_memory_deallocate")];

/// Slots that the child serves by hand.
const SERVED_BY_HAND: &[(&str, &str)] = &[("async", "stream_add_callback")];

/// Slots that only add work to a stream, so nobody has to wait for them.
const POSTED: &[(&str, &str)] = &[
    ("async", "stream_wait_event"),
    ("async", "event_record"),
    ("async", "memory_copy_d2d_async"),
    ("async", "memory_copy_p2p_async"),
    ("async", "memory_set_async"),
    ("async", "memory_deallocate_async"),
];

/// A table or record with slots that a host calls.
struct CrossingTable<'a> {
    item: &'a ContractItem,
    slots: Vec<&'a SlotDefinition>,
}

impl CrossingTable<'_> {
    fn is_kernel(&self) -> bool {
        self.item.name == "kernel"
    }

    fn is_listed(&self, list: &[(&str, &str)], slot: &SlotDefinition) -> bool {
        list.contains(&(self.item.name.as_str(), slot.name.as_str()))
    }

    fn constant(&self, slot: &SlotDefinition) -> String {
        format!("{}_{}", self.item.name, slot.name).to_uppercase()
    }
}

/// The locked tables of devices, and the record of a kernel.
fn crossing_tables(contract: &Contract) -> Vec<CrossingTable<'_>> {
    let members = |item: &ContractItem| match &item.kind {
        ItemKind::Table(table) if table.profile.is_some() => true,
        ItemKind::Struct(_) => item.name == "kernel",
        _ => false,
    };
    let items = contract.items.iter().filter(|item| item.is_locked() && members(item));
    items
        .map(|item| {
            let slots = match &item.kind {
                ItemKind::Table(table) => member_slots(&table.members).collect(),
                ItemKind::Struct(members) => member_slots(members).collect(),
                _ => Vec::new(),
            };
            CrossingTable { item, slots }
        })
        .collect()
}

/// Renders `runtime/isolation/src/wire/generated.rs`.
pub(super) fn slot_numbers(contract: &Contract) -> Result<String> {
    let mut out = String::from(RUST_BANNER);
    let (mut names, mut number) = (String::new(), 1);
    for table in crossing_tables(contract) {
        for slot in &table.slots {
            check_slot(contract, &table, slot)?;
            let (constant, name) = (table.constant(slot), &table.item.name);
            if !table.is_listed(EMPTIED, slot) {
                writeln!(
                    out,
                    "/// `{}` of `{name}`.\npub(crate) const {constant}: u32 = {number};",
                    slot.name
                )?;
                writeln!(names, "{constant} => \"{name}.{}\",", slot.name)?;
            }
            number += 1;
        }
    }
    write!(
        out,
        "\n/// The name of a slot, for messages.\npub(crate) fn slot_name(number: u32) -> &'static str {{\n\
         match number {{\n{names}crate::wire::header::SHUT_DOWN => \"unload\",\n_ => \"a request\",\n}}\n}}\n"
    )?;
    Ok(out)
}

/// Refuses a slot with arguments that nobody has decided about.
fn check_slot(contract: &Contract, table: &CrossingTable<'_>, slot: &SlotDefinition) -> Result<()> {
    if [EMPTIED, BY_HAND].iter().any(|list| table.is_listed(list, slot)) {
        return Ok(());
    }
    for param in &slot.params {
        if !crosses_as_it_is(contract, table, param) {
            bail!(
                "expected arguments of `{}.{}` that mean the same in another process, found `{}`; say in \
                 `scripts/xtask/src/generate/isolation/mod.rs` how the slot reaches an isolated plugin",
                table.item.name,
                slot.name,
                param.name
            );
        }
    }
    Ok(())
}

fn crosses_as_it_is(contract: &Contract, table: &CrossingTable<'_>, param: &ParameterDefinition) -> bool {
    let kind = |name: &str| contract.find_item(name).map(|item| &item.kind);
    match (&param.ty, param.direction) {
        (ContractType::Number(_), _) => true,
        (ContractType::Named(name), ParameterDirection::In) => name == "call",
        (ContractType::Named(name), ParameterDirection::Out) => {
            !matches!(kind(name), Some(ItemKind::Callback(_)))
        }
        (ContractType::Named(name), ParameterDirection::Value) => {
            matches!(kind(name), Some(ItemKind::Handle | ItemKind::Enum(_) | ItemKind::Flags(..)))
        }
        // The state of a kernel, which the host never reads.
        (ContractType::Pointer, _) => table.is_kernel(),
        (ContractType::List(element), ParameterDirection::Out) => **element == ContractType::Number("u32"),
        _ => false,
    }
}

/// The suffix of the functions that put and take a number, handle, enum or flags, and the field that holds the number.
fn number_access(contract: &Contract, ty: &ContractType) -> Option<(&'static str, &'static str)> {
    Some(match ty {
        ContractType::Number(name) => (name, ""),
        ContractType::Named(name) => match contract.find_item(name)?.kind {
            ItemKind::Handle => ("u64", ".0"),
            ItemKind::Enum(_) | ItemKind::Flags(32, _) => ("u32", ".0"),
            ItemKind::Flags(..) => ("u64", ".0"),
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use oarlock_contract::{CONTRACT_SOURCE, read_contract};

    #[test]
    fn a_slot_with_an_address_is_refused_until_somebody_says_how_it_crosses() {
        let slot = "    /// Looks.\n    optional fn memory_peek(device: u32, in place: ptr) default \"nothing\" since 1.2\n";
        let last = "    optional fn experimental(name: str, out function: ptr) default \"there are no experimental functions\"\n";
        assert!(CONTRACT_SOURCE.contains(last));
        let changed = CONTRACT_SOURCE.replace(last, &format!("{last}{slot}"));
        let refusal = super::slot_numbers(&read_contract(&changed).unwrap()).unwrap_err().to_string();
        assert!(refusal.contains("`core.memory_peek`") && refusal.contains("`place`"), "{refusal}");
        assert!(super::slot_numbers(&read_contract(CONTRACT_SOURCE).unwrap()).is_ok());
    }
}
