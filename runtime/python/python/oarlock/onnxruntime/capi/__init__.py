"""The package in which onnxruntime has its native module."""
