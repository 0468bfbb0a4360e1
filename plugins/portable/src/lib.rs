//! The kernels that all GPUs share.
//!
//! Sources are written in a small dialect of C, with one prelude each for OpenCL C, CUDA C++ and HIP C++. A source is generated
//! for the dtypes and access patterns of a call's operands. A GPU plugin implements [`Gpu`], [`GpuQueue`] and [`GpuEvent`], which
//! are thin wrappers around driver calls, and registers [`GpuDevices`] as its device and [`all_kernels`].
//!
//! Each launch is bounds-checked before it is enqueued: an operand knows which bytes of its block it may touch. Values are known
//! only on the device: an index out of range reads as zeros there, integer division by 0 gives 0, and the next wait for the
//! stream reports the fault.

mod argument_list;
mod callbacks;
mod device;
mod gpu;
mod host_operands;
mod launch;
mod operand_view;
mod operand_walk;
mod ops;
mod program_cache;
mod program_store;
mod setuid;
mod source;
#[cfg(feature = "testing")]
pub mod testing;
mod touched_bytes;

pub use callbacks::StreamCallback;
pub use device::{DeviceSession, GpuDevices};
pub use gpu::{
    BlockOffset, CompiledProgram, DetectedGpu, DeviceProperties, DiscoveredGpus, Gpu, GpuEvent, GpuQueue,
    KERNEL_ENTRY_POINT, KernelLanguage, LaunchArgument, LaunchGrid, MAX_LOCAL_MEMORY, MAX_WORK_GROUP_SIZE,
};
pub use ops::all_kernels;
pub use program_store::ProgramStore;
pub use setuid::is_setuid;
