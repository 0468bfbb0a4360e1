//! The core's memory pool and streams, on the simulated device, which delays all work as long as possible and fails when a
//! script requests it.

#![expect(
    unsafe_code,
    reason = "work in streams is given memory that the tests vouch for, and allocations are counted"
)]

mod failures;
mod limits;
mod reuse;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use oarlock_core::Error;
use oarlock_core::memory::{DeviceAllocation, MemoryPool, PoolOptions};
use oarlock_core::stream::{Stream, StreamId};
use oarlock_host::{Host, LiveHandleCounts, PluginDevice};
use oarlock_tests::bare_host::{SIM_PLUGIN, host_options};

const MIB: u64 = 1 << 20;

/// Counts allocations per thread.
struct ThreadAllocationCounter;

thread_local! {
    static ALLOCATION_COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is forwarded to the system allocator.
unsafe impl GlobalAlloc for ThreadAllocationCounter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATION_COUNT.set(ALLOCATION_COUNT.get() + 1);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static GLOBAL_ALLOCATOR: ThreadAllocationCounter = ThreadAllocationCounter;

/// A device set up by a script, with everything that keeps it alive.
struct ScriptedDevice {
    device: PluginDevice,
    _host: Host,
}

fn scripted_device(script: &str) -> ScriptedDevice {
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let host = Host::start(&host_options("tests 1.0", &config, &[SIM_PLUGIN])).expect("a host");
    let device = host.device("sim:0").unwrap_or_else(|| panic!("no device: {:#?}", host.report()));
    ScriptedDevice { device, _host: host }
}

impl ScriptedDevice {
    fn create_pool(&self, options: PoolOptions) -> Arc<MemoryPool> {
        MemoryPool::new(self.device.clone(), options).expect("a pool")
    }

    fn live_handles(&self) -> LiveHandleCounts {
        self.device.plugin().live_handles()
    }
}

fn pool_options() -> PoolOptions {
    PoolOptions::default()
}

fn limited_options(limit: u64) -> PoolOptions {
    PoolOptions { limit: Some(limit), ..pool_options() }
}

fn allocation_place(allocation: &DeviceAllocation) -> (u64, u64) {
    (allocation.block_handle().0, allocation.offset())
}

fn take_memory(pool: &Arc<MemoryPool>, size: u64, label: &'static str) -> DeviceAllocation {
    pool.allocate(size, StreamId::IMMEDIATE, label).expect("memory")
}

/// Enqueues a copy from the host on a stream, as if by an op of that name.
fn launch_copy(
    stream: &Stream,
    target: &DeviceAllocation,
    op: &'static str,
    source: &'static [u8],
) -> Result<(), Error> {
    let queue = stream.queue().expect("a stream of its own");
    // SAFETY: the source is static, and the tests keep the memory as long as its rules demand.
    stream.launch(op, || unsafe { target.span().write_on_stream(queue, 0, source) })
}
