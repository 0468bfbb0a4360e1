//! A layer in front of core tables. `memory_stats` says a total of 4242 bytes, which shows that the layer is in the way; everything
//! else goes to the next table, and every other kind of table passes by.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

use oarlock_sdk::{Error, Host, Plugin, Result, abi, copy_sized, guard, instance_of};

const TOTAL: u64 = 4242;

/// The wrapped tables: the context that the host passes to their functions, the next table, and the one that stands before it.
#[derive(Default)]
struct Layer(Mutex<Vec<(usize, abi::CoreTable, Box<abi::CoreTable>)>>);

/// A slot does not get the context of this plugin, so the layer is found here.
static LAYER: Mutex<usize> = Mutex::new(0);

unsafe extern "C" fn memory_stats(context: *mut c_void, device: u32, total: *mut u64, free: *mut u64) -> abi::Error {
    let layer = *LAYER.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: `wrap` stored the context of this plugin, which lives as long as its tables.
    let (layer, _) = unsafe { instance_of::<Layer>(layer as *mut c_void) };
    let wrapped = layer.0.lock().unwrap_or_else(PoisonError::into_inner);
    let next = wrapped.iter().find(|(of, _, _)| *of == context as usize).and_then(|(_, next, _)| next.memory_stats);
    drop(wrapped);
    let Some(next) = next else { return abi::Error(u64::MAX) };
    // SAFETY: the host's arguments go to the slot that they are meant for; on success, both numbers may be written.
    unsafe {
        let failure = next(context, device, total, free);
        if failure == abi::Error::NONE {
            *total = TOTAL;
            *free = (*free).min(TOTAL);
        }
        failure
    }
}

unsafe extern "C" fn wrap(
    context: *mut c_void,
    kind: abi::TableKind,
    _plugin: abi::Str,
    next_context: *mut c_void,
    next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin.
    let (layer, host) = unsafe { instance_of::<Layer>(context) };
    guard(&host, || {
        if next_table.is_null() || wrapped_context.is_null() || wrapped_table.is_null() {
            return Err(Error::invalid_argument("expected a table and places for the wrapper, found null"));
        }
        *LAYER.lock().unwrap_or_else(PoisonError::into_inner) = context as usize;
        let mut table = next_table;
        if kind == abi::TableKind::CORE {
            // SAFETY: the host says with `kind` which table it passes.
            let next = unsafe { copy_sized(next_table.cast::<abi::CoreTable>(), abi::CoreTable::EMPTY) };
            let before = Box::new(abi::CoreTable { memory_stats: Some(memory_stats), ..next });
            table = (&raw const *before).cast_mut().cast();
            let mut wrapped = layer.0.lock().unwrap_or_else(PoisonError::into_inner);
            wrapped.push((next_context as usize, next, before));
        }
        // SAFETY: both places are the host's to have written.
        unsafe {
            wrapped_context.write(next_context);
            wrapped_table.write(table);
        }
        Ok(())
    })
}

unsafe extern "C" fn unwrap(
    context: *mut c_void,
    _kind: abi::TableKind,
    _wrapped_context: *mut c_void,
    wrapped_table: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin.
    let (layer, host) = unsafe { instance_of::<Layer>(context) };
    guard(&host, || {
        let mut wrapped = layer.0.lock().unwrap_or_else(PoisonError::into_inner);
        wrapped.retain(|(_, _, before)| &raw const **before as usize != wrapped_table as usize);
        Ok(())
    })
}

fn plugin(_host: &Host) -> Result<Plugin<Layer>> {
    let table = abi::LayerTable { wrap: Some(wrap), unwrap: Some(unwrap), ..abi::LayerTable::EMPTY };
    Ok(Plugin::layer("frozen-layer-rust", "1.0.0", Layer::default(), table).vendor("Oarlock"))
}

oarlock_sdk::export!(plugin);
