//! The functions of a custom device that the adapter calls, with their types and whether a custom device must have them.

#![expect(unsafe_code, reason = "addresses in a table become functions")]

use core::ffi::{c_int, c_uchar, c_void};

use crate::status_report::StatusNumber;
use crate::table_layout::TableLayout;

/// A device, as the functions take it: the address of its number.
pub(crate) type DeviceAddress = *mut c_int;
/// A stream of the custom device; any address, null included.
pub(crate) type StreamAddress = *mut c_void;
/// An event of the custom device; any address, null included.
pub(crate) type EventAddress = *mut c_void;
/// What a custom device calls when a stream reaches a point. It expects a status to be written.
pub(crate) type ReachedFunction =
    unsafe extern "C" fn(DeviceAddress, StreamAddress, *mut c_void, *mut StatusNumber);

type SizeQuery = unsafe extern "C" fn(DeviceAddress, *mut usize) -> StatusNumber;
type DeviceAction = unsafe extern "C" fn(DeviceAddress) -> StatusNumber;
type StreamAction = unsafe extern "C" fn(DeviceAddress, StreamAddress) -> StatusNumber;
type EventAction = unsafe extern "C" fn(DeviceAddress, EventAddress) -> StatusNumber;
type Allocation = unsafe extern "C" fn(DeviceAddress, *mut *mut c_void, usize) -> StatusNumber;
type Deallocation = unsafe extern "C" fn(DeviceAddress, *mut c_void, usize) -> StatusNumber;
type Copy = unsafe extern "C" fn(DeviceAddress, *mut c_void, *const c_void, usize) -> StatusNumber;
type AsyncCopy =
    unsafe extern "C" fn(DeviceAddress, StreamAddress, *mut c_void, *const c_void, usize) -> StatusNumber;

/// A function for a compute capability or a version, whose arguments depend on the release.
#[derive(Clone, Copy)]
pub(crate) enum VersionFunction {
    OfDevice(SizeQuery),
    OfAll(unsafe extern "C" fn(*mut usize) -> StatusNumber),
}

macro_rules! foreign_functions {
    (required { $($needed:ident: $needed_type:ty,)* } optional { $($extra:ident: $extra_type:ty,)* }) => {
        /// The functions of one custom device.
        pub(crate) struct ForeignFunctions {
            $(pub(crate) $needed: $needed_type,)*
            $(pub(crate) $extra: Option<$extra_type>,)*
            pub(crate) get_compute_capability: Option<VersionFunction>,
            pub(crate) get_runtime_version: Option<VersionFunction>,
            pub(crate) get_driver_version: Option<VersionFunction>,
        }

        impl ForeignFunctions {
            /// Reads the functions from a table; the names of those that are missing if it cannot do without them.
            ///
            /// # Safety
            ///
            /// A custom device filled the table, by this layout, with its functions or zeros.
            pub(crate) unsafe fn read_table(
                layout: &TableLayout,
                table: &[usize],
            ) -> Result<Self, Vec<&'static str>> {
                let address = |name: &str| layout.word_of(name).map_or(0, |word| table[word]);
                let missing: Vec<&'static str> =
                    [$(stringify!($needed)),*].into_iter().filter(|name| address(name) == 0).collect();
                if !missing.is_empty() {
                    return Err(missing);
                }
                let version = |name: &str| match (address(name), layout.versions_take_device) {
                    (0, _) => None,
                    // SAFETY: the caller vouches for the function, and the layout says which arguments it takes.
                    (at, true) => Some(VersionFunction::OfDevice(unsafe { function_at(at) })),
                    // SAFETY: as above.
                    (at, false) => Some(VersionFunction::OfAll(unsafe { function_at(at) })),
                };
                Ok(Self {
                    // SAFETY: the address is not 0, and the caller vouches for the function.
                    $($needed: unsafe { function_at::<$needed_type>(address(stringify!($needed))) },)*
                    $($extra: match address(stringify!($extra)) {
                        0 => None,
                        // SAFETY: as above.
                        at => Some(unsafe { function_at::<$extra_type>(at) }),
                    },)*
                    get_compute_capability: version("get_compute_capability"),
                    get_runtime_version: version("get_runtime_version"),
                    get_driver_version: version("get_driver_version"),
                })
            }
        }
    };
}

foreign_functions! {
    required {
        set_device: DeviceAction,
        get_device: DeviceAction,
        create_stream: unsafe extern "C" fn(DeviceAddress, *mut StreamAddress) -> StatusNumber,
        destroy_stream: StreamAction,
        create_event: unsafe extern "C" fn(DeviceAddress, *mut EventAddress) -> StatusNumber,
        record_event: unsafe extern "C" fn(DeviceAddress, StreamAddress, EventAddress) -> StatusNumber,
        destroy_event: EventAction,
        synchronize_device: DeviceAction,
        synchronize_stream: StreamAction,
        synchronize_event: EventAction,
        stream_wait_event: unsafe extern "C" fn(DeviceAddress, StreamAddress, EventAddress) -> StatusNumber,
        device_memory_allocate: Allocation,
        device_memory_deallocate: Deallocation,
        memory_copy_h2d: Copy,
        memory_copy_d2h: Copy,
        memory_copy_d2d: Copy,
        get_device_count: unsafe extern "C" fn(*mut usize) -> StatusNumber,
        get_device_list: unsafe extern "C" fn(*mut usize) -> StatusNumber,
        device_memory_stats: unsafe extern "C" fn(DeviceAddress, *mut usize, *mut usize) -> StatusNumber,
        device_min_chunk_size: SizeQuery,
    }
    optional {
        initialize: unsafe extern "C" fn() -> StatusNumber,
        finalize: unsafe extern "C" fn() -> StatusNumber,
        init_device: DeviceAction,
        deinit_device: DeviceAction,
        query_stream: StreamAction,
        stream_add_callback:
            unsafe extern "C" fn(DeviceAddress, StreamAddress, ReachedFunction, *mut c_void) -> StatusNumber,
        query_event: EventAction,
        device_memory_set: unsafe extern "C" fn(DeviceAddress, *mut c_void, c_uchar, usize) -> StatusNumber,
        host_memory_allocate: Allocation,
        host_memory_deallocate: Deallocation,
        memory_copy_p2p:
            unsafe extern "C" fn(DeviceAddress, DeviceAddress, *mut c_void, *const c_void, usize) -> StatusNumber,
        async_memory_copy_h2d: AsyncCopy,
        async_memory_copy_d2h: AsyncCopy,
        async_memory_copy_d2d: AsyncCopy,
        async_memory_copy_p2p: unsafe extern "C" fn(
            DeviceAddress,
            DeviceAddress,
            StreamAddress,
            *mut c_void,
            *const c_void,
            usize,
        ) -> StatusNumber,
        device_max_chunk_size: SizeQuery,
        device_max_alloc_size: SizeQuery,
        device_extra_padding_size: SizeQuery,
        device_init_alloc_size: SizeQuery,
        device_realloc_size: SizeQuery,
    }
}

/// # Safety
///
/// `F` is a function pointer, and a function of this type is at the address.
unsafe fn function_at<F: core::marker::Copy>(address: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let address = address as *const c_void;
    // SAFETY: the caller vouches for the type; an address and a function pointer have the same size.
    unsafe { core::mem::transmute_copy(&address) }
}
