//! The C API: what `oarlock.h` declares and `liboarlock.so` exports.
//!
//! [`interface`] is the single place that declares each type, constant and function of the API. The header and the ABI lock
//! are generated from it and from the types that Rust compiles, so they always match the library. The other modules implement
//! the functions on checked references and results: pointers are checked and panics caught before and after them.

pub mod codegen;
pub mod describe;
pub mod interface;

mod attributes;
mod borrowed_memory;
mod c_types;
mod device;
mod device_handle;
mod error;
mod model;
mod op;
mod panic_guard;
mod pointer;
mod runtime;
mod session;
mod slot;
mod value;
mod value_kind;
