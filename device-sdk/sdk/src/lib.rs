//! Write a device or kernel plugin for Oarlock in safe Rust.
//!
//! A plugin is a shared object that a host loads through a C contract. This crate wraps the contract in safe Rust:
//!
//! - Implement [`Core`] for your device, and [`Async`] if it has streams. `#[slots]` above the `impl` records which optional
//!   functions you wrote; for the others, the host uses the defaults of the contract.
//! - Build [`Kernel`]s from functions; [`dispatch!`] runs one generic function for many dtypes.
//! - Put both into a [`Plugin`], and [`export!`] the function that builds it.
//!
//! The crate handles version negotiation, checks of pointers and text, panics and errors. Your code sees only checked values,
//! and an error or a panic in it reaches the user as one message with file and line.

mod boundary;
mod call;
mod dtype;
mod error;
mod generated;
mod host;
mod kernel;
mod memory_range;
mod panics;
mod plugin;
mod plugin_path;
mod pointer;
pub mod shape;
mod sized_struct;
mod stop;

#[cfg(feature = "numbers")]
pub use half::{bf16, f16};
#[cfg(feature = "numbers")]
pub use num_complex::Complex;
pub use oarlock_abi as abi;
pub use oarlock_abi::{DeviceFlags, DeviceInfo, Event, Memory, Str, Stream, Version};

/// Records which functions an `impl` of a device trait defines, so that the plugin offers exactly those.
///
/// ```
/// use oarlock_sdk::{Async, Event, Result, Stream, slots};
///
/// /// Finishes all work synchronously, so a stream is only a number and every event has already happened.
/// struct Npu;
///
/// #[slots]
/// impl Async for Npu {
///     fn stream_create(&self, _device: u32, _priority: i32) -> Result<Stream> {
///         Ok(Stream(1))
///     }
///     fn stream_destroy(&self, _device: u32, _queue: Stream) -> Result<()> {
///         Ok(())
///     }
///     fn stream_synchronize(&self, _device: u32, _queue: Stream) -> Result<()> {
///         Ok(())
///     }
///     fn stream_wait_event(&self, _device: u32, _queue: Stream, _point: Event) -> Result<()> {
///         Ok(())
///     }
///     fn event_create(&self, _device: u32) -> Result<Event> {
///         Ok(Event(1))
///     }
///     fn event_destroy(&self, _device: u32, _point: Event) -> Result<()> {
///         Ok(())
///     }
///     fn event_record(&self, _device: u32, _queue: Stream, _point: Event) -> Result<()> {
///         Ok(())
///     }
///     fn event_query(&self, _device: u32, _point: Event) -> Result<u32> {
///         Ok(1)
///     }
///     fn event_synchronize(&self, _device: u32, _point: Event) -> Result<()> {
///         Ok(())
///     }
/// }
///
/// assert!(Npu::SLOTS.contains(&"event_query") && !Npu::SLOTS.contains(&"event_elapsed"));
/// ```
///
/// An `impl` of a device trait does not compile without the attribute, and the attribute does not compile on anything else:
///
/// ```compile_fail
/// #[oarlock_sdk::slots]
/// struct Npu;
/// ```
pub use oarlock_sdk_macros::slots;

pub use boundary::guard_call;
pub use call::{KernelCall, TensorView};
pub use dtype::{Dtype, DtypeSet, Element, dtype_set, family, unexpected_dtype};
pub use error::{Code, PluginError, Result};
pub use generated::{Async, Core};
pub use host::{HostServices, LogLevel};
pub use kernel::{Kernel, KernelFlags, Layout, MemoryKind, OperandFlags, OperandSpec};
pub use memory_range::MemoryRange;
pub use panics::silence_caught_panics;
pub use plugin::{Plugin, SupportLevel, answer_query, instance_from_context};
pub use plugin_path::plugin_directory;
pub use pointer::{HostPointer, StreamReached};
pub use sized_struct::copy_sized;
pub use stop::end_if_stopped;
