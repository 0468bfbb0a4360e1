"""The API of onnxruntime on Oarlock: change `import onnxruntime` to `from oarlock import onnxruntime`.

Programs that cannot be changed run unchanged with `python -m oarlock.onnxruntime program.py`, or after `install()`.

Sessions take and return NumPy arrays. Options about onnxruntime's internals, such as the optimization level, are stored and
have no effect. Providers are devices: `CUDAExecutionProvider` is `cuda`. One without a device is skipped with a warning.

`__version__` is the version of onnxruntime whose interface this is; `oarlock_version` is that of Oarlock. Exceptions have
onnxruntime's names, in `oarlock.onnxruntime.capi.onnxruntime_pybind11_state`, and are also exceptions of Oarlock and of Python.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from ._absent import absent
from ._binding import IOBinding
from ._description import ModelMetadata, NodeArg
from ._enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from ._environment import (
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    has_collective_ops,
    preload_dlls,
    set_global_thread_pool_sizes,
    set_seed,
)
from ._install import install
from ._logger import set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity
from ._memory import OrtArenaCfg, OrtDevice, OrtMemoryInfo
from ._options import RunOptions, SessionOptions
from ._providers import get_all_providers, get_available_providers, get_device
from ._session import InferenceSession
from ._sparse import SparseTensor
from ._values import OrtValue, copy_tensors
from ._version import (
    __version__,
    cuda_version,
    get_build_info,
    get_version_string,
    oarlock_version,
    package_name,
    print_debug_info,
    version,
)

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
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "SparseTensor",
    "__version__",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "cuda_version",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "install",
    "oarlock_version",
    "package_name",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
    "version",
]


def __getattr__(name: str) -> ModuleType:
    """Loads the package of the modules below, which few programs name; for unsupported names, says what to do instead."""
    if name == "capi":
        return import_module(".capi", __name__)
    raise absent(sys.modules[__name__], name, "oarlock.onnxruntime")


def __dir__() -> list[str]:
    """The public names."""
    return __all__
