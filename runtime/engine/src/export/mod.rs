//! Writes models to files.

pub mod onnx;
