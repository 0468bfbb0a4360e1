//! A device that records sources and computes nothing, to test compilers without their hardware.

#![expect(unsafe_code, reason = "a driver is given host memory by its address")]

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_sdk::{HostPointer, HostServices, Plugin, PluginError, Result, Stream, Version};

use super::{CASES, PluginMachine};
use crate::{
    BlockOffset, CompiledProgram, DetectedGpu, DeviceProperties, DiscoveredGpus, Gpu, GpuDevices, GpuEvent,
    GpuQueue, KernelLanguage, LaunchArgument, LaunchGrid, ProgramStore, StreamCallback,
};

/// The language, and the sources recorded in it. One recording runs at a time.
// Static, because a plugin is queried through a plain function, which carries no state.
static RECORDED_SOURCES: Mutex<(KernelLanguage, Vec<String>)> =
    Mutex::new((KernelLanguage::OpenCl, Vec::new()));
static RECORDING: Mutex<()> = Mutex::new(());

struct RecordingGpu(KernelLanguage);

/// A queue and event without any work, so always idle.
struct NullQueue;

fn plugin(host: &HostServices) -> Result<Plugin<GpuDevices<RecordingGpu>>> {
    let recorder = GpuDevices::new(host, ProgramStore::without_directory());
    Ok(Plugin::for_device("recorder", "1.0.0", "recorder", recorder).with_kernels(crate::all_kernels()))
}

/// Runs all [`CASES`] and returns the sources that they compile.
pub fn record_sources(language: KernelLanguage) -> Vec<String> {
    let _turn = RECORDING.lock().unwrap_or_else(PoisonError::into_inner);
    *RECORDED_SOURCES.lock().unwrap_or_else(PoisonError::into_inner) = (language, Vec::new());
    let mut machine =
        PluginMachine::start_plugin(oarlock_sdk::query!(plugin)).expect("a recorder needs nothing");
    machine.computes = false;
    for (_, case) in CASES {
        case(&machine);
    }
    std::mem::take(&mut RECORDED_SOURCES.lock().unwrap_or_else(PoisonError::into_inner).1)
}

impl Gpu for RecordingGpu {
    type DetectedDevice = KernelLanguage;
    type Block = ();
    type Pinned = ();
    type Queue = NullQueue;
    type Event = NullQueue;
    type Program = ();

    fn find_devices(_: &HostServices) -> Result<DiscoveredGpus<Self>> {
        let language = RECORDED_SOURCES.lock().unwrap_or_else(PoisonError::into_inner).0;
        let room = 1 << 40;
        let facts = DeviceProperties {
            name: "recorder".to_owned(),
            vendor: String::new(),
            bus_id: String::new(),
            compute_units: 1,
            alignment: 1,
            memory: room,
            largest_block: room,
            capability: Version::EMPTY,
            // Sources with `f64` are to be compiled too.
            has_f64: true,
        };
        let devices = vec![DetectedGpu::new(facts, language)];
        Ok(DiscoveredGpus { devices, runtime: Version::EMPTY, driver: Version::EMPTY })
    }

    fn open_device(language: &KernelLanguage) -> Result<Self> {
        Ok(Self(*language))
    }

    fn allocate_block(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn free_block(&self, (): ()) -> Result<()> {
        Ok(())
    }

    fn allocate_pinned(&self, _: u64) -> Result<(HostPointer, ())> {
        Err(PluginError::unimplemented("a recorder has no page-locked memory"))
    }

    fn free_pinned(&self, (): ()) -> Result<()> {
        Ok(())
    }

    fn create_queue(&self, _: Stream, _: i32) -> Result<NullQueue> {
        Ok(NullQueue)
    }

    fn create_event(&self) -> Result<NullQueue> {
        Ok(NullQueue)
    }

    fn kernel_language(&self) -> KernelLanguage {
        self.0
    }

    fn compiler_identity(&self) -> Result<String> {
        Ok(String::new())
    }

    fn compile_program(&self, source: &str, _with_binary: bool) -> Result<CompiledProgram<()>> {
        // Every variant comes here once, since the program cache is in front.
        RECORDED_SOURCES.lock().unwrap_or_else(PoisonError::into_inner).1.push(source.to_owned());
        Ok(CompiledProgram { program: (), binary: None })
    }

    fn load_program(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl GpuQueue<RecordingGpu> for NullQueue {
    unsafe fn enqueue_write(&self, _: BlockOffset<'_, ()>, _: *const u8, _: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn enqueue_read(&self, _: *mut u8, _: BlockOffset<'_, ()>, _: usize) -> Result<()> {
        Ok(())
    }

    fn enqueue_copy(&self, _: BlockOffset<'_, ()>, _: BlockOffset<'_, ()>, _: usize) -> Result<()> {
        Ok(())
    }

    fn enqueue_copy_to_peer(
        &self,
        _: (&RecordingGpu, BlockOffset<'_, ()>),
        _: BlockOffset<'_, ()>,
        _: usize,
    ) -> Result<()> {
        Ok(())
    }

    fn enqueue_fill(&self, _: BlockOffset<'_, ()>, _: u8, _: usize) -> Result<()> {
        Ok(())
    }

    fn launch_program(&self, (): &(), _: LaunchGrid, _: &[LaunchArgument<'_, ()>]) -> Result<()> {
        Ok(())
    }

    fn finish_queue(&self) -> Result<()> {
        Ok(())
    }

    fn is_empty(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait_for_event(&self, _: &Self) -> Result<()> {
        Ok(())
    }

    fn enqueue_callback(&self, reached: StreamCallback) -> Result<()> {
        reached.queue_callback(None);
        Ok(())
    }
}

impl GpuEvent<RecordingGpu> for NullQueue {
    fn record_on_queue(&self, _: &Arc<Self>) -> Result<()> {
        Ok(())
    }

    fn has_happened(&self) -> Result<bool> {
        Ok(true)
    }

    fn wait_until_happened(&self) -> Result<()> {
        Ok(())
    }

    fn elapsed_since(&self, _: &Self) -> Result<u64> {
        Ok(0)
    }
}
