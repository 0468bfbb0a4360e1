//! Finds, judges, loads, isolates and unloads plugins.

mod refusal;

pub use refusal::{Reason, Refusal};
