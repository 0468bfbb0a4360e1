"""The module from which onnxruntime's own Python half, and many packages, take the native names."""

from .onnxruntime_pybind11_state import *
from .onnxruntime_pybind11_state import __all__ as __all__
from .onnxruntime_pybind11_state import __getattr__ as __getattr__
