//! The core: tensors, operators, and the shortest way from one to the kernel that runs it.
//!
//! A program starts a runtime, takes a device of it, makes tensors, and calls operators on them. Which kernel
//! runs is decided once for each place a call comes from, and can be explained.

mod attribute;
mod constant;
mod device;
mod dispatch;
mod dtype;
mod error;
pub mod flags;
pub mod infer;
pub mod memory;
pub mod registry;
mod runtime;
pub mod schema;
pub mod shape;
pub mod stream;
mod tensor;

pub use attribute::{Attribute, Attributes};
pub use constant::Constant;
pub use device::{Device, DeviceName};
pub use dispatch::{FallbackCount, Invocation, Launch, Op, Outputs};
pub use dtype::{Dtype, DtypeSet, Element};
pub use error::{Error, ErrorKind, Result};
pub use runtime::Runtime;
pub use shape::Dims;
pub use tensor::Tensor;
