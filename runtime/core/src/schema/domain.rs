//! The domains of ops that are known here, and the two names of ONNX's own.

/// The domain of ONNX's own ops, also known by the empty name.
pub const ONNX_DOMAIN: &str = "ai.onnx";

/// The domain of ONNX's ops for traditional machine learning.
pub const ONNX_ML_DOMAIN: &str = "ai.onnx.ml";

/// The domain of the ops that onnxruntime adds to those of ONNX.
pub const ONNXRUNTIME_DOMAIN: &str = "com.microsoft";

/// The domain of Oarlock's own ops.
pub const OARLOCK_DOMAIN: &str = "oarlock";

/// The domain as graphs and kernels name it: ONNX's own is the empty one.
pub fn normalize_domain(domain: &str) -> &str {
    if domain == ONNX_DOMAIN { "" } else { domain }
}

/// The domain as users read it: ONNX's own is `ai.onnx`.
pub fn displayed_domain(domain: &str) -> &str {
    if domain.is_empty() { ONNX_DOMAIN } else { domain }
}
