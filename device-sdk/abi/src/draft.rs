// Generated from `device-sdk/contract/oarlock.contract` by `cargo xtask generate`. Do not edit.

//! Profiles that are not locked yet. **What is here may change or go with any version.**
//!
//! A plugin names a draft by its profile and its number ([`DraftProfile`]), and a host that has another number passes it over.

#![expect(clippy::type_complexity, reason = "the contract says what a function takes")]

use core::ffi::c_void;
use core::mem::{align_of, offset_of, size_of};

use crate::generated::*;

/// The profiles that are drafts: the name, the number of the draft, and whether the host and the SDK have code for it.
pub const PROFILES: &[(&str, u32, bool)] =
    &[("graph", 1, false), ("collective", 1, false), ("profile", 1, false), ("interop", 1, false)];

/// A compiled graph.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Executable(pub u64);

/// Receives bytes from a plugin. Returns an error to stop the plugin.
pub type ByteSink = unsafe extern "C" fn(user: *mut c_void, data: *const u8, size: u64) -> Error;

/// Compiles graphs and runs each as a whole.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Which nodes the device can run: 1 or 0 for each.
    pub graph_supports: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            graph: *const Graph,
            taken: *mut u8,
            taken_capacity: u64,
            taken_count: *mut u64,
        ) -> Error,
    >,
    /// Compiles a graph. This may take long.
    pub graph_compile: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            graph: *const Graph,
            options: *const *const Attribute,
            options_count: u64,
            program: *mut Executable,
        ) -> Error,
    >,
    /// Runs a compiled graph in the call's stream, with the call's inputs, outputs and scratch memory.
    pub graph_run:
        Option<unsafe extern "C" fn(context: *mut c_void, program: Executable, call: *const Call) -> Error>,
    /// The size of the scratch memory that a run needs, in bytes.
    pub graph_workspace:
        Option<unsafe extern "C" fn(context: *mut c_void, program: Executable, size: *mut u64) -> Error>,
    /// Frees a compiled graph.
    pub graph_destroy: Option<unsafe extern "C" fn(context: *mut c_void, program: Executable) -> Error>,
    /// Serializes a compiled graph, so that a later process can load it.
    pub graph_save: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            program: Executable,
            sink: Option<ByteSink>,
            user: *mut c_void,
        ) -> Error,
    >,
    /// Whether saved bytes can be loaded on this device: 1 or 0.
    pub graph_compatible: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            saved: *const c_void,
            saved_size: u64,
            usable: *mut u32,
        ) -> Error,
    >,
    /// Loads a graph that `graph_save` wrote.
    pub graph_load: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            saved: *const c_void,
            saved_size: u64,
            program: *mut Executable,
        ) -> Error,
    >,
}

impl GraphTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 88;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        graph_supports: None,
        graph_compile: None,
        graph_run: None,
        graph_workspace: None,
        graph_destroy: None,
        graph_save: None,
        graph_compatible: None,
        graph_load: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("graph_supports", true),
        ("graph_compile", true),
        ("graph_run", true),
        ("graph_workspace", false),
        ("graph_destroy", true),
        ("graph_save", false),
        ("graph_compatible", false),
        ("graph_load", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "graph_supports" => self.graph_supports = None,
            "graph_compile" => self.graph_compile = None,
            "graph_run" => self.graph_run = None,
            "graph_workspace" => self.graph_workspace = None,
            "graph_destroy" => self.graph_destroy = None,
            "graph_save" => self.graph_save = None,
            "graph_compatible" => self.graph_compatible = None,
            "graph_load" => self.graph_load = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for GraphTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for GraphTable {}

/// The membership of one device in a group of devices that exchange data.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Communicator(pub u64);

/// How the values of several devices are combined.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reduction(pub u32);
impl Reduction {
    /// The constant `sum`.
    pub const SUM: Self = Self(1);
    /// The constant `product`.
    pub const PRODUCT: Self = Self(2);
    /// The constant `minimum`.
    pub const MINIMUM: Self = Self(3);
    /// The constant `maximum`.
    pub const MAXIMUM: Self = Self(4);
    /// The constant `average`.
    pub const AVERAGE: Self = Self(5);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::SUM => Some("sum"),
            Self::PRODUCT => Some("product"),
            Self::MINIMUM => Some("minimum"),
            Self::MAXIMUM => Some("maximum"),
            Self::AVERAGE => Some("average"),
            _ => None,
        }
    }
}

