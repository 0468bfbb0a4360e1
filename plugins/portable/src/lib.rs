//! The kernels that all GPUs share.
//!
//! Sources are written in a small dialect of C, with a prelude each for OpenCL C, CUDA C++ and HIP C++, and generated for
//! the operands at hand: their dtypes, and how they are walked through. A GPU plugin implements [`Gpu`], which compiles and
//! launches, and registers [`kernels`].
//!
//! What a kernel reads and writes is checked before it is launched: a [`Argument::Memory`] says which bytes of a block are
//! touched. Indices that `Gather` finds outside its data give zeros, since finding out about them would cost a copy to the
//! host in every call.

mod arguments;
mod gpu;
mod host;
mod ops;
mod program;
mod source;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod view;
mod walk;

pub use gpu::{Argument, Compiled, ENTRY, Gpu, Grid, LOCAL_MEMORY, Language, Limits, WORK_GROUP};
pub use ops::kernels;
pub use program::Programs;
pub use store::Store;
