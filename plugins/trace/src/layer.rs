//! The layer's own table, which wraps the tables it is given.

#![expect(unsafe_code, reason = "a layer handles the raw tables of other plugins")]

use core::ffi::c_void;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{
    HostServices, LogLevel, PluginError, Result, abi, copy_sized, guard_call, instance_from_context,
};

use crate::exit::close_at_exit;
use crate::generated;
use crate::recorder::TraceRecorder;
use crate::traced_table::TracedTable;

/// Where the trace goes if the configuration does not say.
const DEFAULT_FILE: &str = "oarlock-trace.json";

pub(crate) const LAYER_TABLE: abi::LayerTable =
    abi::LayerTable { wrap: Some(wrap_table), unwrap: Some(unwrap_table), ..abi::LayerTable::EMPTY };

/// The layer. The file is opened when the first table is wrapped, and closed when the last wrapper is freed or the process ends.
#[derive(Default)]
pub(crate) struct TraceLayer {
    recorder: Mutex<Option<Arc<TraceRecorder>>>,
}

impl TraceLayer {
    fn open_recorder(&self, host: HostServices) -> Result<Arc<TraceRecorder>> {
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(recorder) = &*recorder {
            return Ok(Arc::clone(recorder));
        }
        let path = PathBuf::from(host.option("file").unwrap_or(DEFAULT_FILE));
        let result = TraceRecorder::create_recorder(&path, host)?;
        close_at_exit(&result);
        host.log(LogLevel::DEBUG, &format!("recording calls into `{}`", path.display()));
        *recorder = Some(Arc::clone(&result));
        Ok(result)
    }
}

/// A wrapper with the table that leads to it; the host gets the addresses of both parts.
#[repr(C)]
struct TracedTablePair<T> {
    wrapped: TracedTable<T>,
    table: T,
}

/// The wrapped kernels of a plugin.
#[expect(clippy::vec_box, reason = "the host holds the addresses of what is in the boxes")]
struct TracedKernels {
    _wrapped: Vec<Box<TracedTable<abi::Kernel>>>,
    _records: Vec<Box<abi::Kernel>>,
    _pointers: Vec<*const abi::Kernel>,
    table: abi::KernelTable,
}

unsafe extern "C" fn wrap_table(
    context: *mut c_void,
    kind: abi::TableKind,
    plugin: abi::Str,
    next_context: *mut c_void,
    next_table: *mut c_void,
    wrapped_context: *mut *mut c_void,
    wrapped_table: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes back the context of this plugin.
    let (trace, host) = unsafe { instance_from_context::<TraceLayer>(context) };
    guard_call(&host, || {
        if next_table.is_null() || wrapped_context.is_null() || wrapped_table.is_null() {
            return Err(PluginError::invalid_argument(
                "expected a table and places for the wrapper, found null",
            ));
        }
        // SAFETY: the text lives during the call.
        let label = unsafe { plugin.text() }.unwrap_or("?").to_owned();
        let recorder = trace.open_recorder(host)?;
        let next = WrapRequest { context: next_context, table: next_table, recorder, label };
        // SAFETY: `kind` says which table the host passes.
        let (context, table) = unsafe {
            match kind {
                abi::TableKind::CORE => {
                    next.wrap_function_table(abi::CoreTable::EMPTY, generated::before_core)
                }
                abi::TableKind::ASYNC => {
                    next.wrap_function_table(abi::AsyncTable::EMPTY, generated::before_async)
                }
                abi::TableKind::KERNEL => next.wrap_kernels(),
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

unsafe extern "C" fn unwrap_table(
    context: *mut c_void,
    kind: abi::TableKind,
    wrapped_context: *mut c_void,
    _wrapped_table: *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes back the context of this plugin.
    let (trace, host) = unsafe { instance_from_context::<TraceLayer>(context) };
    guard_call(&host, || {
        // SAFETY: the host returns, once, what `wrap` created for this kind.
        unsafe {
            match kind {
                abi::TableKind::CORE => free_box::<TracedTablePair<abi::CoreTable>>(wrapped_context),
                abi::TableKind::ASYNC => free_box::<TracedTablePair<abi::AsyncTable>>(wrapped_context),
                abi::TableKind::KERNEL => free_box::<TracedKernels>(wrapped_context),
                _ => {}
            }
        }
        let mut recorder = trace.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        if recorder.as_ref().is_some_and(|recorder| Arc::strong_count(recorder) == 1) {
            *recorder = None;
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
struct WrapRequest {
    context: *mut c_void,
    table: *mut c_void,
    recorder: Arc<TraceRecorder>,
    label: String,
}

impl WrapRequest {
    /// Wraps a table of functions. The wrapper is the first field of the pair, so it has the pair's address.
    ///
    /// # Safety
    ///
    /// The table is a `T`.
    unsafe fn wrap_function_table<T: Copy>(
        self,
        empty: T,
        before: fn(&T) -> T,
    ) -> (*mut c_void, *mut c_void) {
        // SAFETY: the caller guarantees the type; `copy_sized` handles a table of an older version.
        let next = unsafe { copy_sized(self.table.cast::<T>(), empty) };
        let wrapped =
            TracedTable { context: self.context, next, recorder: self.recorder, label: self.label.into() };
        let pair = Box::into_raw(Box::new(TracedTablePair { wrapped, table: before(&next) }));
        // SAFETY: the box was just leaked, so its fields have valid addresses.
        (pair.cast(), unsafe { (&raw mut (*pair).table).cast() })
    }

    /// Wraps each kernel of a kernel table.
    ///
    /// # Safety
    ///
    /// The table is a `KernelTable`.
    unsafe fn wrap_kernels(self) -> (*mut c_void, *mut c_void) {
        // SAFETY: the caller guarantees the type.
        let next = unsafe { copy_sized(self.table.cast::<abi::KernelTable>(), abi::KernelTable::EMPTY) };
        let (mut wrapped, mut records) = (Vec::new(), Vec::new());
        for index in 0..next.kernels_count as usize {
            // SAFETY: the table says how many kernels there are.
            let kernel = unsafe { copy_sized(*next.kernels.add(index), abi::Kernel::EMPTY) };
            // SAFETY: the name of a kernel lives as long as its plugin.
            let op = unsafe { kernel.op.text() }.unwrap_or("?");
            // The label goes into JSON unescaped, and vendors may use any characters in op names.
            let op: String = op.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect();
            let before = Box::new(TracedTable {
                context: kernel.context,
                next: kernel,
                recorder: Arc::clone(&self.recorder),
                label: format!("{} {op}", self.label).into(),
            });
            let context = (&raw const *before).cast_mut().cast();
            records.push(Box::new(abi::Kernel { context, ..generated::before_kernel(&kernel) }));
            wrapped.push(before);
        }
        let pointers: Vec<_> = records.iter().map(|record| &raw const **record).collect();
        let table = abi::KernelTable {
            size: size_of::<abi::KernelTable>() as u32,
            next: core::ptr::null(),
            kernels: pointers.as_ptr(),
            ..next
        };
        let kernels = TracedKernels { _wrapped: wrapped, _records: records, _pointers: pointers, table };
        let kernels = Box::into_raw(Box::new(kernels));
        // SAFETY: the box was just leaked, so its fields have valid addresses.
        (kernels.cast(), unsafe { (&raw mut (*kernels).table).cast() })
    }
}
