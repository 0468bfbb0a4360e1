"""What the native module of onnxruntime has: the exceptions, and what the package has as well."""

from __future__ import annotations

import sys
from typing import NoReturn

from .._absent import absent
from .._binding import IOBinding
from .._description import ModelMetadata, NodeArg
from .._enumerations import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from .._environment import (
    create_and_register_allocator,
    create_and_register_allocator_v2,
    disable_telemetry_events,
    enable_telemetry_events,
    has_collective_ops,
    set_global_thread_pool_sizes,
    set_seed,
)
from .._errors import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from .._logger import set_default_logger_callback, set_default_logger_severity, set_default_logger_verbosity
from .._memory import OrtArenaCfg, OrtDevice, OrtMemoryInfo
from .._options import RunOptions, SessionOptions
from .._providers import get_all_providers, get_available_providers, get_device
from .._session import InferenceSession
from .._sparse import SparseTensor
from .._values import OrtValue, copy_tensors
from .._version import get_build_info, get_version_string

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "SparseTensor",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_default_session_options",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]


def get_default_session_options() -> SessionOptions:
    """Options as they are unless a program sets them."""
    return SessionOptions()


def __getattr__(name: str) -> NoReturn:
    """For unsupported names, says what to do instead."""
    raise absent(sys.modules[__name__], name, __name__)
