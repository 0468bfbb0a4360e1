//! What a driver provides, so that the devices and kernels of this crate run on it: memory, streams, events and programs.
//!
//! A driver checks nothing about handles and ranges, since every block, queue and event that it gets here is alive and of
//! its device, and every range lies inside its block and is not empty. What it does check is what its own functions return.

#![expect(unsafe_code, reason = "copies that return at once name host memory by its address")]

use std::sync::Arc;

use oarlock_sdk::{HostPointer, HostServices, Result, Stream, Version};

use crate::device::{DiscoveredGpus, StreamCallback};

/// The language a driver compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelLanguage {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++, as NVRTC compiles it without headers.
    Cuda,
    /// HIP C++, as hipRTC compiles it.
    Hip,
}

/// The name of the one function in every source.
pub const KERNEL_ENTRY_POINT: &str = "oarlock_kernel";

/// How many work-items a work-group has at most; a device that has room for fewer cannot run these kernels.
pub const MAX_WORK_GROUP_SIZE: u32 = 256;

/// How much local memory a kernel needs at most, in bytes.
pub const MAX_LOCAL_MEMORY: u64 = 32 << 10;

/// What is known of a device from the start.
#[derive(Clone, Debug)]
pub struct DeviceProperties {
    /// What it is called.
    pub name: String,
    /// Who makes it.
    pub vendor: String,
    /// Where it sits, such as `0000:3B:00.0`, or nothing.
    pub bus_id: String,
    /// How many processors it has.
    pub compute_units: u32,
    /// The alignment of every block, in bytes: a power of two.
    pub alignment: u32,
    /// How much memory it has, in bytes.
    pub memory: u64,
    /// The largest block, in bytes.
    pub largest_block: u64,
    /// What its compiler calls the generation of the chip.
    pub capability: Version,
    /// Whether it computes in 64-bit floating point.
    pub has_f64: bool,
}

/// A program as it is compiled, and what to keep of it.
#[derive(Debug)]
pub struct CompiledProgram<P> {
    /// The program, ready to be launched.
    pub program: P,
    /// The program as [`Gpu::load_program`] takes it, where the driver hands it out.
    pub binary: Option<Vec<u8>>,
}

/// How many work-groups of how many work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchGrid {
    /// The number of work-groups, all in the first dimension.
    pub groups: u32,
    /// The work-items of a group in the first and the second dimension, which are also written into the source.
    pub block: [u32; 2],
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaunchArgument<'a, B> {
    /// The start of a block; where in it an operand starts is an argument of its own, the next one. None stands for no
    /// memory, which is not touched.
    Memory(Option<B>),
    /// A value as it lies in memory: an integer, a floating-point number or a struct of 64-bit integers.
    Value(&'a [u8]),
}

/// A byte in a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockOffset<'a, B> {
    /// The block.
    pub block: &'a B,
    /// How many bytes lie before it.
    pub offset: u64,
}

/// A device in use. Dropping it ends the use; by then everything that was made on it is given back.
///
/// A plugin registers a [`GpuDevices`](crate::GpuDevices) of this as its device, which has all slots of the profiles `core` and `async`,
/// and [`all_kernels`](crate::all_kernels) for it.
pub trait Gpu: Send + Sync + Sized + 'static {
    /// A device that is not in use.
    type DetectedDevice: Send + Sync + 'static;
    /// Device memory. A copy of it stands for the same memory.
    type Block: Clone + Send + Sync + 'static;
    /// Host memory that the device copies from and to directly.
    type Pinned: Send + 'static;
    /// A stream.
    type Queue: GpuQueue<Self>;
    /// A point in a stream.
    type Event: GpuEvent<Self>;
    /// A compiled program of one function, [`KERNEL_ENTRY_POINT`].
    type Program: Send + Sync + 'static;

    /// Finds the devices, at least one. The error of a machine without them says what is missing and how to get it.
    fn find_devices(host: &HostServices) -> Result<DiscoveredGpus<Self>>;

    /// Readies a device.
    fn open_device(idle: &Self::DetectedDevice) -> Result<Self>;

    /// Takes device memory: 1 byte or more, and no more than the device has left.
    fn allocate_block(&self, size: u64) -> Result<Self::Block>;

    /// Gives device memory back that no other copy of the block is used for, or will be by what is in a queue. On a device
    /// that is lost there is nothing to do.
    fn free_block(&self, block: Self::Block) -> Result<()>;

    /// How many bytes the device has and how many of them are free, where the driver says. Elsewhere what was not taken
    /// here counts as free.
    fn memory_usage(&self) -> Result<Option<(u64, u64)>> {
        Ok(None)
    }

    /// Takes page-locked host memory: 1 byte or more.
    fn allocate_pinned(&self, size: u64) -> Result<(HostPointer, Self::Pinned)>;

    /// Gives page-locked host memory back. On a device that is lost there is nothing to do.
    fn free_pinned(&self, memory: Self::Pinned) -> Result<()>;

    /// Makes a queue that works in order. In that of stream 0 every command is done when its function returns, and an error
    /// of the command is the function's. Smaller priorities come first.
    fn create_queue(&self, stream: Stream, priority: i32) -> Result<Self::Queue>;

    /// Makes an event that knows its time.
    fn create_event(&self) -> Result<Self::Event>;

    /// The language that [`Gpu::compile_program`] takes.
    fn kernel_language(&self) -> KernelLanguage;

    /// Device, driver and compiler options as text: a binary is used again where this is the same.
    fn compiler_identity(&self) -> Result<String>;

    /// Whether the driver keeps on disk what it compiles, so that nobody else has to.
    fn caches_programs(&self) -> bool {
        false
    }

    /// Compiles a source, and hands out a binary where one is asked for and the driver has it. The error of a source that does not
    /// compile starts with what the compiler said.
    fn compile_program(&self, source: &str, with_binary: bool) -> Result<CompiledProgram<Self::Program>>;

    /// Makes a program of a binary that [`Gpu::compile_program`] handed out earlier. Failing means that it is compiled again.
    fn load_program(&self, binary: &[u8]) -> Result<Self::Program>;
}

