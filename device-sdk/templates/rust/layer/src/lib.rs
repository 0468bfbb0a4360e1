//! A layer: a plugin that stands between the host and other plugins. This one counts how often each kernel runs.
//!
//! It hands out a table of its own for the tables that it wraps, and passes on what it does not know (L-1). The tables of other
//! plugins are raw C, so most of this is unsafe.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use oarlock_sdk::{
    HostServices, LogLevel, Plugin, PluginError, Result, abi, copy_sized, guard_call, instance_from_context,
};

struct CountingLayer;

/// A kernel as the host sees it, the kernel below, and the count.
struct CountedKernel {
    record: abi::Kernel,
    next: abi::Kernel,
    runs: AtomicU64,
}

/// What the host holds until it calls `unwrap`. Nothing in it moves.
struct Wrapper {
    table: abi::KernelTable,
    kernels: Vec<Box<CountedKernel>>,
    records: Vec<*const abi::Kernel>,
}

/// Calls a slot of the kernel below with the context from there: the functions of a kernel get the context of the kernel, which
/// is ours. The host fills no slot that we left empty, and we leave those empty that are empty below.
macro_rules! pass {
    ($name:ident, $($argument:ident: $type:ty),*) => {
        unsafe extern "C" fn $name(context: *mut c_void, $($argument: $type),*) -> abi::Error {
            // SAFETY: the host hands back the context of our record, and the kernel below gets what the host passed.
            unsafe {
                let kernel = &*context.cast::<CountedKernel>();
                kernel.next.$name.map_or(abi::Error::NONE, |slot| slot(kernel.next.context, $($argument),*))
            }
        }
    };
}

pass!(supports, call: *const abi::Call);
pass!(infer, call: *const abi::Call);
pass!(workspace, call: *const abi::Call, size: *mut u64);
pass!(prepare, call: *const abi::Call, state: *mut *mut c_void);
pass!(run, state: *mut c_void, call: *const abi::Call);
pass!(release, state: *mut c_void);

/// Any thread may be here, several at once (K-4).
unsafe extern "C" fn count_run(
    context: *mut c_void,
    state: *mut c_void,
    call: *const abi::Call,
) -> abi::Error {
    // SAFETY: as in `pass!`.
    unsafe {
        (*context.cast::<CountedKernel>()).runs.fetch_add(1, Ordering::Relaxed);
        run(context, state, call)
    }
}

impl Wrapper {
    /// # Safety
    ///
    /// `table` is a table of kernels, which lives as long as the wrapper.
    unsafe fn new(table: *const abi::KernelTable) -> Box<Self> {
        // SAFETY: the caller vouches for the table, and the contract for what it points to.
        let below = unsafe { std::slice::from_raw_parts((*table).kernels, (*table).kernels_count as usize) };
        let mut wrapper =
            Box::new(Self { table: abi::KernelTable::EMPTY, kernels: Vec::new(), records: Vec::new() });
        for next in below {
            // A newer kernel has more fields than ours, which we cannot wrap and leave out.
            // SAFETY: as above.
            let next = unsafe { copy_sized(*next, abi::Kernel::EMPTY) };
            let mut kernel = Box::new(CountedKernel { record: next, next, runs: AtomicU64::new(0) });
            let (size, context) = (size_of::<abi::Kernel>() as u32, (&raw mut *kernel).cast());
            kernel.record = abi::Kernel {
                size,
                next: std::ptr::null(),
                context,
                supports: next.supports.map(|_| supports as _),
                infer: next.infer.map(|_| infer as _),
                workspace: next.workspace.map(|_| workspace as _),
                prepare: next.prepare.map(|_| prepare as _),
                run: next.run.map(|_| count_run as _),
                release: next.release.map(|_| release as _),
                ..next
            };
            wrapper.records.push(&raw const kernel.record);
            wrapper.kernels.push(kernel);
        }
        wrapper.table.kernels = wrapper.records.as_ptr();
        wrapper.table.kernels_count = wrapper.records.len() as u64;
        wrapper
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
    let (_, host) = unsafe { instance_from_context::<CountingLayer>(context) };
    guard_call(&host, || {
        if next_table.is_null() || wrapped_context.is_null() || wrapped_table.is_null() {
            return Err(PluginError::invalid_argument(
                "expected a table and places for the wrapper, found null",
            ));
        }
        let (mut to_context, mut to_table) = (next_context, next_table);
        if kind == abi::TableKind::KERNEL {
            // SAFETY: `kind` says which table it is.
            let wrapper = Box::into_raw(unsafe { Wrapper::new(next_table.cast()) });
            // SAFETY: it was just made.
            (to_context, to_table) = (wrapper.cast(), unsafe { (&raw mut (*wrapper).table).cast() });
        }
        // SAFETY: the host provides both places to be written.
        unsafe {
            wrapped_context.write(to_context);
            wrapped_table.write(to_table);
        }
        Ok(())
    })
}

/// A plugin prints nothing; what a layer logs as `info` reaches the user.
unsafe extern "C" fn unwrap(
    context: *mut c_void,
    _kind: abi::TableKind,
    wrapped_context: *mut c_void,
    _wrapped_table: *mut c_void,
) -> abi::Error {
    // SAFETY: the host hands back the context of this plugin, and a wrapper once.
    let ((_, host), wrapper) = unsafe {
        (instance_from_context::<CountingLayer>(context), Box::from_raw(wrapped_context.cast::<Wrapper>()))
    };
    guard_call(&host, || {
        for kernel in &wrapper.kernels {
            let runs = kernel.runs.load(Ordering::Relaxed);
            // SAFETY: the text lives as long as the plugin below.
            let op = unsafe { kernel.next.op.text() }.unwrap_or("?");
            if runs > 0 {
                host.log(LogLevel::INFO, &format!("runs of `{op}`: {runs}"));
            }
        }
        Ok(())
    })
}

const LAYER_TABLE: abi::LayerTable =
    abi::LayerTable { wrap: Some(wrap), unwrap: Some(unwrap), ..abi::LayerTable::EMPTY };

/// A host may call this at any time and more than once (E-3).
fn plugin(_: &HostServices) -> Result<Plugin<CountingLayer>> {
    let plugin = Plugin::for_layer("sample-npu", env!("CARGO_PKG_VERSION"), CountingLayer, LAYER_TABLE);
    Ok(plugin.with_vendor("Sample Vendor").with_package("oarlock-sample-npu"))
}

oarlock_sdk::export!(plugin);
