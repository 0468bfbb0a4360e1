"""The package in which onnxruntime has its native module, and modules that other packages import from."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from .._absent import absent

if TYPE_CHECKING:
    from types import ModuleType

    from . import _pybind_state as _pybind_state
    from . import onnxruntime_inference_collection as onnxruntime_inference_collection
    from . import onnxruntime_pybind11_state as onnxruntime_pybind11_state
    from . import onnxruntime_validation as onnxruntime_validation

_MODULES = ("_pybind_state", "onnxruntime_inference_collection", "onnxruntime_pybind11_state", "onnxruntime_validation")


def __getattr__(name: str) -> ModuleType:
    """Loads a module, because in onnxruntime all are there after its import."""
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise absent(sys.modules[__name__], name, __name__)
