//! Reports of what runs did, as data that serializes and as sentences. The command, the C API and the Python package fetch these
//! and print them.
//!
//! - what a plan does: [`node_report`], [`pass_report`], [`memory_layout`], [`fallback_report`], [`rounding`];
//! - what a run took: [`step_profile`], [`chrome_trace`], [`statistics`];
//! - what it computed: [`statistics`], [`difference`], and arrays in files, [`npy`] and [`npz`].

pub mod array;
pub mod chrome_trace;
pub mod difference;
pub mod fallback_report;
pub mod file;
pub mod graph_text;
pub mod memory_layout;
pub mod node_report;
pub mod npy;
pub mod npz;
pub mod pass_report;
pub mod rounding;
pub mod scalar;
pub mod statistics;
pub mod step_profile;
pub mod text;
pub mod value_description;