/// Exchange of data within a group of devices. The host passes the unique id from the first rank to the others. Calls on the
/// same communicator are not concurrent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CollectiveTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// The size of a unique id in bytes.
    pub unique_id_size: Option<unsafe extern "C" fn(context: *mut c_void, size: *mut u64) -> Error>,
    /// Creates the unique id of a new group.
    pub unique_id: Option<unsafe extern "C" fn(context: *mut c_void, id: *mut c_void, id_size: u64) -> Error>,
    /// Joins a group. Returns when all ranks have joined.
    pub communicator_create: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            id: *const c_void,
            id_size: u64,
            rank: u32,
            ranks: u32,
            member: *mut Communicator,
        ) -> Error,
    >,
    /// Leaves a group.
    pub communicator_destroy:
        Option<unsafe extern "C" fn(context: *mut c_void, member: Communicator) -> Error>,
    /// Every rank receives the reduction over all ranks.
    pub all_reduce: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            send: Memory,
            send_offset: u64,
            receive: Memory,
            receive_offset: u64,
            count: u64,
            dtype: Dtype,
            how: Reduction,
        ) -> Error,
    >,
    /// Every rank receives the root's data.
    pub broadcast: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            block: Memory,
            offset: u64,
            count: u64,
            dtype: Dtype,
            root: u32,
        ) -> Error,
    >,
    /// The root receives the reduction over all ranks.
    pub reduce: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            send: Memory,
            send_offset: u64,
            receive: Memory,
            receive_offset: u64,
            count: u64,
            dtype: Dtype,
            how: Reduction,
            root: u32,
        ) -> Error,
    >,
    /// Every rank receives the data of all ranks, concatenated.
    pub all_gather: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            send: Memory,
            send_offset: u64,
            receive: Memory,
            receive_offset: u64,
            count: u64,
            dtype: Dtype,
        ) -> Error,
    >,
    /// Every rank receives its part of the reduction.
    pub reduce_scatter: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            send: Memory,
            send_offset: u64,
            receive: Memory,
            receive_offset: u64,
            count: u64,
            dtype: Dtype,
            how: Reduction,
        ) -> Error,
    >,
    /// Starts a group of calls that are issued together.
    pub group_start: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Ends the group and issues it.
    pub group_end: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Sends to one rank.
    pub send: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            block: Memory,
            offset: u64,
            count: u64,
            dtype: Dtype,
            to: u32,
        ) -> Error,
    >,
    /// Receives from one rank.
    pub receive: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            block: Memory,
            offset: u64,
            count: u64,
            dtype: Dtype,
            from: u32,
        ) -> Error,
    >,
    /// Every rank sends one part to each other rank.
    pub all_to_all: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            member: Communicator,
            queue: Stream,
            send: Memory,
            send_offset: u64,
            receive: Memory,
            receive_offset: u64,
            count: u64,
            dtype: Dtype,
        ) -> Error,
    >,
}

impl CollectiveTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 136;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        unique_id_size: None,
        unique_id: None,
        communicator_create: None,
        communicator_destroy: None,
        all_reduce: None,
        broadcast: None,
        reduce: None,
        all_gather: None,
        reduce_scatter: None,
        group_start: None,
        group_end: None,
        send: None,
        receive: None,
        all_to_all: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("unique_id_size", true),
        ("unique_id", true),
        ("communicator_create", true),
        ("communicator_destroy", true),
        ("all_reduce", true),
        ("broadcast", true),
        ("reduce", true),
        ("all_gather", true),
        ("reduce_scatter", true),
        ("group_start", true),
        ("group_end", true),
        ("send", true),
        ("receive", true),
        ("all_to_all", true),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "unique_id_size" => self.unique_id_size = None,
            "unique_id" => self.unique_id = None,
            "communicator_create" => self.communicator_create = None,
            "communicator_destroy" => self.communicator_destroy = None,
            "all_reduce" => self.all_reduce = None,
            "broadcast" => self.broadcast = None,
            "reduce" => self.reduce = None,
            "all_gather" => self.all_gather = None,
            "reduce_scatter" => self.reduce_scatter = None,
            "group_start" => self.group_start = None,
            "group_end" => self.group_end = None,
            "send" => self.send = None,
            "receive" => self.receive = None,
            "all_to_all" => self.all_to_all = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for CollectiveTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for CollectiveTable {}

