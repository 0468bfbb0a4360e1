//! A device plugin: one simulated chip with memory of its own, streams that run beside the program, and six kernels.
//!
//! `memory.rs`, `stream.rs` and `kernels.rs` stand for your driver; replace them one by one. The quoted rules, such as M-2, are
//! those of the contract: `oarlock plugin check` tries them.

mod kernels;
mod memory;
mod stream;

use std::sync::Arc;

use oarlock_sdk::{
    Async, Core, DeviceInfo, Event, HostServices, Memory, MemoryRange, Plugin, PluginError, Result, Str,
    Stream, StreamReached, Version, slots,
};

/// The plugin's state. The SDK hands it to every slot; a slot may be called on any thread (T-1).
struct SampleNpu {
    memory: Arc<memory::DeviceMemory>,
    streams: stream::StreamTable,
    host: HostServices,
}

const OWN_VERSION: Version = Version { major: 0, minor: 1, patch: 0, build: 0 };

impl SampleNpu {
    /// A call for a device that is not in `device_list` fails (D-2).
    fn on(&self, device: u32) -> Result<&Self> {
        let message = || format!("expected device 0, found {device}");
        if device == 0 { Ok(self) } else { Err(PluginError::not_found(message())) }
    }
}

/// `#[slots]` notes which optional slots are here; for the others the host has a default. Find and
/// open hardware in `initialize` and `device_init`, which this chip does not need.
#[slots]
impl Core for SampleNpu {
    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }
    fn device_list(&self) -> Result<Vec<u32>> {
        Ok(vec![0])
    }
    /// No flag is set: blocks are numbers, and the host cannot look into them.
    fn device_info(&self, device: u32) -> Result<DeviceInfo> {
        let (name, vendor) = (Str::new("SampleNpu, simulated"), Str::new("Sample Vendor"));
        self.on(device)?;
        Ok(DeviceInfo { name, vendor, memory_alignment: memory::ALIGNMENT, ..DeviceInfo::EMPTY })
    }
    fn device_synchronize(&self, device: u32) -> Result<()> {
        self.on(device)?.streams.synchronize_all()
    }
    fn compute_capability(&self, device: u32) -> Result<Version> {
        self.on(device).map(|_| OWN_VERSION)
    }
    fn runtime_version(&self) -> Result<Version> {
        Ok(OWN_VERSION)
    }
    fn driver_version(&self) -> Result<Version> {
        Ok(OWN_VERSION)
    }
    fn memory_allocate(&self, device: u32, size: u64) -> Result<Memory> {
        self.on(device)?.memory.allocate(size)
    }
    fn memory_deallocate(&self, device: u32, block: Memory, _size: u64) -> Result<()> {
        self.on(device)?.memory.deallocate(block)
    }
    fn memory_copy_h2d(&self, device: u32, target: MemoryRange, source: &[u8]) -> Result<()> {
        self.on(device)?.memory.write(target, source)
    }
    fn memory_copy_d2h(&self, device: u32, target: &mut [u8], source: MemoryRange) -> Result<()> {
        self.on(device)?.memory.read(source).map(|bytes| target.copy_from_slice(&bytes))
    }
    fn memory_copy_d2d(&self, device: u32, to: MemoryRange, from: MemoryRange) -> Result<()> {
        self.on(device)?.memory.write(to, &self.memory.read(from)?)
    }
    fn memory_stats(&self, device: u32) -> Result<(u64, u64)> {
        self.on(device).map(|_| (memory::SIZE, memory::SIZE - self.memory.used()))
    }
    fn min_chunk_size(&self, device: u32) -> Result<u64> {
        self.on(device).map(|_| memory::ALIGNMENT.into())
    }
}

/// Slots that are left out, such as the asynchronous copies, have a default: here the host
/// synchronizes the stream and uses the copies of `Core`.
#[slots]
impl Async for SampleNpu {
    fn stream_create(&self, device: u32, _priority: i32) -> Result<Stream> {
        self.on(device)?.streams.create_stream()
    }
    fn stream_destroy(&self, device: u32, queue: Stream) -> Result<()> {
        self.on(device)?.streams.destroy_stream(queue)
    }
    fn stream_synchronize(&self, device: u32, queue: Stream) -> Result<()> {
        self.on(device)?.streams.synchronize(queue)
    }
    /// Returns without waiting; the callback runs exactly once, on a thread of the plugin (T-2).
    fn stream_add_callback(&self, device: u32, at: Stream, reached: StreamReached) -> Result<()> {
        let host = self.on(device)?.host;
        self.streams.notify(at, move |state| match state {
            Ok(()) => reached.notify(device, at),
            Err(failure) => reached.notify_failure(&host, device, at, failure),
        })
    }
    fn stream_wait_event(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        let recording = self.on(device)?.streams.recording(point)?;
        self.streams.launch(queue, move || recording.wait().clone())
    }
    fn event_create(&self, device: u32) -> Result<Event> {
        self.on(device).map(|_| self.streams.create_event())
    }
    fn event_destroy(&self, device: u32, point: Event) -> Result<()> {
        self.on(device)?.streams.destroy_event(point)
    }
    fn event_record(&self, device: u32, queue: Stream, point: Event) -> Result<()> {
        self.on(device)?.streams.record(queue, point)
    }
    fn event_query(&self, device: u32, point: Event) -> Result<u32> {
        Ok(self.on(device)?.streams.recording(point)?.get().is_some().into())
    }
    fn event_synchronize(&self, device: u32, point: Event) -> Result<()> {
        self.on(device)?.streams.recording(point)?.wait().clone()
    }
}

/// Describes the plugin. A host may call it at any time and more than once, so it touches no hardware
/// (E-3).
fn plugin(host: &HostServices) -> Result<Plugin<SampleNpu>> {
    let (memory, streams) = (Arc::default(), stream::StreamTable::default());
    let npu = SampleNpu { memory, streams, host: *host };
    let plugin = Plugin::for_device("sample-npu", env!("CARGO_PKG_VERSION"), "SampleNpu", npu);
    Ok(plugin
        .with_vendor("Sample Vendor")
        .with_package("oarlock-sample-npu")
        .with_async()
        .with_kernels(kernels::all_kernels()))
}

oarlock_sdk::export!(plugin);
