//! The state of an asynchronous kernel outlives the work that reads it (rule K-6), on a device that does all work as late as it can.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oarlock_core::flags::Flags;
use oarlock_core::{Op, Runtime, Tensor};
use oarlock_host::BuiltInPlugin;
use oarlock_sdk::abi::{Event, Stream};
use oarlock_sdk::{
    Async, Core, HostServices, Kernel, KernelFlags, Memory, MemoryRange, OperandSpec, Plugin, PluginError,
    Result, Version, family, slots,
};
use oarlock_tests::bare_host::{CPU_PLUGIN, host_options};

/// Kernels that wait in a stream.
static PENDING_RUNS: AtomicUsize = AtomicUsize::new(0);
/// States that were freed while a kernel still waited.
static EARLY_RELEASES: AtomicUsize = AtomicUsize::new(0);
/// States that were freed at all.
static RELEASES: AtomicUsize = AtomicUsize::new(0);

/// A state that notices when it is freed too early.
struct WatchedState;

impl Drop for WatchedState {
    fn drop(&mut self) {
        RELEASES.fetch_add(1, Ordering::SeqCst);
        EARLY_RELEASES.fetch_add(PENDING_RUNS.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

#[derive(Default)]
struct LateDevice {
    blocks: Mutex<HashMap<u64, Vec<u8>>>,
    streams: Mutex<HashSet<u64>>,
    handles: AtomicU64,
}

impl LateDevice {
    fn next_handle(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn lock_blocks(&self) -> MutexGuard<'_, HashMap<u64, Vec<u8>>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish_work(&self) {
        PENDING_RUNS.store(0, Ordering::SeqCst);
    }
}

fn slice_of(blocks: &mut HashMap<u64, Vec<u8>>, range: MemoryRange) -> Result<&mut [u8]> {
    let block = blocks.get_mut(&range.memory.0).ok_or_else(|| PluginError::not_found("no such block"))?;
    let (start, end) = (range.offset as usize, (range.offset + range.size) as usize);
    block.get_mut(start..end).ok_or_else(|| PluginError::out_of_range("a range past the end of its block"))
}

const VERSION: Version = Version { major: 1, ..Version::EMPTY };

#[slots]
impl Core for LateDevice {
    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![0])
    }

    fn device_synchronize(&self, _device: u32) -> Result<()> {
        self.finish_work();
        Ok(())
    }

    fn compute_capability(&self, _device: u32) -> Result<Version> {
        Ok(VERSION)
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(VERSION)
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(VERSION)
    }

    fn memory_allocate(&self, _device: u32, size: u64) -> Result<Memory> {
        let handle = self.next_handle();
        self.lock_blocks().insert(handle, vec![0; size as usize]);
        Ok(Memory(handle))
    }

    fn memory_deallocate(&self, _device: u32, block: Memory, _size: u64) -> Result<()> {
        self.lock_blocks().remove(&block.0);
        Ok(())
    }

    fn memory_copy_h2d(&self, _device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        slice_of(&mut self.lock_blocks(), target)?.copy_from_slice(source);
        Ok(())
    }

    fn memory_copy_d2h(&self, _device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        target.copy_from_slice(slice_of(&mut self.lock_blocks(), source)?);
        Ok(())
    }

    fn memory_copy_d2d(&self, _device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        let mut blocks = self.lock_blocks();
        let bytes = slice_of(&mut blocks, source)?.to_vec();
        slice_of(&mut blocks, target)?.copy_from_slice(&bytes);
        Ok(())
    }

    fn memory_stats(&self, _device: u32) -> Result<(u64, u64)> {
        Ok((1 << 24, 1 << 23))
    }

    fn min_chunk_size(&self, _device: u32) -> Result<u64> {
        Ok(64)
    }
}

#[slots]
impl Async for LateDevice {
    fn stream_create(&self, _device: u32, _priority: i32) -> Result<Stream> {
        let handle = self.next_handle();
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(handle);
        Ok(Stream(handle))
    }

    fn stream_destroy(&self, _device: u32, queue: Stream) -> Result<()> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&queue.0);
        Ok(())
    }

    fn stream_synchronize(&self, _device: u32, _queue: Stream) -> Result<()> {
        self.finish_work();
        Ok(())
    }

    fn stream_wait_event(&self, _device: u32, _queue: Stream, _point: Event) -> Result<()> {
        Ok(())
    }

    fn event_create(&self, _device: u32) -> Result<Event> {
        Ok(Event(self.next_handle()))
    }

    fn event_destroy(&self, _device: u32, _point: Event) -> Result<()> {
        Ok(())
    }

    fn event_record(&self, _device: u32, _queue: Stream, _point: Event) -> Result<()> {
        Ok(())
    }

    fn event_query(&self, _device: u32, _point: Event) -> Result<u32> {
        Ok(u32::from(PENDING_RUNS.load(Ordering::SeqCst) == 0))
    }

    fn event_synchronize(&self, _device: u32, _point: Event) -> Result<()> {
        self.finish_work();
        Ok(())
    }
}

fn late_plugin(_host: &HostServices) -> Result<Plugin<LateDevice>> {
    let operand = OperandSpec::new(family::FLOATING).with_dtype_group(1);
    let negate = Kernel::new_prepared("Neg", |_: &LateDevice, _| {
        let state = WatchedState;
        Ok(Arc::new(move |_: &LateDevice, _: &oarlock_sdk::KernelCall<'_>| {
            let _read_later = &state;
            PENDING_RUNS.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }))
    })
    .with_flags(KernelFlags::ASYNCHRONOUS)
    .with_inputs([operand.with_name("X")])
    .with_outputs([operand.with_name("Y")]);
    Ok(Plugin::for_device("late", "1.0.0", "late", LateDevice::default()).with_async().with_kernels([negate]))
}

#[test]
fn a_state_is_freed_only_after_the_work_that_reads_it() {
    let late = BuiltInPlugin { name: "late", query: oarlock_sdk::query!(late_plugin) };
    let options = host_options("tests", "", &[CPU_PLUGIN, late]);
    let flags = Flags::from_environment(|_| None).expect("defaults");
    let runtime = Runtime::start(options, flags).expect("a runtime");
    let device = runtime.device("late").expect("the device");
    let negate = Op::latest(&runtime, "Neg").expect("the op");
    // More signatures than a call site keeps, so that it lets go of states while work is pending.
    for size in 1..200i64 {
        let x = Tensor::from_slice(&device, &[size], &vec![1.0f32; size as usize]).expect("a tensor");
        negate.run(&runtime, &[&x]).expect("a launch");
    }
    drop(negate);
    assert_eq!(RELEASES.load(Ordering::SeqCst), 199);
    assert_eq!(EARLY_RELEASES.load(Ordering::SeqCst), 0);
}
