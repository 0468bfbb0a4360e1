//! The layer as a plugin: its own table, which wraps the tables it is given.

#![expect(unsafe_code, reason = "a layer handles the raw tables of other plugins")]

use core::ffi::c_void;
use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{
    HostServices, Plugin, PluginError, Result, abi, answer_query, copy_sized, guard_call,
    instance_from_context,
};

use crate::active_work::ActiveWork;
use crate::generated;
use crate::layer_host::LayerHost;
use crate::work::{LayerTarget, LayerWork, TargetTable};
use crate::wrapped_table::WrappedTable;

thread_local! {
    /// The host that queries a layer on this thread: the SDK passes on only its services.
    static ASKING_HOST: Cell<abi::Host> = const { Cell::new(abi::Host::EMPTY) };
}

/// Answers the query of a host for a layer.
///
/// # Safety
///
/// Both structs are as the contract describes them, and the host outlives the plugin.
pub unsafe extern "C" fn query_layer<W: LayerWork>(
    host: *const abi::Host,
    plugin: *mut abi::Plugin,
) -> abi::Error {
    // SAFETY: the caller vouches for both structs.
    unsafe {
        ASKING_HOST.set(copy_sized(host, abi::Host::EMPTY));
        answer_query(host, plugin, layer_plugin::<W>)
    }
}

fn layer_plugin<W: LayerWork>(services: &HostServices) -> Result<Plugin<LayerPlugin<W>>> {
    // SAFETY: `query_layer` stored the host that asks on this thread, and the host vouches for its services.
    let host = unsafe { LayerHost::new(*services, &ASKING_HOST.get()) };
    let table = abi::LayerTable {
        wrap: Some(wrap_table::<W>),
        unwrap: Some(unwrap_table::<W>),
        ..abi::LayerTable::EMPTY
    };
    let layer = LayerPlugin::<W> { host, active: Mutex::new(None) };
    Ok(Plugin::for_layer(W::NAME, W::VERSION, layer, table).with_vendor("Oarlock").with_package("oarlock"))
}

/// The layer. Its work begins when the first table is wrapped, and ends when the last wrapper is freed or the process ends.
struct LayerPlugin<W: LayerWork> {
    host: LayerHost,
    active: Mutex<Option<Arc<ActiveWork<W>>>>,
}

impl<W: LayerWork> LayerPlugin<W> {
    fn active_work(&self) -> Result<Arc<ActiveWork<W>>> {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(active) = &*active {
            return Ok(Arc::clone(active));
        }
        let started = ActiveWork::start_work(self.host)?;
        *active = Some(Arc::clone(&started));
        Ok(started)
    }
}

/// A wrapper with the table that leads to it; the host gets the addresses of both parts.
#[repr(C)]
struct WrappedTablePair<W: LayerWork, T> {
    wrapped: WrappedTable<W, T>,
    table: T,
}

/// The wrapped kernels of a plugin.
#[expect(clippy::vec_box, reason = "the host holds the addresses of what is in the boxes")]
struct WrappedKernels<W: LayerWork> {
    _wrapped: Vec<Box<WrappedTable<W, abi::Kernel>>>,
    _records: Vec<Box<abi::Kernel>>,
    _pointers: Vec<*const abi::Kernel>,
    table: abi::KernelTable,
}

unsafe extern "C" fn wrap_table<W: LayerWork>(
    context: *mut c_void,
    kind: abi::TableKind,
    plugin: abi::Str,
    next_context: *mut c_void,
    next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes back the context of this plugin.
    let (layer, host) = unsafe { instance_from_context::<LayerPlugin<W>>(context) };
    guard_call(&host, || {
        if next_table.is_null() || wrapped_context.is_null() || wrapped_table.is_null() {
            return Err(PluginError::invalid_argument(
                "expected a table and places for the wrapper, found null",
            ));
        }
        // SAFETY: the text lives during the call.
        let plugin = unsafe { plugin.text() }.unwrap_or("?");
        let next =
            WrapRequest { context: next_context, table: next_table, active: layer.active_work()?, plugin };
        // SAFETY: `kind` says which table the host passes.
        let (context, table) = unsafe {
            match kind {
                abi::TableKind::CORE => {
                    next.wrap_function_table(abi::CoreTable::EMPTY, generated::before_core::<W>, |table| {
                        TargetTable::Core(table)
                    })?
                }
                abi::TableKind::ASYNC => {
                    next.wrap_function_table(abi::AsyncTable::EMPTY, generated::before_async::<W>, |table| {
                        TargetTable::Async(table)
                    })?
                }
                abi::TableKind::KERNEL => next.wrap_kernels()?,
                // An unknown kind of table, from a later contract, passes through unchanged (rule L-1).
                _ => (next.context, next.table),
            }
        };
        // SAFETY: the host provides both locations to be written.
        unsafe {
            wrapped_context.write(context);
            wrapped_table.write(table);
        }
        Ok(())
    })
}

