//! The engine: a model becomes a plan, and a plan runs.

pub mod graph;
pub mod import;

pub use import::Model;
