//! The core: tensors, ops, and the shortest path from a call of an op to the kernel that runs it.
//!
//! A program starts a runtime, picks one of its devices, creates tensors, and calls ops on them. Dispatch chooses a
//! kernel once per call site and signature, and can explain its choice.
//!
//! ```no_run
//! use oarlock_core::flags::Flags;
//! use oarlock_core::{Op, Runtime, Tensor};
//! use oarlock_host::{HostConfig, HostEnvironment, HostOptions};
//!
//! let environment = HostEnvironment::from_process();
//! let config = HostConfig::load(&environment)?;
//! // A program that links plugins lists them in `built_in`; others are found in the plugin directories.
//! let flags = Flags::from_environment(|name| environment.variable(name))?;
//! let options = HostOptions::new("my-program 1.0", config, environment);
//! let runtime = Runtime::start(options, flags)?;
//!
//! let device = runtime.default_device()?;
//! let a = Tensor::from_slice(device, &[2, 1], &[1.0f32, 2.0])?;
//! let b = Tensor::from_slice(device, &[3], &[10.0f32, 20.0, 30.0])?;
//! let add = Op::latest(&runtime, "Add")?;
//! let sum = add.run(&runtime, &[&a, &b])?;
//! assert_eq!(sum.dims(), [2, 3]);
//! assert_eq!(sum.to_vec::<f32>()?, [11.0, 21.0, 31.0, 12.0, 22.0, 32.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attribute;
mod constant;
mod device;
mod dispatch;
mod dtype;
mod error;
mod fallback_counters;
pub mod flags;
pub mod infer;
mod interrupt;
pub mod memory;
mod post_kernel_checks;
pub mod registry;
mod runtime;
pub mod schema;
pub mod shape;
pub mod stream;
mod tensor;

pub use attribute::{Attribute, Attributes};
pub use constant::{Constant, ConstantSource};
pub use device::Device;
pub use dispatch::{
    BoundCall, ConstantInput, CpuFallback, ExpectedInput, MemoryLocation, Op, OpInvocation, OpOutputs,
    PrepareOutcome, PreparedCall, ReusableCall, with_nested_ops,
};
pub use dtype::{Dtype, DtypeSet, Element};
pub use error::{Error, ErrorKind, Result};
pub use fallback_counters::FallbackCount;
pub use interrupt::with_interrupt;
pub use runtime::Runtime;
pub use shape::Dims;
pub use tensor::{DimSelection, SelectionSource, Tensor};
