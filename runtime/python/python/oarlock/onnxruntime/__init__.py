"""The API of onnxruntime on Oarlock: change `import onnxruntime` to `from oarlock import onnxruntime`.

Sessions take and return NumPy arrays. Options about onnxruntime's internals, such as the optimization level, are stored and
have no effect. Providers are devices: `CUDAExecutionProvider` is `cuda`. One without a device is skipped with a warning.

Exceptions have onnxruntime's names, in `oarlock.onnxruntime.capi.onnxruntime_pybind11_state`, and are also exceptions of
Oarlock and of Python.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from .._oarlock import __version__
from ._absent import absent
from ._binding import IOBinding
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._providers import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_all_providers,
    get_available_providers,
    get_build_info,
    get_device,
    set_default_logger_severity,
)
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._values import OrtValue

if TYPE_CHECKING:
    from types import ModuleType

    from . import capi as capi

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "__version__",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "set_default_logger_severity",
]


def __getattr__(name: str) -> ModuleType:
    """Loads the module with the exceptions, which few programs name; for unsupported names, says what to do instead."""
    if name == "capi":
        import_module(".capi.onnxruntime_pybind11_state", __name__)
        return sys.modules[f"{__name__}.capi"]
    raise absent(sys.modules[__name__], name, "oarlock.onnxruntime")


def __dir__() -> list[str]:
    """The public names."""
    return __all__
