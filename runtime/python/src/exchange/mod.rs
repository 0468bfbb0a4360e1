//! Memory that is exchanged with other libraries and with Python's own objects: buffers, DLPack, arrays of NumPy, and lists.

pub(crate) mod buffer;
pub(crate) mod dlpack;
pub(crate) mod from_python;
mod memory_import;
pub(crate) mod numpy_arrays;
pub(crate) mod owned_buffer;
