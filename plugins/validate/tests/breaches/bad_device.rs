//! A device and kernels that keep the rules, except for the one mistake that a test asks for.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use oarlock_sdk::abi;

use crate::test_host::TestHost;

/// What the plugin does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceMistake {
    None,
    LeavesOutParameter,
    WritesOutParameterAndFails,
    InventsError,
    ReturnsZeroHandle,
    ReturnsSameHandle,
    ChangesFloatMode,
    ForgetsLoss,
    ReturnsEmptyMessage,
    CallsBackTwice,
    CallsBackAtOnce,
    NeverCallsBack,
    WritesPastList,
    WritesPastOutput,
    WritesBeforeOutput,
    ChangesInput,
    ChangesDescription,
}

pub(crate) struct BadDevice {
    pub(crate) mistake: DeviceMistake,
    pub(crate) host: *const TestHost,
    pub(crate) bits: abi::DeviceFlags,
    handles: AtomicU64,
    blocks: Mutex<Vec<Box<[u64]>>>,
    /// Two threads meet in `stream_wait_event`, if a test wants it.
    pub(crate) meeting: Option<Barrier>,
    pub(crate) is_lost: Mutex<bool>,
}

// SAFETY: the host outlives the device and may be used on any thread.
unsafe impl Send for BadDevice {}
// SAFETY: as above.
unsafe impl Sync for BadDevice {}

impl BadDevice {
    pub(crate) fn new(mistake: DeviceMistake, host: *const TestHost, bits: abi::DeviceFlags) -> Self {
        Self {
            mistake,
            host,
            bits,
            handles: AtomicU64::new(1),
            blocks: Mutex::default(),
            meeting: None,
            is_lost: Mutex::new(false),
        }
    }

    fn next_handle(&self) -> u64 {
        match self.mistake {
            DeviceMistake::ReturnsZeroHandle => 0,
            DeviceMistake::ReturnsSameHandle => 0x40,
            _ => self.handles.fetch_add(1, Ordering::Relaxed) * 0x10,
        }
    }

    fn fail(&self, message: &str) -> abi::Error {
        // SAFETY: the host outlives the device.
        unsafe { &*self.host }.make_error(abi::ErrorFlags(0), message)
    }
}

/// # Safety
///
/// `context` is that of a device.
unsafe fn device<'a>(context: *mut c_void) -> &'a BadDevice {
    // SAFETY: the caller vouches for the context.
    unsafe { &*context.cast::<BadDevice>() }
}

unsafe extern "C" fn succeed(_: *mut c_void) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn on_device(context: *mut c_void, _: u32) -> abi::Error {
    // SAFETY: the host passes the context of the device.
    let device = unsafe { device(context) };
    let is_lost = std::mem::replace(&mut *device.is_lost.lock().expect("no panic"), false);
    if is_lost {
        // SAFETY: the host outlives the device.
        return unsafe { &*device.host }.make_error(abi::ErrorFlags::DEVICE_LOST, "the device is gone");
    }
    match device.mistake {
        DeviceMistake::InventsError => abi::Error(0xDEAD),
        DeviceMistake::ReturnsEmptyMessage => device.fail(""),
        DeviceMistake::ChangesFloatMode => {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: flushing subnormal numbers to zero is a mode of every such processor.
            unsafe {
                let mode = 0x9FC0u32;
                core::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode);
            }
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above.
            unsafe {
                core::arch::asm!("msr fpcr, {}", in(reg) 1u64 << 24);
            }
            abi::Error::NONE
        }
        _ => abi::Error::NONE,
    }
}

unsafe extern "C" fn device_count(context: *mut c_void, count: *mut u32) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a place for the number.
    unsafe {
        let device = device(context);
        match device.mistake {
            DeviceMistake::LeavesOutParameter => abi::Error::NONE,
            DeviceMistake::WritesOutParameterAndFails => {
                *count = 2;
                device.fail("expected a driver, found none")
            }
            _ => {
                *count = 2;
                abi::Error::NONE
            }
        }
    }
}

