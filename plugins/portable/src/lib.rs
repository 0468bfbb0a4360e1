//! The kernels that all GPUs share.
//!
//! Sources are written in a small dialect of C, with a prelude each for OpenCL C, CUDA C++ and HIP C++, and generated for
//! the operands at hand: their dtypes, and how they are walked through. A GPU plugin implements [`Gpu`], [`GpuQueue`] and
//! [`GpuEvent`], which are calls of its driver and no more, and registers [`GpuDevices`] as its device and [`all_kernels`].
//!
//! What a kernel reads and writes is checked before it is launched: operands say which bytes of a block are touched. Values
//! are known on the device alone: an index outside of its data gives zeros there, an integer divided by 0 gives 0, and
//! whoever waits for the stream is told.

mod argument_list;
mod device;
mod gpu;
mod host_operands;
mod operand_view;
mod operand_walk;
mod ops;
mod privileges;
mod program_cache;
mod program_store;
mod source;
#[cfg(feature = "testing")]
pub mod testing;

pub use device::{DeviceSession, DiscoveredGpus, GpuDevice, GpuDevices, StreamCallback};
pub use gpu::{
    BlockOffset, CompiledProgram, DeviceProperties, Gpu, GpuEvent, GpuQueue, KERNEL_ENTRY_POINT,
    KernelLanguage, LaunchArgument, LaunchGrid, MAX_LOCAL_MEMORY, MAX_WORK_GROUP_SIZE,
};
pub use ops::all_kernels;
pub use privileges::has_elevated_privileges;
pub use program_store::ProgramStore;
