//! Models to files.

pub mod onnx;
