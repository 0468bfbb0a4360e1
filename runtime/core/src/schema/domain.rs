//! The known domains of ops, and the two names of ONNX's own domain.

/// The domain of ONNX's own ops, also known by the empty name.
pub const ONNX_DOMAIN: &str = "ai.onnx";

/// The domain of ONNX's ops for traditional machine learning.
pub const ONNX_ML_DOMAIN: &str = "ai.onnx.ml";

/// The domain of the ops that onnxruntime adds to ONNX's.
pub const ONNXRUNTIME_DOMAIN: &str = "com.microsoft";

/// The domain of Oarlock's own ops.
pub const OARLOCK_DOMAIN: &str = "oarlock";

/// The domain in the form of graphs and kernels: ONNX's own is the empty name.
pub fn normalize_domain(domain: &str) -> &str {
    if domain == ONNX_DOMAIN { "" } else { domain }
}

/// The domain in the form for users: ONNX's own is `ai.onnx`.
pub fn displayed_domain(domain: &str) -> &str {
    if domain.is_empty() { ONNX_DOMAIN } else { domain }
}