unsafe extern "C" fn device_list(
    context: *mut c_void,
    ids: *mut u32,
    capacity: u64,
    count: *mut u64,
) -> abi::Error {
    // SAFETY: the host passes the context of the device, and room for so many ids. The mistake writes one more, for which tests
    // have room.
    unsafe {
        let more = u64::from(device(context).mistake == DeviceMistake::WritesPastList);
        (0..2.min(capacity) + more).for_each(|index| *ids.add(index as usize) = index as u32);
        *count = 2;
    }
    abi::Error::NONE
}

unsafe extern "C" fn device_info(context: *mut c_void, _: u32, info: *mut abi::DeviceInfo) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a struct to fill.
    unsafe { (*info).bits = device(context).bits };
    abi::Error::NONE
}

unsafe extern "C" fn allocate(
    context: *mut c_void,
    _: u32,
    size: u64,
    block: *mut abi::Memory,
) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a place for the handle.
    let device = unsafe { device(context) };
    let handle = if device.bits.contains(abi::DeviceFlags::HOST_ADDRESSABLE) {
        let mut memory = vec![0u64; (size as usize).div_ceil(8).max(1)].into_boxed_slice();
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        device.blocks.lock().expect("no panic").push(memory);
        address
    } else {
        device.next_handle()
    };
    // SAFETY: as above.
    unsafe { *block = abi::Memory(handle) };
    abi::Error::NONE
}

unsafe extern "C" fn deallocate(_: *mut c_void, _: u32, _: abi::Memory, _: u64) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn allocate_host(
    context: *mut c_void,
    _: u32,
    _: u64,
    address: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a place for the address.
    unsafe { *address = std::ptr::without_provenance_mut(device(context).next_handle() as usize + 0x10000) };
    abi::Error::NONE
}

