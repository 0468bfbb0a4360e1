//! Each breach of a rule, by a caller or by a plugin, gets the message that names it; what keeps the rules gets none.

#![expect(unsafe_code, reason = "callers and plugins break rules of a C interface")]

mod bad_device;
mod caller_cases;
mod kernel_cases;
mod plugin_cases;
mod rig;
mod stream_cases;
mod test_host;
