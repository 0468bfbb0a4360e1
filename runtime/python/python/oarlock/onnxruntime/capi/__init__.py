"""Where programs find what is native in onnxruntime."""