/// The kind of work that a record describes.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActivityKind(pub u32);
impl ActivityKind {
    /// The constant `kernel`.
    pub const KERNEL: Self = Self(1);
    /// The constant `copy`.
    pub const COPY: Self = Self(2);
    /// The constant `fill`.
    pub const FILL: Self = Self(3);
    /// The constant `synchronize`.
    pub const SYNCHRONIZE: Self = Self(4);
    /// The constant `marker`.
    pub const MARKER: Self = Self(5);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::KERNEL => Some("kernel"),
            Self::COPY => Some("copy"),
            Self::FILL => Some("fill"),
            Self::SYNCHRONIZE => Some("synchronize"),
            Self::MARKER => Some("marker"),
            _ => None,
        }
    }
}

/// One piece of work that a device did.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The kind of this.
    pub kind: ActivityKind,
    /// The device of this.
    pub device: u32,
    /// The queue of this.
    pub queue: Stream,
    /// The number that the host assigned to the call that caused the work, or 0.
    pub correlation: u64,
    /// Start and end on the device's clock, in nanoseconds.
    pub start: u64,
    /// The end of this.
    pub end: u64,
    /// The bytes of this.
    pub bytes: u64,
    /// The name of this.
    pub name: Str,
}

impl Activity {
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 80;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        kind: ActivityKind(0),
        device: 0,
        queue: Stream(0),
        correlation: 0,
        start: 0,
        end: 0,
        bytes: 0,
        name: Str::EMPTY,
    };
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for Activity {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Activity {}

/// Receives one record. The record is valid during the call.
pub type ActivitySink = unsafe extern "C" fn(user: *mut c_void, record: *const Activity);

/// Recording of device activity.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ProfileTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// Initializes the profiler.
    pub profiler_initialize: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Shuts the profiler down.
    pub profiler_finalize: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Prepares a recording, so that starting it is quick.
    pub profiler_prepare: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Starts recording.
    pub profiler_start: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Stops recording.
    pub profiler_stop: Option<unsafe extern "C" fn(context: *mut c_void) -> Error>,
    /// Passes all records since the last start to `sink`.
    pub profiler_collect: Option<
        unsafe extern "C" fn(context: *mut c_void, sink: Option<ActivitySink>, user: *mut c_void) -> Error,
    >,
    /// The same moment on the device's clock and on the host's monotonic clock, in nanoseconds.
    pub profiler_clock: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            device_time: *mut u64,
            host_time: *mut u64,
        ) -> Error,
    >,
}

impl ProfileTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 80;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        profiler_initialize: None,
        profiler_finalize: None,
        profiler_prepare: None,
        profiler_start: None,
        profiler_stop: None,
        profiler_collect: None,
        profiler_clock: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("profiler_initialize", true),
        ("profiler_finalize", true),
        ("profiler_prepare", true),
        ("profiler_start", true),
        ("profiler_stop", true),
        ("profiler_collect", true),
        ("profiler_clock", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "profiler_initialize" => self.profiler_initialize = None,
            "profiler_finalize" => self.profiler_finalize = None,
            "profiler_prepare" => self.profiler_prepare = None,
            "profiler_start" => self.profiler_start = None,
            "profiler_stop" => self.profiler_stop = None,
            "profiler_collect" => self.profiler_collect = None,
            "profiler_clock" => self.profiler_clock = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for ProfileTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for ProfileTable {}

/// The kind of a native handle.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NativeKind(pub u32);
impl NativeKind {
    /// An address, such as a CUDA or HIP device pointer.
    pub const ADDRESS: Self = Self(1);
    /// A `cl_mem`.
    pub const OPENCL_MEMORY: Self = Self(2);
    /// A file descriptor of a DMA buffer.
    pub const DMA_BUFFER: Self = Self(3);

    /// The name in the contract, or `None` for a number this version does not know.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::ADDRESS => Some("address"),
            Self::OPENCL_MEMORY => Some("opencl_memory"),
            Self::DMA_BUFFER => Some("dma_buffer"),
            _ => None,
        }
    }
}

