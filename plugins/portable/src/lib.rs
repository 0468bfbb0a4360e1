//! The kernels that all GPUs share.
//!
//! Sources are written in a small dialect of C, with a prelude each for OpenCL C, CUDA C++ and HIP C++, and generated for
//! the operands at hand: their dtypes, and how they are walked through. A GPU plugin implements [`Gpu`], [`Queue`] and
//! [`Event`], which are calls of its driver and no more, and registers [`Gpus`] as its device and [`kernels`].
//!
//! What a kernel reads and writes is checked before it is launched: operands say which bytes of a block are touched. Values
//! are known on the device alone: an index outside of its data gives zeros there, an integer divided by 0 gives 0, and
//! whoever waits for the stream is told.

mod arguments;
mod device;
mod gpu;
mod host;
mod ops;
mod program;
mod rights;
mod source;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod view;
mod walk;

pub use device::{Device, Found, Gpus, Reached, Session};
pub use gpu::{
    Argument, Compiled, ENTRY, Event, Facts, Gpu, Grid, LOCAL_MEMORY, Language, Place, Queue, WORK_GROUP,
};
pub use ops::kernels;
pub use rights::has_raised_rights;
pub use store::Store;