unsafe extern "C" fn unwrap_table<W: LayerWork>(
    context: *mut c_void,
    kind: abi::TableKind,
    wrapped_context: *mut c_void,
    _wrapped_table: *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes back the context of this plugin.
    let (layer, host) = unsafe { instance_from_context::<LayerPlugin<W>>(context) };
    guard_call(&host, || {
        // SAFETY: the host returns, once, what `wrap` created for this kind.
        unsafe {
            match kind {
                abi::TableKind::CORE => free_box::<WrappedTablePair<W, abi::CoreTable>>(wrapped_context),
                abi::TableKind::ASYNC => free_box::<WrappedTablePair<W, abi::AsyncTable>>(wrapped_context),
                abi::TableKind::KERNEL => free_box::<WrappedKernels<W>>(wrapped_context),
                _ => {}
            }
        }
        let mut active = layer.active.lock().unwrap_or_else(PoisonError::into_inner);
        if active.as_ref().is_some_and(|active| Arc::strong_count(active) == 1) {
            *active = None;
        }
        Ok(())
    })
}

/// # Safety
///
/// `address` is that of a leaked `Box<T>`, and nothing uses it any more.
unsafe fn free_box<T>(address: *mut c_void) {
    // SAFETY: the caller guarantees it.
    drop(unsafe { Box::from_raw(address.cast::<T>()) });
}

/// Arguments of one `wrap` call.
struct WrapRequest<'a, W: LayerWork> {
    context: *mut c_void,
    table: *mut c_void,
    active: Arc<ActiveWork<W>>,
    plugin: &'a str,
}

impl<W: LayerWork> WrapRequest<'_, W> {
    /// Wraps a table of functions. The wrapper is the first field of the pair, so it has the pair's address.
    ///
    /// # Safety
    ///
    /// The table is a `T`.
    unsafe fn wrap_function_table<T: Copy>(
        self,
        empty: T,
        before: fn(&T) -> T,
        target: for<'t> fn(&'t T) -> TargetTable<'t>,
    ) -> Result<(*mut c_void, *mut c_void)> {
        // SAFETY: the caller guarantees the type; `copy_sized` handles a table of an older version.
        let next = unsafe { copy_sized(self.table.cast::<T>(), empty) };
        let target = LayerTarget { plugin: self.plugin, table: target(&next) };
        let target = self.active.work.wrap_target(target)?;
        let wrapped = WrappedTable { context: self.context, next, active: self.active, target };
        let pair = Box::into_raw(Box::new(WrappedTablePair { wrapped, table: before(&next) }));
        // SAFETY: the box was just leaked, so its fields have valid addresses.
        Ok((pair.cast(), unsafe { (&raw mut (*pair).table).cast() }))
    }

    /// Wraps each kernel of a kernel table.
    ///
    /// # Safety
    ///
    /// The table is a `KernelTable`.
    unsafe fn wrap_kernels(self) -> Result<(*mut c_void, *mut c_void)> {
        // SAFETY: the caller guarantees the type.
        let next = unsafe { copy_sized(self.table.cast::<abi::KernelTable>(), abi::KernelTable::EMPTY) };
        let (mut wrapped, mut records) = (Vec::new(), Vec::new());
        for index in 0..next.kernels_count as usize {
            // SAFETY: the table says how many kernels there are.
            let kernel = unsafe { copy_sized(*next.kernels.add(index), abi::Kernel::EMPTY) };
            let target = LayerTarget { plugin: self.plugin, table: TargetTable::Kernel(&kernel) };
            let before = Box::new(WrappedTable {
                context: kernel.context,
                next: kernel,
                target: self.active.work.wrap_target(target)?,
                active: Arc::clone(&self.active),
            });
            let context = (&raw const *before).cast_mut().cast();
            records.push(Box::new(abi::Kernel { context, ..generated::before_kernel::<W>(&kernel) }));
            wrapped.push(before);
        }
        let pointers: Vec<_> = records.iter().map(|record| &raw const **record).collect();
        let table = abi::KernelTable {
            size: size_of::<abi::KernelTable>() as u32,
            next: core::ptr::null(),
            kernels: pointers.as_ptr(),
            ..next
        };
        let kernels = WrappedKernels { _wrapped: wrapped, _records: records, _pointers: pointers, table };
        let kernels = Box::into_raw(Box::new(kernels));
        // SAFETY: the box was just leaked, so its fields have valid addresses.
        Ok((kernels.cast(), unsafe { (&raw mut (*kernels).table).cast() }))
    }
}
