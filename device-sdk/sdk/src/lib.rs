//! Write a device or kernel plugin for Oarlock in safe Rust.
//!
//! A plugin is a shared object that a host loads through a C contract. This crate is the contract's Rust face:
//!
//! - implement [`Core`] for your device, and [`Async`] when it has streams; `#[slots]` above the `impl` notes which of the
//!   optional functions you wrote, and the host does for the others what the contract says;
//! - make [`Kernel`]s out of functions, with [`dispatch!`] to run one generic function for many dtypes;
//! - put both into a [`Plugin`] and [`export!`] the function that makes it.
//!
//! Version negotiation, checks of pointers and text, panics and errors are taken care of: what your code sees is checked,
//! and what it returns or how it panics reaches the user as one message with file and line.

mod boundary;
mod call;
mod dtype;
mod error;
mod generated;
mod host;
mod kernel;
mod panics;
mod place;
mod plugin;
mod pointer;

#[cfg(feature = "numbers")]
pub use half::{bf16, f16};
#[cfg(feature = "numbers")]
pub use num_complex::Complex;
pub use oarlock_abi as abi;
pub use oarlock_abi::{
    Activity, Communicator, DeviceFlags, DeviceInfo, Event, Executable, Memory, NativeKind, Reduction, Str,
    Stream, Version,
};

/// Notes which functions stand in an `impl` of a device trait, so that the plugin offers exactly those.
///
/// ```
/// use oarlock_sdk::{Interop, Memory, NativeKind, Result, slots};
///
/// struct Npu;
///
/// #[slots]
/// impl Interop for Npu {
///     fn dlpack_device(&self, device: u32) -> Result<(i32, i32)> {
///         Ok((12, device as i32))
///     }
///     fn memory_export(&self, _device: u32, block: Memory, _kind: NativeKind) -> Result<u64> {
///         Ok(block.0)
///     }
///     fn memory_import(&self, _device: u32, _kind: NativeKind, native: u64, _size: u64) -> Result<Memory> {
///         Ok(Memory(native))
///     }
///     fn memory_forget(&self, _device: u32, _block: Memory) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// assert_eq!(Npu::SLOTS, ["dlpack_device", "memory_export", "memory_import", "memory_forget"]);
/// ```
///
/// An `impl` without the attribute does not compile, nor does the attribute above anything else:
///
/// ```compile_fail
/// #[oarlock_sdk::slots]
/// struct Npu;
/// ```
pub use oarlock_sdk_macros::slots;

pub use boundary::{copy_sized, guard};
pub use call::{Call, Tensor};
pub use dtype::{Dtype, DtypeSet, Element, dtype_set, family, unexpected_dtype};
pub use error::{Code, Error, Result};
pub use generated::{Async, Collective, Core, Graph, Interop, Profile};
pub use host::{Host, LogLevel};
pub use kernel::{Kernel, KernelFlags, Layout, MemoryKind, Operand, OperandFlags};
pub use panics::keep_panics_quiet;
pub use place::directory_of_plugin;
pub use plugin::{Plugin, SupportLevel, answer, instance_of};
pub use pointer::{ActivitySink, ByteSink, HostPointer, StreamReached};