/// Exchange of memory and streams with other libraries and processes, without copies.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct InteropTable {
    /// The size of the struct in bytes, in the version that its author knows.
    pub size: u32,
    /// How to treat what is not known.
    pub flags: HeaderFlags,
    /// The first of a chain of extensions, or null.
    pub next: *const Extension,
    /// The features that the author of the table knew, as bits.
    pub features: u64,
    /// The device type and id of the device in DLPack.
    pub dlpack_device: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            device_type: *mut i32,
            device_id: *mut i32,
        ) -> Error,
    >,
    /// The native handle of a block. The plugin keeps ownership.
    pub memory_export: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            block: Memory,
            kind: NativeKind,
            native: *mut u64,
        ) -> Error,
    >,
    /// Creates a block from memory that another library owns and keeps valid until `memory_forget`.
    pub memory_import: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            kind: NativeKind,
            native: u64,
            size: u64,
            block: *mut Memory,
        ) -> Error,
    >,
    /// Ends the use of an imported block, without freeing its memory.
    pub memory_forget:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, block: Memory) -> Error>,
    /// The native handle of a stream, such as a `CUstream`.
    pub stream_export: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, queue: Stream, native: *mut u64) -> Error,
    >,
    /// Creates a stream from a native handle. Destroying the stream leaves the native stream alive.
    pub stream_import: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, native: u64, queue: *mut Stream) -> Error,
    >,
    /// The size in bytes of a token for another process.
    pub ipc_token_size: Option<unsafe extern "C" fn(context: *mut c_void, size: *mut u64) -> Error>,
    /// Creates a token with which another process can open a block.
    pub ipc_export: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            block: Memory,
            token: *mut c_void,
            token_size: u64,
        ) -> Error,
    >,
    /// Opens a block of another process.
    pub ipc_import: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            token: *const c_void,
            token_size: u64,
            block: *mut Memory,
            size: *mut u64,
        ) -> Error,
    >,
    /// Ends the use of a block of another process.
    pub ipc_close: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, block: Memory) -> Error>,
}

impl InteropTable {
    /// What these bindings understand: one bit for each minor version.
    pub const FEATURES: u64 = 1 << 0 | 1 << 1 | 1 << 2;
    /// The size in the first version of the contract: no one may send less.
    pub const SIZE_AT_FIRST: u32 = 104;
    /// Nothing filled in but the size.
    pub const EMPTY: Self = Self {
        size: size_of::<Self>() as u32,
        flags: HeaderFlags(0),
        next: core::ptr::null(),
        features: Self::FEATURES,
        dlpack_device: None,
        memory_export: None,
        memory_import: None,
        memory_forget: None,
        stream_export: None,
        stream_import: None,
        ipc_token_size: None,
        ipc_export: None,
        ipc_import: None,
        ipc_close: None,
    };
    /// The name of each slot and whether it must be filled.
    pub const SLOTS: &[(&str, bool)] = &[
        ("dlpack_device", true),
        ("memory_export", true),
        ("memory_import", true),
        ("memory_forget", true),
        ("stream_export", false),
        ("stream_import", false),
        ("ipc_token_size", false),
        ("ipc_export", false),
        ("ipc_import", false),
        ("ipc_close", false),
    ];

    /// Empties a slot; whether there is one of that name.
    pub fn clear_slot(&mut self, name: &str) -> bool {
        match name {
            "dlpack_device" => self.dlpack_device = None,
            "memory_export" => self.memory_export = None,
            "memory_import" => self.memory_import = None,
            "memory_forget" => self.memory_forget = None,
            "stream_export" => self.stream_export = None,
            "stream_import" => self.stream_import = None,
            "ipc_token_size" => self.ipc_token_size = None,
            "ipc_export" => self.ipc_export = None,
            "ipc_import" => self.ipc_import = None,
            "ipc_close" => self.ipc_close = None,
            _ => return false,
        }
        true
    }
}

