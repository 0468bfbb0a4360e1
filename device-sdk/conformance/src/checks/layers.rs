//! Checks of a layer: what it does with tables that it is given. That calls go through it unchanged is seen by all other checks.

#![expect(unsafe_code, reason = "tables are handed to a layer as pointers, and read as lists of slots")]

use std::ffi::c_void;

use oarlock_abi as abi;

use super::ConformanceCheck;
use crate::bench::{BoundTable, CheckAbort, TestBench, Verdict, ensure, slot};
use crate::host_memory::host_memory_table;

pub(super) const CHECKS: &[ConformanceCheck] = &[
    ConformanceCheck::layer_check(
        "L-1",
        "a slot that is empty below a layer is empty above it",
        empty_slots_stay_empty,
    ),
    ConformanceCheck::layer_check(
        "L-1",
        "a table of a kind that a layer does not know is passed on",
        unknown_kinds_pass,
    ),
];

/// A number that no kind of table has.
const UNKNOWN_KIND: abi::TableKind = abi::TableKind(0x7FFF_FFFF);

fn layer_table(bench: &TestBench) -> Verdict<BoundTable<'_, abi::LayerTable>> {
    let (context, table) =
        bench.subject().layer.as_ref().ok_or_else(|| CheckAbort::unsupported("the plugin is no layer"))?;
    Ok(BoundTable { context: *context, table })
}

/// Wraps a table; returns what the layer wrote.
fn wrap(bench: &TestBench, kind: abi::TableKind, table: *mut c_void) -> Verdict<(*mut c_void, *mut c_void)> {
    let (mut context, mut wrapped) = (std::ptr::null_mut(), std::ptr::null_mut());
    let name = abi::Str::borrowed("conformance");
    let below = std::ptr::null_mut();
    slot!(bench, layer_table(bench)?, wrap(kind, name, below, table, &raw mut context, &raw mut wrapped))?;
    Ok((context, wrapped))
}

fn empty_slots_stay_empty(bench: &TestBench) -> Verdict {
    let mut below = host_memory_table();
    let address = (&raw mut below).cast::<c_void>();
    let (context, wrapped) = wrap(bench, abi::TableKind::CORE, address)?;
    ensure!(!wrapped.is_null(), "expected `wrap` to write a table, found a null pointer");
    if wrapped == address {
        return Ok(());
    }
    // SAFETY: a layer returns a table of the kind that it was given, and what it gave lives until `unwrap`.
    let above = unsafe { &*wrapped.cast::<abi::CoreTable>() };
    let filled = first_filled_slot(&below, above);
    slot!(bench, layer_table(bench)?, unwrap(abi::TableKind::CORE, context, wrapped))?;
    match filled {
        Some(name) => Err(CheckAbort::failed(format!(
            "expected `{name}` to stay empty, since it is empty below the layer, found it filled"
        ))),
        None => Ok(()),
    }
}

/// The first slot that is empty below and filled above.
fn first_filled_slot(below: &abi::CoreTable, above: &abi::CoreTable) -> Option<&'static str> {
    let known = (above.size as usize).min(size_of::<abi::CoreTable>());
    let slots = |table: &abi::CoreTable| -> Vec<bool> {
        let header = size_of::<abi::CoreTable>() - abi::CoreTable::SLOTS.len() * size_of::<usize>();
        let words = (&raw const *table).cast::<u8>();
        let is_filled = |index: usize| {
            let at = header + index * size_of::<usize>();
            // SAFETY: the slots end the table, one pointer each, and a table is read no further than its size.
            at + size_of::<usize>() <= known && unsafe { words.add(at).cast::<usize>().read() } != 0
        };
        (0..abi::CoreTable::SLOTS.len()).map(is_filled).collect()
    };
    let pairs = slots(below).into_iter().zip(slots(above));
    let names = abi::CoreTable::SLOTS.iter().map(|(name, _)| *name);
    names.zip(pairs).find(|(_, (below, above))| !below && *above).map(|(name, _)| name)
}

fn unknown_kinds_pass(bench: &TestBench) -> Verdict {
    let mut below = host_memory_table();
    let address = (&raw mut below).cast::<c_void>();
    let (context, wrapped) = wrap(bench, UNKNOWN_KIND, address)?;
    ensure!(
        context.is_null() && wrapped == address,
        "expected the table and its context unchanged, found others: a layer passes on what it does not know"
    );
    Ok(())
}
