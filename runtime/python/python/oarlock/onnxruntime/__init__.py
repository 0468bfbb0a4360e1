"""What programs for onnxruntime call, on Oarlock: change `import onnxruntime` into `from oarlock import onnxruntime`.

Sessions take and give arrays of NumPy, as there. Options that choose how onnxruntime works inside, such as the level of
optimization, are kept and change nothing. Providers are devices: `CUDAExecutionProvider` is `cuda`, and what is not there is
passed over for the next, with a warning.

Exceptions have the names that they have there, in `oarlock.onnxruntime.capi.onnxruntime_pybind11_state`, and are those of
Oarlock and of Python as well.
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
    """The module with the exceptions, which few programs name; says what to do instead of what is not there."""
    if name == "capi":
        import_module(".capi.onnxruntime_pybind11_state", __name__)
        return sys.modules[f"{__name__}.capi"]
    raise absent(sys.modules[__name__], name, "oarlock.onnxruntime")


def __dir__() -> list[str]:
    """What is meant to be used, without what the module itself uses."""
    return __all__