// SAFETY: the struct is plain data; whoever follows one of its pointers argues why it may.
unsafe impl Send for InteropTable {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for InteropTable {}

// The compiler agrees with the contract on every size, alignment and offset.
const _: () = {
    assert!(size_of::<GraphTable>() == 88);
    assert!(align_of::<GraphTable>() == 8);
    assert!(offset_of!(GraphTable, size) == 0);
    assert!(offset_of!(GraphTable, flags) == 4);
    assert!(offset_of!(GraphTable, next) == 8);
    assert!(offset_of!(GraphTable, features) == 16);
    assert!(offset_of!(GraphTable, graph_supports) == 24);
    assert!(offset_of!(GraphTable, graph_compile) == 32);
    assert!(offset_of!(GraphTable, graph_run) == 40);
    assert!(offset_of!(GraphTable, graph_workspace) == 48);
    assert!(offset_of!(GraphTable, graph_destroy) == 56);
    assert!(offset_of!(GraphTable, graph_save) == 64);
    assert!(offset_of!(GraphTable, graph_compatible) == 72);
    assert!(offset_of!(GraphTable, graph_load) == 80);
    assert!(size_of::<CollectiveTable>() == 136);
    assert!(align_of::<CollectiveTable>() == 8);
    assert!(offset_of!(CollectiveTable, size) == 0);
    assert!(offset_of!(CollectiveTable, flags) == 4);
    assert!(offset_of!(CollectiveTable, next) == 8);
    assert!(offset_of!(CollectiveTable, features) == 16);
    assert!(offset_of!(CollectiveTable, unique_id_size) == 24);
    assert!(offset_of!(CollectiveTable, unique_id) == 32);
    assert!(offset_of!(CollectiveTable, communicator_create) == 40);
    assert!(offset_of!(CollectiveTable, communicator_destroy) == 48);
    assert!(offset_of!(CollectiveTable, all_reduce) == 56);
    assert!(offset_of!(CollectiveTable, broadcast) == 64);
    assert!(offset_of!(CollectiveTable, reduce) == 72);
    assert!(offset_of!(CollectiveTable, all_gather) == 80);
    assert!(offset_of!(CollectiveTable, reduce_scatter) == 88);
    assert!(offset_of!(CollectiveTable, group_start) == 96);
    assert!(offset_of!(CollectiveTable, group_end) == 104);
    assert!(offset_of!(CollectiveTable, send) == 112);
    assert!(offset_of!(CollectiveTable, receive) == 120);
    assert!(offset_of!(CollectiveTable, all_to_all) == 128);
    assert!(size_of::<Activity>() == 80);
    assert!(align_of::<Activity>() == 8);
    assert!(offset_of!(Activity, size) == 0);
    assert!(offset_of!(Activity, flags) == 4);
    assert!(offset_of!(Activity, next) == 8);
    assert!(offset_of!(Activity, kind) == 16);
    assert!(offset_of!(Activity, device) == 20);
    assert!(offset_of!(Activity, queue) == 24);
    assert!(offset_of!(Activity, correlation) == 32);
    assert!(offset_of!(Activity, start) == 40);
    assert!(offset_of!(Activity, end) == 48);
    assert!(offset_of!(Activity, bytes) == 56);
    assert!(offset_of!(Activity, name) == 64);
    assert!(size_of::<ProfileTable>() == 80);
    assert!(align_of::<ProfileTable>() == 8);
    assert!(offset_of!(ProfileTable, size) == 0);
    assert!(offset_of!(ProfileTable, flags) == 4);
    assert!(offset_of!(ProfileTable, next) == 8);
    assert!(offset_of!(ProfileTable, features) == 16);
    assert!(offset_of!(ProfileTable, profiler_initialize) == 24);
    assert!(offset_of!(ProfileTable, profiler_finalize) == 32);
    assert!(offset_of!(ProfileTable, profiler_prepare) == 40);
    assert!(offset_of!(ProfileTable, profiler_start) == 48);
    assert!(offset_of!(ProfileTable, profiler_stop) == 56);
    assert!(offset_of!(ProfileTable, profiler_collect) == 64);
    assert!(offset_of!(ProfileTable, profiler_clock) == 72);
    assert!(size_of::<InteropTable>() == 104);
    assert!(align_of::<InteropTable>() == 8);
    assert!(offset_of!(InteropTable, size) == 0);
    assert!(offset_of!(InteropTable, flags) == 4);
    assert!(offset_of!(InteropTable, next) == 8);
    assert!(offset_of!(InteropTable, features) == 16);
    assert!(offset_of!(InteropTable, dlpack_device) == 24);
    assert!(offset_of!(InteropTable, memory_export) == 32);
    assert!(offset_of!(InteropTable, memory_import) == 40);
    assert!(offset_of!(InteropTable, memory_forget) == 48);
    assert!(offset_of!(InteropTable, stream_export) == 56);
    assert!(offset_of!(InteropTable, stream_import) == 64);
    assert!(offset_of!(InteropTable, ipc_token_size) == 72);
    assert!(offset_of!(InteropTable, ipc_export) == 80);
    assert!(offset_of!(InteropTable, ipc_import) == 88);
    assert!(offset_of!(InteropTable, ipc_close) == 96);
};
