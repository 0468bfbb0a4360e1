//! The C API: what `oarlock.h` declares and `liboarlock.so` exports.
//!
//! [`interface`] is the one place where a type, a constant or a function of the API is written down. The header and the
//! lock of the ABI are made of it, from the types that Rust compiles, so they cannot say anything else than the library
//! does. What the functions do stands in the other modules, which see checked references and give back results: panics end
//! and pointers are looked at before them.

pub mod codegen;
pub mod describe;
pub mod interface;

mod attributes;
mod borrowed_memory;
mod device;
mod error;
mod model;
mod op;
mod panic_guard;
mod pointer;
mod runtime;
mod session;
mod slot;
mod value;
