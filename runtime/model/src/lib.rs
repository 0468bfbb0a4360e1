//! Models: graphs of nodes and values, and what reads them from files.
//!
//! Nothing here plans or runs. `oarlock-engine` does, and gives on what its callers need of this crate.

pub mod graph;
pub mod import;

pub use import::Model;
