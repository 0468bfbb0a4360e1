"""The package in which onnxruntime has its native module, and modules that other packages import from."""
