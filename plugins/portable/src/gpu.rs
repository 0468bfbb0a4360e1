//! The interface that a driver implements for the devices and kernels of this crate: memory, streams, events and programs.
//!
//! A driver need not check handles and ranges: every block, queue and event it gets here is alive and belongs to its device, and
//! every range is non-empty and lies inside its block. It only checks what its own functions return.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use std::sync::Arc;

use oarlock_sdk::{HostPointer, HostServices, Result, Stream, Version};

use crate::callbacks::StreamCallback;

/// The source language that a driver compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelLanguage {
    // OpenCL 3.0 still requires 1.2 of every driver, and made the features of 2.0 optional.
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++, as NVRTC compiles it without headers.
    Cuda,
    /// HIP C++, as hipRTC compiles it.
    Hip,
}

/// Name of the single function in every source.
pub const KERNEL_ENTRY_POINT: &str = "oarlock_kernel";

/// Upper bound on work-items per work-group. Sources are written for groups of this size, so a device with less cannot run these
/// kernels.
// A power of two, as tree reductions need, and a multiple of the 32 or 64 work-items that a GPU runs in lockstep. CUDA and HIP allow
// 1,024, but some OpenCL devices stop at 256.
pub const MAX_WORK_GROUP_SIZE: u32 = 256;

/// Upper bound on local memory per work-group, in bytes. The largest user is the matrix product: two tiles of 16 × 65 elements,
/// 16,640 bytes with 8-byte elements.
// OpenCL 1.2 promises 32 KiB in its full profile. A group that uses less leaves room for others on the same compute unit.
pub const MAX_LOCAL_MEMORY: u64 = 32 << 10;

/// Facts about a device that are known before it is opened.
#[derive(Clone, Debug)]
pub struct DeviceProperties {
    /// Product name.
    pub name: String,
    /// Vendor name.
    pub vendor: String,
    /// PCI address such as `0000:3B:00.0`; empty if unknown.
    pub bus_id: String,
    /// Number of compute units (streaming multiprocessors in CUDA).
    pub compute_units: u32,
    /// Alignment of every block, in bytes: a power of two.
    pub alignment: u32,
    /// Total memory in bytes.
    pub memory: u64,
    /// Size limit of a single block, in bytes.
    pub largest_block: u64,
    /// The compute capability or other chip generation that the compiler targets.
    pub capability: Version,
    /// True if the device computes in `f64`; kernels refuse that dtype elsewhere.
    pub has_f64: bool,
}

/// A device that is not open yet.
pub struct DetectedGpu<G: Gpu> {
    pub(crate) properties: DeviceProperties,
    pub(crate) detected: G::DetectedDevice,
}

impl<G: Gpu> DetectedGpu<G> {
    /// A device with its properties, and what the driver opens it by.
    pub fn new(properties: DeviceProperties, detected: G::DetectedDevice) -> Self {
        Self { properties, detected }
    }
}

/// Result of [`Gpu::find_devices`].
pub struct DiscoveredGpus<G: Gpu> {
    /// The devices, at least one.
    pub devices: Vec<DetectedGpu<G>>,
    /// The version of the vendor's runtime library.
    pub runtime: Version,
    /// The version of the driver.
    pub driver: Version,
}

/// Result of [`Gpu::compile_program`].
#[derive(Debug)]
pub struct CompiledProgram<P> {
    /// The program, ready to launch.
    pub program: P,
    /// The program as [`Gpu::load_program`] takes it, if the driver exposes it.
    pub binary: Option<Vec<u8>>,
}

/// Work-groups of a launch, and work-items per group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchGrid {
    // CUDA allows 2³¹ - 1 groups in the first dimension, but only 65,535 in each of the others.
    /// Number of work-groups, all in the first dimension.
    pub groups: u32,
    /// Work-items per group in the first and second dimension; the source has the same numbers compiled in.
    pub block: [u32; 2],
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaunchArgument<'a, B> {
    /// The base pointer of a block, or a null pointer that the kernel never dereferences. The operand's byte offset is the next
    /// argument.
    Memory(Option<B>),
    /// A value by its bytes: an integer, a floating-point number or a struct of 64-bit integers.
    Value(&'a [u8]),
}

/// A position in a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockOffset<'a, B> {
    /// The block.
    pub block: &'a B,
    /// Distance from the start of the block, in bytes.
    pub offset: u64,
}