/// A stream of a [`Gpu`].
pub trait GpuQueue<G: Gpu>: Send + Sync + 'static {
    /// Copies from the host to the device.
    ///
    /// # Safety
    ///
    /// `size` bytes at `source` stay readable until the queue is past this.
    unsafe fn enqueue_write(
        &self,
        target: BlockOffset<'_, G::Block>,
        source: *const u8,
        size: usize,
    ) -> Result<()>;

    /// Copies from the device to the host.
    ///
    /// # Safety
    ///
    /// `size` bytes at `target` stay writable, and nobody else touches them, until the queue is past this.
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

    /// Copies to another device.
    fn enqueue_copy_to_peer(
        &self,
        target: (&G, BlockOffset<'_, G::Block>),
        source: BlockOffset<'_, G::Block>,
        size: usize,
    ) -> Result<()>;

    /// Fills device memory with one byte.
    fn enqueue_fill(&self, target: BlockOffset<'_, G::Block>, byte: u8, size: usize) -> Result<()>;

    /// Runs a program. The arguments are those of [`KERNEL_ENTRY_POINT`], in its order.
    fn launch_program(
        &self,
        program: &G::Program,
        grid: LaunchGrid,
        arguments: &[LaunchArgument<'_, G::Block>],
    ) -> Result<()>;

    /// Waits for everything in the queue.
    fn finish_queue(&self) -> Result<()>;

    /// The same, and says what went wrong in the queue since this was last asked.
    fn synchronize_queue(&self) -> Result<()> {
        self.finish_queue()
    }

    /// The same for what is to be given back, for which nothing is left to wait on a device that is lost.
    fn drain_queue(&self) -> Result<()> {
        self.finish_queue()
    }

    /// Gives device memory back once the queue is past this point.
    fn free_after_work(&self, gpu: &G, block: G::Block) -> Result<()> {
        self.drain_queue()?;
        gpu.free_block(block)
    }

    /// Whether everything in the queue is done.
    fn is_empty(&self) -> Result<bool>;

    /// Holds what comes after back until an event has happened, which may be one of another queue.
    fn wait_for_event(&self, event: &G::Event) -> Result<()>;

    /// Has a function called when the queue gets there. The driver's thread only hands it over.
    fn enqueue_callback(&self, reached: StreamCallback) -> Result<()>;
}

/// An event of a [`Gpu`]. All but [`GpuEvent::record_on_queue`] are called after it was recorded.
pub trait GpuEvent<G: Gpu>: Send + Sync + 'static {
    /// Puts the event at the end of a queue.
    fn record_on_queue(&self, queue: &Arc<G::Queue>) -> Result<()>;

    /// Whether it has happened.
    fn has_happened(&self) -> Result<bool>;

    /// Waits for it, and says what went wrong in its queue before it.
    fn wait_until_happened(&self) -> Result<()>;

    /// The nanoseconds from another event to this one, both of which have happened.
    fn elapsed_since(&self, start: &Self) -> Result<u64>;
}
