//! The interface: every type, constant and function that crosses, each once.
//!
//! `cargo test -p oarlock-capi` fails when `include/oarlock.h` or `abi.lock` say anything else, and writes them anew with
//! `OARLOCK_WRITE=1`. What is here once stays: fields are added at the ends of structs that grow, functions and constants
//! anywhere, and [`ABI_VERSION`] goes up by one with the first addition after a release.

mod functions;
mod handles;

pub use crate::c_types::*;
pub use functions::*;
pub use handles::*;
