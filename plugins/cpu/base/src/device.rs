//! The CPU as a device: it uses host memory, and every call is synchronous.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use oarlock_sdk::{
    Async, Core, DeviceFlags, DeviceInfo, Event, HostServices, Memory, MemoryRange, PluginError, Result, Str,
    Stream, Version, slots,
};

use crate::isa::Isa;
use crate::{machine, memory};

const DEVICE_ID: u32 = 0;

/// The CPU device. It runs everything synchronously, so for streams and events it only tracks which handles exist.
pub struct Cpu {
    host: HostServices,
    isa: Isa,
    handles: Mutex<HandleTable>,
    next_handle: AtomicU64,
}

#[derive(Default)]
struct HandleTable {
    streams: HashSet<u64>,
    events: HashSet<u64>,
}

impl Cpu {
    pub fn new(host: &HostServices) -> Self {
        Self {
            host: *host,
            isa: Isa::from_host_option(host),
            handles: Mutex::default(),
            next_handle: AtomicU64::new(0),
        }
    }

    /// The level that kernels run at: the machine's best, unless the option `isa` lowers it.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The maximum number of threads that [`Cpu::parallel_for`] uses.
    pub fn worker_count(&self) -> usize {
        self.host.worker_count()
    }

    /// Runs `body(begin, end)` over 0..count on the host's threads, in pieces of at least `grain` items. The number of threads
    /// decides where pieces end, so results must not depend on it.
    pub fn parallel_for(&self, count: usize, grain: usize, body: impl Fn(usize, usize) + Sync) {
        // One closure type for all loops. Otherwise the SDK's generic wrapper would be compiled a thousand times, once for each
        // body.
        let body: &(dyn Fn(u64, u64) + Sync) = &|begin, end| body(begin as usize, end as usize);
        self.host.parallel_for(count as u64, grain as u64, body);
    }

    fn lock_handles(&self) -> MutexGuard<'_, HandleTable> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_handle(&self) -> u64 {
        // Handles start at 1, because 0 is the device's own stream. They only have to differ, so a relaxed increment suffices.
        self.next_handle.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Checks that a stream exists. Stream 0, the device's own, always does.
    fn check_stream(&self, device: u32, stream: Stream) -> Result<()> {
        check_device(device)?;
        if stream.0 == 0 || self.lock_handles().streams.contains(&stream.0) {
            return Ok(());
        }
        Err(PluginError::not_found(format!("expected a stream of this device, found {}", stream.0))
            .with_rule("A-3"))
    }

    fn check_event(&self, device: u32, event: Event) -> Result<()> {
        check_device(device)?;
        if self.lock_handles().events.contains(&event.0) {
            return Ok(());
        }
        Err(PluginError::not_found(format!("expected an event of this device, found {}", event.0))
            .with_rule("A-3"))
    }
}

fn check_device(device: u32) -> Result<()> {
    if device == DEVICE_ID {
        return Ok(());
    }
    Err(PluginError::not_found(format!("expected device {DEVICE_ID}, the only one, found {device}"))
        .with_rule("D-2"))
}

#[slots]
impl Core for Cpu {
    fn device_synchronize(&self, device: u32) -> Result<()> {
        check_device(device)
    }

    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }

    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![DEVICE_ID])
    }

    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        check_device(device)?;
        // A static, because the text has to outlive the call.
        static NAME: std::sync::LazyLock<String> = std::sync::LazyLock::new(machine::processor_name);
        Ok(DeviceInfo {
            name: Str::new(NAME.as_str()),
            bits: DeviceFlags::HOST_ADDRESSABLE | DeviceFlags::SHARES_HOST_MEMORY,
            compute_units: machine::available_threads(),
            memory_alignment: memory::ALIGNMENT as u32,
            ..DeviceInfo::EMPTY
        })
    }

    fn compute_capability(&self, device: u32) -> Result<Version> {
        check_device(device)?;
        Ok(Version { major: machine::instruction_set_level(), ..Version::EMPTY })
    }

    fn runtime_version(&self) -> Result<Version> {
        Ok(machine::parse_version(env!("CARGO_PKG_VERSION")))
    }

    fn driver_version(&self) -> Result<Version> {
        Ok(machine::kernel_version())
    }

    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        check_device(device)?;
        memory::allocate_block(size)
    }

    fn memory_deallocate(&self, device: u32, block: Memory, size: u64) -> Result<()> {
        check_device(device)?;
        memory::deallocate_block(block, size)
    }

    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        check_device(device)?;
        memory::write_block(target, source)
    }

    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        check_device(device)?;
        memory::read_block(target, source)
    }

    fn memory_copy_d2d(&self, device: u32, target: MemoryRange, source: MemoryRange) -> Result<()> {
        check_device(device)?;
        memory::copy_block(target, source)
    }

    fn memory_set(&self, device: u32, target: MemoryRange, byte: u8) -> Result<()> {
        check_device(device)?;
        memory::fill_block(target, byte)
    }

    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        check_device(device)?;
        machine::memory_sizes()
    }

    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        check_device(device)?;
        Ok(memory::ALIGNMENT as u64)
    }
}

#[slots]
impl Async for Cpu {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        check_device(device)?;
        let stream = Stream(self.new_handle());
        self.lock_handles().streams.insert(stream.0);
        Ok(stream)
    }

    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.check_stream(device, queue)?;
        if !self.lock_handles().streams.remove(&queue.0) {
            return Err(PluginError::invalid_argument(
                "expected a stream that was made, found the device's own",
            ));
        }
        Ok(())
    }

    // All work ends before the call that started it returns, so a stream is always idle.
    fn stream_query(&self, device: u32, queue: Stream) -> Result<u32> {
        self.check_stream(device, queue)?;
        Ok(1)
    }

    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.check_stream(device, queue)
    }

    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.check_stream(device, queue)?;
        self.check_event(device, point)
    }

    fn event_create(&self, device: u32) -> Result<Event> {
        check_device(device)?;
        let event = Event(self.new_handle());
        self.lock_handles().events.insert(event.0);
        Ok(event)
    }

    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.check_event(device, point)?;
        self.lock_handles().events.remove(&point.0);
        Ok(())
    }

    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.check_stream(device, queue)?;
        self.check_event(device, point)
    }

    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        self.check_event(device, point)?;
        Ok(1)
    }

    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        self.check_event(device, point)
    }
}