/// An open device. Dropping it closes the device; everything created on it has been freed by then.
///
/// A plugin registers a [`GpuDevices`](crate::GpuDevices) of this type as its device, which fills all slots of the profiles
/// `core` and `async`, and [`all_kernels`](crate::all_kernels) as its kernels.
pub trait Gpu: Send + Sync + Sized + 'static {
    /// A device that was found but not opened.
    type DetectedDevice: Send + Sync + 'static;
    /// Device memory. Clones refer to the same memory.
    type Block: Clone + Send + Sync + 'static;
    /// Pinned host memory, which the device accesses directly.
    type Pinned: Send + 'static;
    /// The driver's side of a stream.
    type Queue: GpuQueue<Self>;
    /// The driver's side of an event.
    type Event: GpuEvent<Self>;
    /// A compiled program with a single function, [`KERNEL_ENTRY_POINT`].
    type Program: Send + Sync + 'static;

    /// Finds at least one device. Without any, the error says what is missing and how to get it.
    fn find_devices(host: &HostServices) -> Result<DiscoveredGpus<Self>>;

    /// Opens a device.
    fn open_device(idle: &Self::DetectedDevice) -> Result<Self>;

    /// Allocates device memory: at least 1 byte, and no more than is left.
    fn allocate_block(&self, size: u64) -> Result<Self::Block>;

    /// Frees device memory. Nothing uses any clone of the block, including work that is still queued. Succeeds without doing
    /// anything on a lost device.
    fn free_block(&self, block: Self::Block) -> Result<()>;

    /// Total and free bytes, or `None` if the driver does not say; the caller then counts what it allocated.
    fn memory_usage(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    /// Allocates at least 1 byte of pinned host memory.
    fn allocate_pinned(&self, size: u64) -> Result<(HostPointer, Self::Pinned)>;

    /// Frees pinned host memory. Succeeds without doing anything on a lost device.
    fn free_pinned(&self, memory: Self::Pinned) -> Result<()>;

    /// Creates an in-order queue. The queue of stream 0 is synchronous: each function returns when its command is done, with the
    /// command's error. Lower numbers are higher priorities.
    fn create_queue(&self, stream: Stream, priority: i32) -> Result<Self::Queue>;

    /// Creates an event with timing.
    fn create_event(&self) -> Result<Self::Event>;

    /// The language of sources passed to [`Gpu::compile_program`].
    fn kernel_language(&self) -> KernelLanguage;

    /// Device, driver and compiler options as text. A stored binary is reused only if this string is the same.
    fn compiler_identity(&self) -> Result<String>;

    /// True if the driver has a disk cache of its own, so that [`ProgramStore`](crate::ProgramStore) is not needed.
    fn caches_programs(&self) -> bool {
        false
    }

    /// Compiles a source, and returns a binary if `with_binary` is set and the driver has one. A compile error starts with the
    /// compiler's log.
    fn compile_program(&self, source: &str, with_binary: bool) -> Result<CompiledProgram<Self::Program>>;

    /// Loads a binary that [`Gpu::compile_program`] returned, perhaps in an earlier process. On failure the source is compiled
    /// again.
    fn load_program(&self, binary: &[u8]) -> Result<Self::Program>;
}

/// A queue of a [`Gpu`].
pub trait GpuQueue<G: Gpu>: Send + Sync + 'static {
    // Copies from and to host memory are unsafe: they may run after the call has returned, and only the caller knows how long the memory
    // lives.
    /// Copies from host to device.
    ///
    /// # Safety
    ///
    /// `size` bytes at `source` stay readable until the queue has passed this copy.
    unsafe fn enqueue_write(
        &self,
        target: BlockOffset<'_, G::Block>,
        source: *const u8,
        size: usize,
    ) -> Result<()>;

    /// Copies from device to host.
    ///
    /// # Safety
    ///
    /// `size` bytes at `target` stay writable, and nothing else touches them, until the queue has passed this copy.
    unsafe fn enqueue_read(
        &self,
        target: *mut u8,
        source: BlockOffset<'_, G::Block>,
        size: usize,
    ) -> Result<()>;

    /// Copies within the device.
    fn enqueue_copy(
        &self,
        target: BlockOffset<'_, G::Block>,
        source: BlockOffset<'_, G::Block>,
        size: usize,
    ) -> Result<()>;

    /// Copies to memory of another device of the same driver.
    fn enqueue_copy_to_peer(
        &self,
        target: (&G, BlockOffset<'_, G::Block>),
        source: BlockOffset<'_, G::Block>,
        size: usize,
    ) -> Result<()>;

    /// Sets every byte of a range to `byte`.
    fn enqueue_fill(&self, target: BlockOffset<'_, G::Block>, byte: u8, size: usize) -> Result<()>;

    /// Launches a program. The arguments match the parameters of [`KERNEL_ENTRY_POINT`] in order.
    fn launch_program(
        &self,
        program: &G::Program,
        grid: LaunchGrid,
        arguments: &[LaunchArgument<'_, G::Block>],
    ) -> Result<()>;

    /// Waits for everything in the queue.
    fn finish_queue(&self) -> Result<()>;

    /// Waits like [`GpuQueue::finish_queue`], then returns the first error in the queue since the last call.
    fn synchronize_queue(&self) -> Result<()> {
        self.finish_queue()
    }

    /// Waits like [`GpuQueue::finish_queue`] before a teardown; on a lost device there is nothing to wait for.
    fn drain_queue(&self) -> Result<()> {
        self.finish_queue()
    }

    /// Frees device memory once the queue has passed this point.
    fn free_after_work(&self, gpu: &G, block: G::Block) -> Result<()> {
        // Right for every driver. One that can free memory in stream order overrides this and does not wait.
        self.drain_queue()?;
        gpu.free_block(block)
    }

    /// True if everything in the queue is done.
    fn is_empty(&self) -> Result<bool>;

    /// Blocks later commands of this queue until an event, perhaps of another queue, has completed.
    fn wait_for_event(&self, event: &G::Event) -> Result<()>;

    /// Calls a host function when the queue reaches this point. The driver's thread only hands it over.
    fn enqueue_callback(&self, reached: StreamCallback) -> Result<()>;
}

/// An event of a [`Gpu`]. Everything but [`GpuEvent::record_on_queue`] is called only after it was recorded.
pub trait GpuEvent<G: Gpu>: Send + Sync + 'static {
    /// Records the event at the end of a queue.
    fn record_on_queue(&self, queue: &Arc<G::Queue>) -> Result<()>;

    /// True if the event has completed.
    fn has_happened(&self) -> Result<bool>;

    /// Waits for the event, then returns the error of the work before it in its queue.
    fn wait_until_happened(&self) -> Result<()>;

    /// Nanoseconds from `start` to this event, both of which have completed.
    fn elapsed_since(&self, start: &Self) -> Result<u64>;
}
