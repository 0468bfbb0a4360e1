"""The module in which onnxruntime defines the classes for sessions and values."""

from __future__ import annotations

import sys
from typing import NoReturn

from .._absent import absent
from .._binding import IOBinding
from .._enumerations import OrtDeviceVendorId
from .._memory import OrtDevice, get_ort_device_type
from .._session import InferenceSession
from .._sparse import SparseTensor
from .._values import OrtValue, copy_tensors

__all__ = [
    "IOBinding",
    "InferenceSession",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "SparseTensor",
    "copy_tensors",
    "get_ort_device_type",
]


def __getattr__(name: str) -> NoReturn:
    """For unsupported names, says what to do instead."""
    raise absent(sys.modules[__name__], name, __name__)
