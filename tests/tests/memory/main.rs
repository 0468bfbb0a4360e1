//! The memory pool and the streams of the core, on the simulated device, which does nothing before it must and fails
//! when a script says so.

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
use oarlock_core::memory::{Allocation, Pool, PoolOptions};
use oarlock_core::stream::{Stream, StreamId};
use oarlock_host::{Device, Host, Live};
use oarlock_tests::bare_host::{SIM, host_options};

const MIB: u64 = 1 << 20;

/// Counts what each thread asks of the system.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller's word is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A device that a script sets up, with what keeps it alive.
struct Machine {
    device: Device,
    _host: Host,
}

fn machine(script: &str) -> Machine {
    let config = format!("[plugin.oarlock-sim]\nscript = '{script}'");
    let host = Host::start(&host_options("tests 1.0", &config, &[SIM])).expect("a host");
    let device = host.device("sim:0").unwrap_or_else(|| panic!("no device: {:#?}", host.report()));
    Machine { device, _host: host }
}

impl Machine {
    fn pool(&self, options: PoolOptions) -> Arc<Pool> {
        Pool::new(self.device.clone(), options).expect("a pool")
    }

    fn live(&self) -> Live {
        self.device.plugin().live()
    }
}

fn options() -> PoolOptions {
    PoolOptions::default()
}

fn limited(limit: u64) -> PoolOptions {
    PoolOptions { limit: Some(limit), ..options() }
}

fn place(allocation: &Allocation) -> (u64, u64) {
    (allocation.memory().0, allocation.offset())
}

fn take(pool: &Arc<Pool>, size: u64, label: &'static str) -> Allocation {
    pool.allocate(size, StreamId::OWN, label).expect("memory")
}

/// Puts a copy from the host into a stream, as an op of that name.
fn launch(
    stream: &Stream,
    target: &Allocation,
    op: &'static str,
    source: &'static [u8],
) -> Result<(), Error> {
    let queue = stream.queue().expect("a stream of its own");
    // SAFETY: the source lives for ever, and the tests keep the memory as long as its rules say.
    stream.launch(op, || unsafe { target.span().write_in(queue, 0, source) })
}