unsafe extern "C" fn deallocate_host(_: *mut c_void, _: u32, _: *mut c_void, _: u64) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn copy_h2d(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: *const c_void,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn copy_d2h(
    _: *mut c_void,
    _: u32,
    _: *mut c_void,
    _: u64,
    _: abi::Memory,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn copy_d2d(
    _: *mut c_void,
    _: u32,
    _: abi::Memory,
    _: u64,
    _: abi::Memory,
    _: u64,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn set(_: *mut c_void, _: u32, _: abi::Memory, _: u64, _: u8, _: u64) -> abi::Error {
    abi::Error::NONE
}

pub(crate) const CORE_TABLE: abi::CoreTable = abi::CoreTable {
    initialize: Some(succeed),
    finalize: Some(succeed),
    device_init: Some(on_device),
    device_deinit: Some(on_device),
    device_synchronize: Some(on_device),
    device_count: Some(device_count),
    device_list: Some(device_list),
    device_info: Some(device_info),
    memory_allocate: Some(allocate),
    memory_deallocate: Some(deallocate),
    host_memory_allocate: Some(allocate_host),
    host_memory_deallocate: Some(deallocate_host),
    memory_copy_h2d: Some(copy_h2d),
    memory_copy_d2h: Some(copy_d2h),
    memory_copy_d2d: Some(copy_d2d),
    memory_set: Some(set),
    ..abi::CoreTable::EMPTY
};

unsafe extern "C" fn create_stream(
    context: *mut c_void,
    _: u32,
    _: i32,
    queue: *mut abi::Stream,
) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a place for the handle.
    unsafe { *queue = abi::Stream(device(context).next_handle()) };
    abi::Error::NONE
}

unsafe extern "C" fn on_stream(_: *mut c_void, _: u32, _: abi::Stream) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn query_stream(_: *mut c_void, _: u32, _: abi::Stream, done: *mut u32) -> abi::Error {
    // SAFETY: the host passes a place for the answer.
    unsafe { *done = 1 };
    abi::Error::NONE
}

unsafe extern "C" fn create_event(context: *mut c_void, _: u32, point: *mut abi::Event) -> abi::Error {
    // SAFETY: the host passes the context of the device, and a place for the handle.
    unsafe { *point = abi::Event(device(context).next_handle()) };
    abi::Error::NONE
}

unsafe extern "C" fn on_event(_: *mut c_void, _: u32, _: abi::Event) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn on_both(context: *mut c_void, _: u32, _: abi::Stream, _: abi::Event) -> abi::Error {
    // SAFETY: the host passes the context of the device.
    if let Some(meeting) = unsafe { &device(context).meeting } {
        meeting.wait();
        meeting.wait();
    }
    abi::Error::NONE
}

unsafe extern "C" fn add_callback(
    context: *mut c_void,
    number: u32,
    queue: abi::Stream,
    reached: Option<abi::StreamReached>,
    user: *mut c_void,
) -> abi::Error {
    // SAFETY: the host passes the context of the device.
    let mistake = unsafe { device(context) }.mistake;
    let reached = reached.expect("a function");
    let user = user.expose_provenance();
    // SAFETY: the host passes a function that takes its pointer.
    let call = move || unsafe {
        reached(number, queue, std::ptr::with_exposed_provenance_mut(user), abi::Error::NONE);
    };
    match mistake {
        DeviceMistake::NeverCallsBack => {}
        DeviceMistake::CallsBackAtOnce => call(),
        _ => {
            let times = if mistake == DeviceMistake::CallsBackTwice { 2 } else { 1 };
            let thread = std::thread::spawn(move || (0..times).for_each(|_| call()));
            thread.join().expect("no panic");
        }
    }
    abi::Error::NONE
}

unsafe extern "C" fn copy_h2d_async(
    _: *mut c_void,
    _: u32,
    _: abi::Stream,
    _: abi::Memory,
    _: u64,
    _: *const c_void,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn copy_d2h_async(
    _: *mut c_void,
    _: u32,
    _: abi::Stream,
    _: *mut c_void,
    _: abi::Memory,
    _: u64,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

unsafe extern "C" fn set_async(
    _: *mut c_void,
    _: u32,
    _: abi::Stream,
    _: abi::Memory,
    _: u64,
    _: u8,
    _: u64,
) -> abi::Error {
    abi::Error::NONE
}

pub(crate) const ASYNC_TABLE: abi::AsyncTable = abi::AsyncTable {
    stream_create: Some(create_stream),
    stream_destroy: Some(on_stream),
    stream_query: Some(query_stream),
    stream_synchronize: Some(on_stream),
    stream_add_callback: Some(add_callback),
    stream_wait_event: Some(on_both),
    event_create: Some(create_event),
    event_destroy: Some(on_event),
    event_record: Some(on_both),
    event_synchronize: Some(on_event),
    memory_copy_h2d_async: Some(copy_h2d_async),
    memory_copy_d2h_async: Some(copy_d2h_async),
    memory_set_async: Some(set_async),
    ..abi::AsyncTable::EMPTY
};

unsafe extern "C" fn prepare(
    context: *mut c_void,
    _: *const abi::Call,
    state: *mut *mut c_void,
) -> abi::Error {
    // SAFETY: the context is that of the device, and the host passes a place for the state.
    unsafe { *state = std::ptr::without_provenance_mut(device(context).next_handle() as usize) };
    abi::Error::NONE
}

/// Copies the first byte of the input to the output.
unsafe extern "C" fn run(context: *mut c_void, _: *mut c_void, call: *const abi::Call) -> abi::Error {
    // SAFETY: the context is that of the device, and the tests call with operands in memory of the process.
    unsafe {
        let (device, call) = (device(context), &*call);
        let (input, output) = (&**call.inputs, &**call.outputs);
        let at = |tensor: &abi::Tensor| {
            std::ptr::with_exposed_provenance_mut::<u8>((tensor.block.0 + tensor.offset) as usize)
        };
        *at(output) = *at(input) + 1;
        match device.mistake {
            DeviceMistake::WritesPastOutput => *at(output).add(output.size_in_bytes as usize) = 9,
            DeviceMistake::WritesBeforeOutput => *at(output).sub(1) = 9,
            DeviceMistake::ChangesInput => *at(input).add(1) = 9,
            DeviceMistake::ChangesDescription => (*(*call.outputs).cast_mut()).dims_count = 0,
            _ => {}
        }
    }
    abi::Error::NONE
}

unsafe extern "C" fn release(_: *mut c_void, _: *mut c_void) -> abi::Error {
    abi::Error::NONE
}

pub(crate) fn kernel_record(context: *mut c_void) -> abi::Kernel {
    abi::Kernel {
        op: abi::Str::new("Increment"),
        context,
        prepare: Some(prepare),
        run: Some(run),
        release: Some(release),
        ..abi::Kernel::EMPTY
    }
}
