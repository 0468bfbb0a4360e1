//! Writes models to files.

pub mod onnx;
pub mod portable;
